/* SPDX-License-Identifier: Apache-2.0 */
/* From the ids of a state's atoms to its vector: tables, compositions of atoms and of states. */
#include "models/models_policy_parts.h"

/* What the pieces below share. */
typedef struct embedding {
    lw_builder *b;
    lw_graph *g;
    const lw_policy_config *c;
    int32_t r, a; /* states, atoms a state */
} embedding;

int32_t lw_policy_predicate_width(const lw_policy_config *c)
{
    return c->atom == LW_POLICY_ATOM_COMPLEX ? 2 * c->embed : c->embed;
}

int32_t lw_policy_constant_width(const lw_policy_config *c)
{
    bool two = c->atom == LW_POLICY_ATOM_COMPLEX || c->atom == LW_POLICY_ATOM_ROTATE;
    return two ? 2 * c->embed : c->embed;
}

static lw_val table(const embedding *m, const char *name, int32_t rows, int32_t width)
{
    const char *up = lw_scope_push(m->g, name);
    lw_val t = lw_param(m->b, "weight", lw_type_of(LW_F32, 2, rows, width),
                        (lw_init){LW_INIT_NORMAL, 1.0f});
    lw_scope_set(m->g, up);
    return t;
}

static lw_val predicate_table(const embedding *m)
{
    return table(m, "predicate_embedding", 1 + m->c->predicates, lw_policy_predicate_width(m->c));
}

static lw_val constant_table(const embedding *m)
{
    return table(m, "constant_embedding", 1 + m->c->constants + m->c->variables,
                 lw_policy_constant_width(m->c));
}

static int start(embedding *m, lw_builder *b, const lw_policy_config *c, const lw_policy_in *in)
{
    if (!lw_val_ok(in->predicates) || !lw_val_ok(in->arguments) || !lw_val_ok(in->scale))
        return LW_ESHAPE;
    lw_type p = lw_val_type(b->g, in->predicates), a = lw_val_type(b->g, in->arguments);
    lw_type s = lw_val_type(b->g, in->scale);
    if (p.dtype != LW_I32 || a.dtype != LW_I32 || p.rank != 2 || a.rank != 2 ||
        a.dim[0] != p.dim[0] || a.dim[1] != 2 * p.dim[1] || s.dtype != LW_F32 ||
        lw_type_count(s) != p.dim[0])
        lw_graph_fail(b->g, LW_ESHAPE,
                      "the policy wants predicates i32[R,A], arguments i32[R,2A], scale f32[R]");
    else if (c->state == LW_POLICY_STATE_CONCAT && p.dim[1] != c->max_atoms)
        lw_graph_fail(b->g, LW_ESHAPE, "this policy joins exactly %d atoms a state, not %d",
                      c->max_atoms, p.dim[1]);
    *m = (embedding){b, b->g, c, p.dim[0], p.dim[1]};
    return lw_graph_error(b->g);
}

static lw_type matrix(int32_t rows, int32_t columns)
{
    return lw_type_of(LW_F32, 2, rows, columns);
}

/* x [R,C] times scale [R]. */
static lw_val scaled(const embedding *m, lw_val x, lw_val scale)
{
    lw_val column = lw_reshape(m->g, scale, matrix(m->r, 1));
    return lw_mul(m->g, x, lw_broadcast(m->g, column, lw_val_type(m->g, x)));
}

/* Sum over atoms of p + h - t (or p - h - t) from tables of any width: [R,width]. */
static lw_val signed_sum(const embedding *m, const lw_policy_in *in, lw_val preds, lw_val args,
                         int32_t width)
{
    lw_graph *g = m->g;
    int32_t n = m->r * m->a;
    lw_val p = lw_embedding(g, preds, in->predicates);
    lw_val both = lw_reshape(g, lw_embedding(g, args, in->arguments), matrix(n, 2 * width));
    lw_val h = lw_slice(g, both, 1, 0, width), t = lw_slice(g, both, 1, width, 2 * width);
    p = m->c->atom == LW_POLICY_ATOM_SUM ? lw_sub(g, p, h) : lw_add(g, p, h);
    lw_val atoms = lw_reshape(g, lw_sub(g, p, t), lw_type_of(LW_F32, 3, m->r, m->a, width));
    return lw_sum(g, atoms, LW_OVER_MIDDLE);
}

bool lw_policy_folds(const lw_policy_config *c)
{
    bool rows = c->atom == LW_POLICY_ATOM_TRANSE || c->atom == LW_POLICY_ATOM_SUM;
    return rows && c->state != LW_POLICY_STATE_CONCAT;
}

lw_val lw_policy_embed(lw_builder *b, const lw_policy_config *c, const lw_policy_in *in)
{
    embedding m;
    if (start(&m, b, c, in) < 0)
        return LW_NOVAL;
    lw_val sum = signed_sum(&m, in, predicate_table(&m), constant_table(&m), c->embed);
    return scaled(&m, sum, in->scale);
}

lw_val lw_policy_embed_folded(lw_builder *b, const lw_policy_config *c, const lw_policy_in *in)
{
    embedding m;
    if (start(&m, b, c, in) < 0)
        return LW_NOVAL;
    lw_val preds = predicate_table(&m), args = constant_table(&m);
    const char *up = lw_scope_push(b->g, "shared_body.input_transform.0");
    lw_val w = lw_policy_weight(b, c->embed, c->hidden, POLICY_GAIN);
    lw_val bias = lw_policy_bias(b, c->hidden);
    lw_scope_set(b->g, up);
    preds = lw_matmul(b->g, preds, w, false, true);
    args = lw_matmul(b->g, args, w, false, true);
    return lw_add(b->g, scaled(&m, signed_sum(&m, in, preds, args, c->hidden), in->scale), bias);
}
