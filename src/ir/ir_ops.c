/* SPDX-License-Identifier: Apache-2.0 */
/* The table of op records, indexed by enum. */
#include "ir/ops/ops.h"

static const lw_op_def *const table[LW_OP_COUNT] = {
#define OP(NAME, name, doc) [LW_OP_##NAME] = &lw_op_##name,
#include "ir/ops.def"
#undef OP
};

const lw_op_def *lw_op_get(lw_op op)
{
    LW_ASSERT((unsigned)op < LW_OP_COUNT, "op %d", (int)op);
    return table[op];
}

bool lw_node_product(const lw_graph *g, const lw_node *n, lw_product *out)
{
    const lw_op_def *d = lw_op_get(n->op);
    if (!d->product)
        return false;
    *out = (lw_product){.taps = 1, .residual = -1, .image_bias = -1};
    d->product(g, n, out);
    return true;
}

void lw_grad_none(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need, lw_val *din)
{
    (void)g, (void)n, (void)dout, (void)need, (void)din;
}

void lw_cost_bytes(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    for (int i = 0; i < n->n_in; i++)
        out->bytes += (double)lw_type_bytes(lw_val_type(g, n->in[i]));
    for (int i = 0; i < n->n_out; i++)
        out->bytes += (double)lw_type_bytes(lw_val_type(g, n->out[i]));
}

int lw_op_fail(const lw_graph *g, const lw_node *n, const char *what)
{
    lw_str s = {0};
    lw_str_addf(&s, "%s(", lw_op_get(n->op)->name);
    for (int i = 0; i < n->n_in; i++) {
        lw_str_add(&s, i ? ", " : "");
        if (lw_val_ok(n->in[i]))
            lw_type_print(&s, lw_val_type(g, n->in[i]));
        else
            lw_str_add(&s, "-");
    }
    int rc = lw_fail(LW_ESHAPE, "%s): %s", lw_str_c(&s), what);
    lw_str_clear(&s);
    return rc;
}

const char *lw_op_act_text(int32_t act)
{
    static const char *const text[LW_ACT_COUNT] = {"",           " relu",       " silu", " gelu",
                                                   " gelu_tanh", " quick_gelu", " relu6"};
    return text[act];
}

int lw_op_check_act(const lw_graph *g, const lw_node *n, int32_t act, lw_act last)
{
    return act >= LW_ACT_NONE && act <= (int32_t)last
               ? 0
               : lw_op_fail(g, n, "it has no such activation");
}

int lw_op_one(lw_infer *out, lw_type t)
{
    out->n_out = 1;
    out->out[0] = t;
    return 0;
}

int lw_op_like_first(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    return lw_op_one(out, lw_val_type(g, n->in[0]));
}
