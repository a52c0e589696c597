/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse: chains of elementwise nodes become one tile program; a lone add or activation behind a
 * product or convolution becomes its epilogue, also where reshapes stand between (attention's
 * tokens and pixels); so does the add of a row per image ([B,C] over [B,H,W,C], an embedding)
 * behind a convolution, and of one row for all ([1,C]) behind any product; so does dropout behind a
 * matrix product, where no gradient will draw the same again. A producer is absorbed only when nothing else reads it. The fused node
 * stands where the last of its parts stood, so every operand is already computed there.
 *
 * What depends on parameters only and what does not are never fused: the former has no rows of a
 * batch, but at batch 1 it has the shape of what has. So a picture is computed in the same way,
 * with the same bits, in every batch, and what can be prepared is.
 */
#include "plan/plan_pass.h"

#include <string.h>

/* ---- epilogues ------------------------------------------------------------------------------- */

typedef union product_attr {
    lw_attr_matmul matmul;
    lw_attr_conv conv;
} product_attr;

static bool single_use(const lw_rewrite *r, const lw_node *n, int i)
{
    return r->uses[n->in[i].id] == 1;
}

/* The value that operand k of n is read from: behind reshapes that nothing else reads. Invalid when
 * something else reads it. */
static lw_val lone_operand(const lw_rewrite *r, const lw_node *n, int k)
{
    lw_val v = n->in[k];
    while (r->uses[v.id] == 1) {
        const lw_node *p = lw_val_node(r->from, v);
        if (!lw_node_is(p, LW_OPF_ALIAS))
            return v;
        v = p->in[0];
    }
    return LW_NOVAL;
}

/* A product whose epilogue n would become. */
typedef struct product {
    const lw_node *node; /* in the new graph */
    lw_type type;        /* of its result */
    product_attr attr;
    int32_t *act;
    lw_product facts;
    lw_val in[LW_MAX_IN];
    int n_in;
} product;

static bool find_product(const lw_rewrite *r, const lw_node *n, int k, lw_type type, product *p)
{
    lw_val old = lone_operand(r, n, k), v = lw_rewrite_map(r, old);
    if (!lw_val_ok(v))
        return false;
    p->node = lw_val_node(r->to, v);
    p->type = lw_val_type(r->to, v);
    if (!p->node->attr_size || p->node->attr_size > sizeof p->attr ||
        lw_type_count(p->type) != lw_type_count(type))
        return false;
    memcpy(&p->attr, p->node->attr, p->node->attr_size);
    if (!lw_node_product(r->to, p->node, &p->facts) || p->facts.residual < 0)
        return false;
    p->act = (int32_t *)(void *)((char *)&p->attr + p->facts.act);
    if (*p->act != LW_ACT_NONE)
        return false;
    memset(p->in, 0, sizeof p->in);
    memcpy(p->in, p->node->in, sizeof *p->in * (size_t)p->node->n_in);
    p->n_in = p->node->n_in;
    return true;
}

/* arg of the pass: which nodes of r->from depend on parameters only. */
static bool prepared(const lw_rewrite *r, const bool *params_only, lw_val old)
{
    return params_only[lw_val_node(r->from, old)->index];
}

/* Puts v into operand `at`, which must be free. */
static bool put_operand(product *p, int at, lw_val v)
{
    if (lw_val_ok(p->in[at]))
        return false;
    p->in[at] = v;
    p->n_in = LW_MAX(p->n_in, at + 1);
    return true;
}

/* A row [1,..,C] that all pictures add becomes a row of each, [B,C]: whether sums are fused must not depend on how many
 * pictures there are, and of one picture its own row looks the same. */
static lw_val row_of_each(lw_rewrite *r, lw_val row, int32_t pictures, int32_t channels)
{
    lw_type all = lw_type_of(LW_F32, 2, pictures, channels);
    LW_CLEANUP(lw_free) float *ones = lw_calloc((size_t)pictures * (size_t)channels, sizeof *ones);
    for (int64_t i = 0; ones && i < lw_type_count(all); i++)
        ones[i] = 1.0f;
    row = lw_reshape(r->to, row, lw_type_of(LW_F32, 1, channels));
    /* times 1, since -0 + 0 would be another 0 */
    return ones ? lw_mul(r->to, lw_const(r->to, all, ones), row)
                : lw_graph_fail(r->to, LW_ENOMEM, "%s", lw_errmsg());
}

/* n = add(product, other): a residual of the same shape, or a row per image behind a convolution, or one
 * row for all. */
static bool put_addend(lw_rewrite *r, const lw_node *n, int k, product *p)
{
    const lw_attr_ew *ew = n->attr;
    lw_val other = lw_rewrite_map(r, n->in[1 - k]);
    lw_type t = lw_val_type(r->to, other);
    int mode = ew->mode[1 - k];
    if (mode == LW_EW_FULL && lw_type_eq(t, ew->type)) {
        if (lw_val_ok(p->in[p->facts.residual]))
            return false;
        return put_operand(p, p->facts.residual, lw_reshape(r->to, other, p->type));
    }
    const int at = p->facts.image_bias >= 0 ? p->facts.image_bias : p->facts.residual;
    const bool shared = mode == LW_EW_CHANNEL && t.rank > 1;
    if ((!shared && mode != LW_EW_BC) || !lw_type_eq(p->type, ew->type) || lw_val_ok(p->in[at]) ||
        (p->facts.image_bias < 0 && p->type.rank != 2))
        return false;
    const int32_t pictures = p->type.dim[0], channels = lw_type_last(p->type);
    return put_operand(p, at,
                       shared && pictures > 1
                           ? row_of_each(r, other, pictures, channels)
                           : lw_reshape(r->to, other, lw_type_of(LW_F32, 2, pictures, channels)));
}

static lw_act act_of(int ewop)
{
    switch (ewop) {
    case LW_EW_relu:
        return LW_ACT_RELU;
    case LW_EW_silu:
        return LW_ACT_SILU;
    case LW_EW_gelu:
        return LW_ACT_GELU;
    case LW_EW_gelu_tanh:
        return LW_ACT_GELU_TANH;
    case LW_EW_quick_gelu:
        return LW_ACT_QUICK_GELU;
    case LW_EW_relu6:
        return LW_ACT_RELU6;
    default:
        return LW_ACT_NONE;
    }
}

/* n is add(a, b) or an activation of operand k, which a product makes: emit the product with an
 * epilogue. */
static bool fuse_epilogue(lw_rewrite *r, const lw_node *n, int k, const bool *params_only, int *rc)
{
    const lw_attr_ew *ew = n->attr;
    product p;
    for (int i = 0; i < n->n_in; i++)
        if (prepared(r, params_only, n->in[i]) != params_only[n->index])
            return false;
    if (ew->n_step != 1 || ew->mode[k] != LW_EW_FULL || !find_product(r, n, k, ew->type, &p))
        return false;
    if (ew->step[0].op == LW_EW_add && n->n_in == 2 && n->in[0].id != n->in[1].id) {
        if (!put_addend(r, n, k, &p))
            return false;
    } else if (act_of(ew->step[0].op) != LW_ACT_NONE) {
        *p.act = act_of(ew->step[0].op);
    } else {
        return false;
    }
    *rc = lw_rewrite_emit(r, n, p.node->op, p.in, p.n_in, &p.attr, p.node->attr_size);
    lw_val *out = &r->map[n->out[0].id];
    *out = lw_reshape(r->to, *out, ew->type);
    return true;
}

/* n drops what a matrix product makes, behind its bias: emit the product with that. */
static bool fuse_dropout(lw_rewrite *r, const lw_node *n, int *rc)
{
    enum { IDS = 5 };
    lw_type type = lw_val_type(r->from, n->out[0]);
    const lw_attr_dropout *drop = n->attr;
    product p;
    if (!find_product(r, n, 0, type, &p) || p.node->op != LW_OP_MATMUL || p.attr.matmul.trans_a ||
        lw_val_ok(p.in[p.facts.residual]) || p.facts.results % 4 || p.facts.results <= 4 ||
        (lw_type_count(p.type) / p.facts.results) % type.dim[0] ||
        !put_operand(&p, IDS, lw_rewrite_map(r, n->in[1])))
        return false;
    p.attr.matmul.drop = drop->p;
    p.attr.matmul.drop_stream = drop->stream;
    *rc = lw_rewrite_emit(r, n, p.node->op, p.in, p.n_in, &p.attr, p.node->attr_size);
    lw_val *out = &r->map[n->out[0].id];
    *out = lw_reshape(r->to, *out, type);
    return true;
}

/* ---- elementwise chains ---------------------------------------------------------------------- */

typedef struct chain {
    lw_attr_ew a;
    lw_val in[LW_MAX_IN];
    int n_in;
} chain;

/* Operand number of v read with `mode` in c, added when new; -1 when full. */
static int chain_operand(chain *c, lw_val v, int mode)
{
    for (int i = 0; i < c->n_in; i++)
        if (c->in[i].id == v.id && c->a.mode[i] == mode)
            return i;
    if (c->n_in == LW_MAX_IN)
        return -1;
    c->in[c->n_in] = v;
    c->a.mode[c->n_in] = (uint8_t)mode;
    return c->n_in++;
}

/* A program of constants alone: a gradient's first factors, as large as what they multiply. */
static bool is_constant(const lw_graph *g, const lw_node *p)
{
    for (int i = 0; i < p->n_in; i++)
        if (!lw_node_const(lw_val_node(g, p->in[i])) ||
            lw_type_count(lw_val_type(g, p->in[i])) != 1)
            return false;
    return true;
}

/* The producer behind operand k when it can be absorbed: an elementwise node of the same shape. */
static const lw_node *absorbable(const lw_rewrite *r, const lw_node *n, int k,
                                 const bool *params_only)
{
    const lw_attr_ew *a = n->attr;
    const lw_node *p = lw_val_node(r->to, lw_rewrite_map(r, n->in[k]));
    if (p->op != LW_OP_EW || a->mode[k] != LW_EW_FULL || !single_use(r, n, k) ||
        (prepared(r, params_only, n->in[k]) != params_only[n->index] && !is_constant(r->to, p)) ||
        !lw_type_eq(((const lw_attr_ew *)p->attr)->type, a->type))
        return NULL;
    return p;
}

/* Builds the union of n's program and those of its absorbed producers (absorb[k]). Operands are
 * gathered first, since instructions are numbered behind them; false when it does not fit. */
static bool build_chain(const lw_rewrite *r, const lw_node *n, const lw_node *const *absorb,
                        chain *c)
{
    const lw_attr_ew *a = n->attr;
    uint8_t reg_in[LW_MAX_IN][LW_MAX_IN], direct[LW_MAX_IN] = {0}, result[LW_MAX_IN] = {0};
    memset(c, 0, sizeof *c);
    c->a.type = a->type;
    for (int k = 0; k < n->n_in; k++) {
        const lw_node *p = absorb[k];
        int m = p ? p->n_in : 1;
        for (int i = 0; i < m; i++) {
            int mode = p ? ((const lw_attr_ew *)p->attr)->mode[i] : a->mode[k];
            int o = chain_operand(c, p ? p->in[i] : lw_rewrite_map(r, n->in[k]), mode);
            if (o < 0)
                return false;
            *(p ? &reg_in[k][i] : &direct[k]) = (uint8_t)o;
        }
    }
    for (int k = 0; k <= n->n_in; k++) { /* absorbed programs, then n's own */
        const lw_node *p = k < n->n_in ? absorb[k] : n;
        if (!p)
            continue;
        const lw_attr_ew *pa = p->attr;
        int base = c->a.n_step, first = c->n_in + base;
        if (base + pa->n_step > LW_EW_MAX_INSTR)
            return false;
        for (int i = 0; i < pa->n_step; i++) {
            lw_ew_step s = pa->step[i];
            uint8_t *reg[3] = {&s.a, &s.b, &s.c};
            for (int j = 0; j < lw_ewop_arity(s.op); j++) {
                int x = *reg[j];
                if (x >= p->n_in)
                    *reg[j] = (uint8_t)(first + x - p->n_in);
                else if (p != n)
                    *reg[j] = reg_in[k][x];
                else
                    *reg[j] = absorb[x] ? result[x] : direct[x];
            }
            c->a.step[c->a.n_step++] = s;
        }
        if (k < n->n_in)
            result[k] = (uint8_t)(c->n_in + c->a.n_step - 1);
    }
    return true;
}

typedef struct fusing {
    const bool *params_only;
    bool backward; /* there are gradients */
} fusing;

static int fuse_node(lw_rewrite *r, const lw_node *n, void *arg)
{
    const fusing *f = arg;
    const bool *params_only = f->params_only;
    int rc = 0;
    if (n->op == LW_OP_DROPOUT && !f->backward && fuse_dropout(r, n, &rc))
        return rc;
    if (n->op != LW_OP_EW)
        return lw_rewrite_copy(r, n, NULL);
    for (int k = 0; k < n->n_in; k++)
        if (fuse_epilogue(r, n, k, params_only, &rc))
            return rc;
    const lw_node *absorb[LW_MAX_IN] = {NULL};
    bool any = false;
    for (int k = 0; k < n->n_in; k++) {
        absorb[k] = absorbable(r, n, k, params_only);
        any |= absorb[k] != NULL;
    }
    chain c;
    while (any &&
           !build_chain(r, n, absorb, &c)) { /* too big: give up the last absorbed producer */
        any = false;
        for (int k = n->n_in - 1, dropped = 0; k >= 0; k--) {
            if (absorb[k] && !dropped) {
                absorb[k] = NULL;
                dropped = 1;
            }
            any |= absorb[k] != NULL;
        }
    }
    if (!any)
        return lw_rewrite_copy(r, n, NULL);
    return lw_rewrite_emit(r, n, LW_OP_EW, c.in, c.n_in, &c.a, sizeof c.a);
}

int lw_pass_fuse(lw_graph **g, lw_device *dev, const lw_compile_opts *o)
{
    (void)o;
    LW_CLEANUP(lw_free)
    bool *params_only = lw_plan_params_only(*g);
    fusing f = {.params_only = params_only, .backward = lw_plan_has_gradients(*g)};
    if (!params_only)
        return LW_ENOMEM;
    return lw_rewrite_graph(g, dev, fuse_node, &f);
}
