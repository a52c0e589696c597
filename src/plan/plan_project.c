/* SPDX-License-Identifier: Apache-2.0 */
/*
 * project: a 1x1 convolution that another convolution adds, the projection shortcut of a residual block (He et al., Deep
 * residual learning, 2016, equation 2), becomes more of that one's depth, where the device says that this is faster:
 *
 *   s = p u + c                     one sum over taps and channels of x, then channels of u:
 *   y = act(w * x + b + s)    ->    y = act([w | p] * [x ; u] + (b + c))
 *
 * One step less, and s is neither written nor read. It is not rounded to bf16 either, so bits change. Input: a fused forward
 * graph with its types, before weights are packed. A pure function of the graph's layers, never of the batch.
 */
#include "plan/plan_pass.h"

#include <string.h>

enum { BIAS = 2, RESIDUAL = 3, IMAGE_BIAS = 5 }; /* inputs of conv2d */

static bool operand(const lw_node *n, int i)
{
    return i < n->n_in && lw_val_ok(n->in[i]);
}

/* Convolutions that may become one: n adds what the other makes. */
typedef struct pair {
    const lw_node *main, *shortcut;
} pair;

/* A convolution of what varies by weights that do not, with no other operands than these. */
static bool is_plain(const lw_rewrite *r, const lw_node *n, uint32_t others,
                     const bool *params_only)
{
    if (n->op != LW_OP_CONV2D || params_only[n->index])
        return false;
    for (int i = 1; i < n->n_in; i++)
        if (operand(n, i) &&
            (i <= BIAS ? !params_only[lw_val_node(r->from, n->in[i])->index] : !(others >> i & 1)))
            return false;
    return true;
}

static bool is_1x1(const lw_attr_conv *a)
{
    return a->kh * a->kw == 1 && a->stride == 1 && !a->pad_t && !a->pad_l && !a->pad_b && !a->pad_r;
}

/* n and the convolution that n alone reads, and adds; which of them is the shortcut is the model's choice. */
static bool find_pair(const lw_rewrite *r, const lw_node *n, const bool *params_only, pair *p)
{
    if (n->op != LW_OP_CONV2D || !operand(n, RESIDUAL) || r->uses[n->in[RESIDUAL].id] != 1)
        return false;
    const lw_node *added = lw_val_node(r->from, n->in[RESIDUAL]);
    if (added->op != LW_OP_CONV2D || ((const lw_attr_conv *)added->attr)->act != LW_ACT_NONE)
        return false;
    const bool last = is_1x1(n->attr);
    *p = (pair){last ? added : n, last ? n : added};
    const uint32_t sum = 1u << RESIDUAL, image = 1u << IMAGE_BIAS;
    return is_1x1(p->shortcut->attr) &&
           is_plain(r, p->main, image | (last ? 0 : sum), params_only) &&
           is_plain(r, p->shortcut, last ? sum : 0, params_only) &&
           r->dev->project(r->dev->self, r->from, p->main, p->shortcut);
}

/* Both biases, or the one that is there. */
static lw_val sum_of_biases(lw_rewrite *r, const lw_node *n, const lw_node *s)
{
    if (!operand(n, BIAS) || !operand(s, BIAS))
        return operand(n, BIAS)   ? lw_rewrite_map(r, n->in[BIAS])
               : operand(s, BIAS) ? lw_rewrite_map(r, s->in[BIAS])
                                  : LW_NOVAL;
    const char *up = lw_rewrite_scope(r, n);
    const lw_val b = lw_rewrite_map(r, n->in[BIAS]);
    const lw_val c = lw_reshape(r->to, lw_rewrite_map(r, s->in[BIAS]), lw_val_type(r->to, b));
    const lw_val sum = lw_add(r->to, b, c);
    lw_scope_set(r->to, up);
    return sum;
}

static int project_node(lw_rewrite *r, const lw_node *n, void *arg)
{
    pair p;
    if (!find_pair(r, n, arg, &p))
        return lw_rewrite_copy(r, n, NULL);
    lw_val in[LW_MAX_IN] = {{0}};
    for (int i = 0; i < p.main->n_in; i++)
        in[i] = lw_rewrite_map(r, p.main->in[i]);
    in[BIAS] = sum_of_biases(r, p.main, p.shortcut);
    in[RESIDUAL] = LW_NOVAL;
    in[LW_CONV_PROJECT_X] = lw_rewrite_map(r, p.shortcut->in[0]);
    in[LW_CONV_PROJECT_W] = lw_rewrite_map(r, p.shortcut->in[1]);
    const lw_attr_conv *sum = n->attr;
    lw_attr_conv a = *(const lw_attr_conv *)p.main->attr;
    a.act = sum->act;
    a.store = sum->store;
    return lw_rewrite_emit(r, n, LW_OP_CONV2D, in, LW_CONV_PROJECT_W + 1, &a, sizeof a);
}

int lw_pass_project(lw_graph **g, lw_device *dev, const lw_compile_opts *o)
{
    (void)o;
    return lw_plan_has_gradients(*g) ? 0 : lw_rewrite_params_only(g, dev, project_node);
}
