/* SPDX-License-Identifier: Apache-2.0 */
/* Row-keyed draws and dropout (pure functions of seed, stream, step and row id), and embeddings. */
#include "ir/ops/ops.h"

static int check_rows(const lw_graph *g, const lw_node *n, int at, int32_t b)
{
    lw_type r = in_type(g, n, at);
    if (r.dtype != LW_I64 || lw_type_count(r) != b)
        return lw_op_fail(g, n, "needs one i64 row id per row");
    return 0;
}

static int infer_random(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_random *a = n->attr;
    LW_TRY(check_rows(g, n, 0, a->type.dim[0]));
    if (a->type.dtype != (a->kind == LW_RANDOM_BELOW ? LW_I32 : LW_F32))
        return lw_op_fail(g, n, "draws are f32, integers i32");
    return lw_op_one(out, a->type);
}

static void print_random(lw_str *s, const lw_node *n)
{
    static const char *const kind[] = {"normal", "uniform", "below"};
    const lw_attr_random *a = n->attr;
    lw_str_addf(s, "%s stream %016llx", kind[a->kind], (unsigned long long)a->stream);
    if (a->kind == LW_RANDOM_BELOW)
        lw_str_addf(s, " %d", a->below);
}

const lw_op_def lw_op_random = {
    .name = "random",
    .infer = infer_random,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
    .print = print_random,
    .flags = LW_OPF_VARIES,
};

lw_val lw_random(lw_graph *g, const char *stream, lw_random_kind kind, int32_t below, lw_type type,
                 lw_val rows)
{
    if (!lw_val_ok(rows))
        return lw_graph_fail(g, LW_ESHAPE, "random '%s' needs row ids", stream);
    lw_attr_random a = {.kind = kind, .below = below, .stream = lw_hash_name(stream), .type = type};
    return lw_graph_op(g, LW_OP_RANDOM, &rows, 1, &a, sizeof a);
}

/* ---- dropout --------------------------------------------------------------------------------- */

static int infer_dropout(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_dropout *a = n->attr;
    lw_type x = in_type(g, n, 0);
    LW_TRY(check_rows(g, n, 1, x.rank ? x.dim[0] : 1));
    if (x.dtype != LW_F32 || !(a->p >= 0.0f && a->p < 1.0f))
        return lw_op_fail(g, n, "dropout needs f32 and 0 <= p < 1");
    return lw_op_one(out, x);
}

/* The same op on the cotangent: the mask is drawn again from the same counters. */
static void grad_dropout(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                         lw_val *din)
{
    if (need[0])
        din[0] = lw_graph_op(g, LW_OP_DROPOUT, (lw_val[]){dout[0], n->in[1]}, 2, n->attr,
                             n->attr_size);
}

static void print_dropout(lw_str *s, const lw_node *n)
{
    lw_str_addf(s, "p %g", (double)((const lw_attr_dropout *)n->attr)->p);
}

const lw_op_def lw_op_dropout = {
    .name = "dropout",
    .infer = infer_dropout,
    .grad = grad_dropout,
    .cost = lw_cost_bytes,
    .print = print_dropout,
    .flags = LW_OPF_VARIES | LW_OPF_INPLACE | LW_OPF_CHEAP,
};

lw_val lw_dropout(lw_graph *g, lw_val x, lw_val rows, float p)
{
    if (!lw_val_ok(x) || p == 0.0f)
        return x;
    if (!lw_val_ok(rows))
        return lw_graph_fail(g, LW_ESHAPE, "dropout needs row ids");
    lw_attr_dropout a = {.p = p, .stream = lw_hash_name(lw_scope_name(g, "dropout"))};
    return lw_graph_op(g, LW_OP_DROPOUT, (lw_val[]){x, rows}, 2, &a, sizeof a);
}

/* ---- embedding ------------------------------------------------------------------------------- */

static int infer_embedding(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    lw_type t = in_type(g, n, 0), i = in_type(g, n, 1);
    if (t.rank < 1 || t.dtype != LW_F32 || i.dtype != LW_I32)
        return lw_op_fail(g, n, "embedding needs an f32 table and i32 ids");
    int32_t c = t.rank == 1 ? 1 : (int32_t)(lw_type_count(t) / LW_MAX(t.dim[0], 1));
    return lw_op_one(out, lw_type_of(LW_F32, 2, (int32_t)lw_type_count(i), c));
}

/* inputs: dy [B,C], ids; attr: the table's type */
static int infer_embedding_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    if (in_type(g, n, 1).dtype != LW_I32)
        return lw_op_fail(g, n, "ids must be i32");
    return lw_op_one(out, ((const lw_attr_type *)n->attr)->type);
}

static void grad_embedding(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                           lw_val *din)
{
    lw_attr_type a = {in_type(g, n, 0)};
    if (need[0])
        din[0] = lw_graph_op(g, LW_OP_EMBEDDING_GRAD, (lw_val[]){dout[0], n->in[1]}, 2, &a,
                             sizeof a);
}

const lw_op_def lw_op_embedding = {
    .name = "embedding",
    .infer = infer_embedding,
    .grad = grad_embedding,
    .cost = lw_cost_bytes,
};
const lw_op_def lw_op_embedding_grad = {
    .name = "embedding_grad",
    .infer = infer_embedding_grad,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
};

lw_val lw_embedding(lw_graph *g, lw_val table, lw_val ids)
{
    if (!lw_val_ok(table) || !lw_val_ok(ids))
        return LW_NOVAL;
    return lw_graph_op(g, LW_OP_EMBEDDING, (lw_val[]){table, ids}, 2, NULL, 0);
}
