/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuse: chains of elementwise nodes become one tile program; a lone add, relu or silu behind a
 * product or convolution becomes its epilogue. A producer is absorbed only when nothing else reads
 * it. The fused node stands where the last of its parts stood, so every operand is already computed
 * there.
 */
#include "plan/plan_pass.h"

#include <string.h>

/* ---- epilogues
 * ----------------------------------------------------------------------------------- */

/* Which input of a product holds the residual, and where its fused activation is; NULL: not a
 * product. */
static int32_t *epilogue_of(const lw_node *n, void *attr, int *residual_at)
{
    if (n->op == LW_OP_MATMUL && !((lw_attr_matmul *)attr)->trans_a) {
        *residual_at = 3;
        return &((lw_attr_matmul *)attr)->act;
    }
    if (n->op == LW_OP_CONV2D || n->op == LW_OP_CONV2D_DX) {
        *residual_at = n->op == LW_OP_CONV2D ? 3 : 2;
        return &((lw_attr_conv *)attr)->act;
    }
    return NULL;
}

typedef union product_attr {
    lw_attr_matmul matmul;
    lw_attr_conv conv;
} product_attr;

static bool single_use(const lw_rewrite *r, const lw_node *n, int i)
{
    return r->uses[n->in[i].id] == 1;
}

/* n is add(a, b), relu(a) or silu(a) on operand k made by a product: emit the product with an
 * epilogue. */
static bool fuse_epilogue(lw_rewrite *r, const lw_node *n, int k, int *rc)
{
    const lw_attr_ew *ew = n->attr;
    lw_val v = lw_rewrite_map(r, n->in[k]);
    const lw_node *p = lw_val_node(r->to, v);
    product_attr attr;
    int at;
    if (ew->n_step != 1 || ew->mode[k] != LW_EW_FULL || !single_use(r, n, k) || !p->attr_size ||
        p->attr_size > sizeof attr || !lw_type_eq(lw_val_type(r->to, v), ew->type))
        return false;
    memcpy(&attr, p->attr, p->attr_size);
    int32_t *act = epilogue_of(p, &attr, &at);
    if (!act || *act != LW_ACT_NONE)
        return false;
    lw_val in[LW_MAX_IN] = {{0}};
    memcpy(in, p->in, sizeof *in * (size_t)p->n_in);
    int n_in = p->n_in;
    if (ew->step[0].op == LW_EW_add && n->n_in == 2 && n->in[0].id != n->in[1].id) {
        lw_val other = lw_rewrite_map(r, n->in[1 - k]);
        if (ew->mode[1 - k] != LW_EW_FULL || (p->n_in > at && lw_val_ok(in[at])) ||
            !lw_type_eq(lw_val_type(r->to, other), ew->type))
            return false;
        in[at] = other;
        n_in = at + 1;
    } else if (ew->step[0].op == LW_EW_relu) {
        *act = LW_ACT_RELU;
    } else if (ew->step[0].op == LW_EW_silu) {
        *act = LW_ACT_SILU;
    } else {
        return false;
    }
    *rc = lw_rewrite_emit(r, n, p->op, in, n_in, &attr, p->attr_size);
    return true;
}

/* ---- elementwise chains
 * ---------------------------------------------------------------------------- */

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

/* The producer behind operand k when it can be absorbed: an elementwise node of the same shape. */
static const lw_node *absorbable(const lw_rewrite *r, const lw_node *n, int k)
{
    const lw_attr_ew *a = n->attr;
    const lw_node *p = lw_val_node(r->to, lw_rewrite_map(r, n->in[k]));
    if (p->op != LW_OP_EW || a->mode[k] != LW_EW_FULL || !single_use(r, n, k) ||
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

static int fuse_node(lw_rewrite *r, const lw_node *n, void *arg)
{
    (void)arg;
    if (n->op != LW_OP_EW)
        return lw_rewrite_copy(r, n, NULL);
    int rc = 0;
    for (int k = 0; k < n->n_in; k++)
        if (fuse_epilogue(r, n, k, &rc))
            return rc;
    const lw_node *absorb[LW_MAX_IN] = {NULL};
    bool any = false;
    for (int k = 0; k < n->n_in; k++) {
        absorb[k] = absorbable(r, n, k);
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

int lw_pass_fuse(lw_graph **g, lw_device *dev)
{
    return lw_rewrite_graph(g, dev, fuse_node, NULL);
}
