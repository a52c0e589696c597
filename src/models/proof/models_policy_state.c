/* SPDX-License-Identifier: Apache-2.0 */
/* From the ids of a state's atoms to its vector: tables, signed sums of their rows, and the plain
 * path through a composition of atoms and one of states. */
#include "models/proof/models_policy_parts.h"

typedef policy_states states;

int32_t lw_policy_predicate_width(const lw_policy_config *c)
{
    return c->atom == LW_POLICY_ATOM_COMPLEX ? 2 * c->embed : c->embed;
}

int32_t lw_policy_constant_width(const lw_policy_config *c)
{
    bool two = c->atom == LW_POLICY_ATOM_COMPLEX || c->atom == LW_POLICY_ATOM_ROTATE;
    return two ? 2 * c->embed : c->embed;
}

static lw_val table(const states *m, const char *name, int32_t rows, int32_t width)
{
    const char *up = lw_scope_push(m->g, name);
    lw_val t = lw_param(m->b, "weight", lw_type_of(LW_F32, 2, rows, width),
                        (lw_init){LW_INIT_NORMAL, 1.0f});
    lw_scope_set(m->g, up);
    return t;
}

static lw_val predicate_table(const states *m)
{
    return table(m, "predicate_embedding", 1 + m->c->predicates, lw_policy_predicate_width(m->c));
}

static lw_val constant_table(const states *m)
{
    return table(m, "constant_embedding", 1 + lw_policy_constant_rows(m->c) + m->c->variables,
                 lw_policy_constant_width(m->c));
}

static int start(states *m, lw_builder *b, const lw_policy_config *c, const lw_policy_in *in)
{
    if (!lw_val_ok(in->predicates) || !lw_val_ok(in->arguments) || !lw_val_ok(in->scale))
        return lw_graph_error(b->g) < 0
                   ? lw_graph_error(b->g)
                   : lw_fail(LW_ESHAPE, "the policy wants predicates, arguments and scale");
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
    *m = (states){b, b->g, c, p.dim[0], p.dim[1]};
    return lw_graph_error(b->g);
}

/* x [R,C] times scale [R]. */
static lw_val scaled(const states *m, lw_val x, lw_val scale)
{
    return lw_policy_times_column(m->g, x, scale);
}

/* Sum over atoms of p + h - t (or p - h - t) from tables of any width: [R,width]. */
static lw_val signed_sum(const states *m, const lw_policy_in *in, lw_val preds, lw_val args)
{
    enum { TAIL = 2, BOTH = 3 }; /* which of h, t is subtracted */
    lw_val p = lw_embedding_bag(m->g, preds, in->predicates, LW_NOVAL, m->a, 1, 0);
    return lw_embedding_bag(m->g, args, in->arguments, p, 2 * m->a, 2,
                            m->c->atom == LW_POLICY_ATOM_SUM ? BOTH : TAIL);
}

bool lw_policy_folds(const lw_policy_config *c)
{
    bool atom = c->atom == LW_POLICY_ATOM_TRANSE || c->atom == LW_POLICY_ATOM_SUM;
    return atom && (c->state == LW_POLICY_STATE_MEAN || c->state == LW_POLICY_STATE_ATOM_MEAN ||
                    c->state == LW_POLICY_STATE_SUM);
}

/* Predicate, head and tail of every atom as rows of their tables, pads zero. */
static policy_atoms rows_of_atoms(const states *m, const lw_policy_in *in)
{
    int32_t n = m->r * m->a, w = lw_policy_constant_width(m->c);
    lw_val p = lw_embedding_bag(m->g, predicate_table(m), in->predicates, LW_NOVAL, 1, 1, 0);
    lw_val a = lw_embedding_bag(m->g, constant_table(m), in->arguments, LW_NOVAL, 1, 1, 0);
    lw_val both = lw_reshape(m->g, a, lw_type_of(LW_F32, 2, n, 2 * w));
    return (policy_atoms){p, a, lw_slice(m->g, both, 1, 0, w), lw_slice(m->g, both, 1, w, 2 * w),
                          n};
}

lw_val lw_policy_embed(lw_builder *b, const lw_policy_config *c, const lw_policy_in *in)
{
    states m;
    if (start(&m, b, c, in) < 0)
        return LW_NOVAL;
    if (lw_policy_folds(c)) {
        /* One after the other, and in this order: that of the weights in files and in their hash. */
        lw_val args = constant_table(&m), preds = predicate_table(&m);
        return scaled(&m, signed_sum(&m, in, preds, args), in->scale);
    }
    policy_atoms rows = rows_of_atoms(&m, in);
    return lw_policy_join_atoms(&m, lw_policy_compose_atom(&m, &rows), in->scale);
}

lw_val lw_policy_embed_folded(lw_builder *b, const lw_policy_config *c, const lw_policy_in *in)
{
    states m;
    if (start(&m, b, c, in) < 0)
        return LW_NOVAL;
    lw_val preds = predicate_table(&m), args = constant_table(&m);
    const char *up = lw_scope_push(b->g, "shared_body.input_transform.0");
    lw_val w = lw_policy_weight(b, c->embed, c->hidden, POLICY_GAIN);
    lw_val bias = lw_policy_bias(b, c->hidden);
    lw_scope_set(b->g, up);
    preds = lw_matmul(b->g, preds, w, false, true);
    args = lw_matmul(b->g, args, w, false, true);
    return lw_add(b->g, scaled(&m, signed_sum(&m, in, preds, args), in->scale), bias);
}
