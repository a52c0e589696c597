/* SPDX-License-Identifier: Apache-2.0 */
/* Compositions: from predicate, head and tail to the vector of an atom, from atoms to that of a
 * state. Pads are atoms of zero rows, as published: they count wherever a composition does not give
 * zero for them. */
#include "models/proof/models_policy_parts.h"

#include <math.h>

typedef policy_states states;

static lw_val columns(lw_graph *g, lw_val x, int32_t from, int32_t to)
{
    return lw_slice(g, x, 1, from, to);
}

lw_val lw_policy_times_column(lw_graph *g, lw_val x, lw_val column)
{
    if (!lw_val_ok(x) || !lw_val_ok(column))
        return LW_NOVAL;
    lw_type t = lw_val_type(g, x);
    column = lw_reshape(g, column, lw_type_of(LW_F32, 2, t.dim[0], 1));
    return lw_mul(g, x, lw_broadcast(g, column, t));
}

/* Per component, with tables of real | imaginary halves:
 * h_r t_r p_r + h_i t_i p_r + h_r t_i p_i - h_i t_r p_i (Trouillon et al., 2016). */
static lw_val complex_atom(const states *m, const policy_atoms *x)
{
    lw_graph *g = m->g;
    int32_t e = m->c->embed;
    lw_val pr = columns(g, x->p, 0, e), pi = columns(g, x->p, e, 2 * e);
    lw_val hr = columns(g, x->h, 0, e), hi = columns(g, x->h, e, 2 * e);
    lw_val tr = columns(g, x->t, 0, e), ti = columns(g, x->t, e, 2 * e);
    lw_val real = lw_add(g, lw_mul(g, hr, tr), lw_mul(g, hi, ti));
    lw_val imag = lw_sub(g, lw_mul(g, hr, ti), lw_mul(g, hi, tr));
    return lw_add(g, lw_mul(g, real, pr), lw_mul(g, imag, pi));
}

/* Length per component of (conjugate rotation by the predicate's angle) tail - head; the angle is p
 * times pi / ((6 + 0.5) / E) (Sun et al., 2019, with the published margin and epsilon). */
static lw_val rotate_atom(const states *m, const policy_atoms *x)
{
    lw_graph *g = m->g;
    int32_t e = m->c->embed;
    lw_val angle = lw_scale(g, x->p, (float)(3.14159265358979323846 * e / 6.5));
    lw_val c = lw_ew1(g, LW_EW_cos, angle), s = lw_ew1(g, LW_EW_sin, angle);
    lw_val hr = columns(g, x->h, 0, e), hi = columns(g, x->h, e, 2 * e);
    lw_val tr = columns(g, x->t, 0, e), ti = columns(g, x->t, e, 2 * e);
    lw_val re = lw_sub(g, lw_add(g, lw_mul(g, c, tr), lw_mul(g, s, ti)), hr);
    lw_val im = lw_sub(g, lw_sub(g, lw_mul(g, c, ti), lw_mul(g, s, tr)), hi);
    lw_val square = lw_add(g, lw_sqr(g, re), lw_sqr(g, im));
    return lw_ew1(g, LW_EW_sqrt, lw_ew2(g, LW_EW_max, square, lw_const_f32(g, 1e-9f)));
}

/* Linear without bias, so that pads stay zero. */
static lw_val concat_atom(const states *m, const policy_atoms *x)
{
    lw_graph *g = m->g;
    int32_t e = m->c->embed;
    const char *up = lw_scope_push(g, "atom_embedder.transform");
    lw_val w = lw_policy_weight(m->b, 3 * e, e, 1.0);
    lw_scope_set(g, up);
    lw_val all = lw_concat(g, x->p, lw_concat(g, x->h, x->t, 1), 1);
    return lw_linear_op(g, all, w, LW_NOVAL);
}

/* Attention of query q [n,E] over two keys and values kv = k0 | v0 | k1 | v1 [n,4E]: with two keys
 * the softmax is a sigmoid of the scores' difference. */
static lw_val attend_two(lw_graph *g, lw_val q, lw_val kv, int32_t n, int32_t e, int32_t heads)
{
    lw_type by_head = lw_type_of(LW_F32, 2, n * heads, e / heads);
    lw_val k = lw_sub(g, columns(g, kv, 0, e), columns(g, kv, 2 * e, 3 * e));
    lw_val v0 = columns(g, kv, e, 2 * e), v1 = columns(g, kv, 3 * e, 4 * e);
    lw_val s = lw_sum(g, lw_reshape(g, lw_mul(g, q, k), by_head), LW_OVER_LAST);
    lw_val w = lw_ew1(g, LW_EW_sigmoid, lw_scale(g, s, (float)(1.0 / sqrt((double)e / heads))));
    lw_val d = lw_policy_times_column(g, lw_reshape(g, lw_sub(g, v0, v1), by_head), w);
    return lw_add(g, lw_reshape(g, d, lw_type_of(LW_F32, 2, n, e)), v1);
}

/* Four heads, projections of their own: the published "attention". */
static lw_val attention_atom(const states *m, const policy_atoms *x)
{
    lw_graph *g = m->g;
    int32_t e = m->c->embed;
    const char *up = lw_scope_push(g, "atom_embedder");
    lw_val q = lw_policy_linear(m->b, "q_proj", x->p, e, POLICY_GAIN);
    lw_val k = lw_policy_linear(m->b, "k_proj", x->args, e, POLICY_GAIN);
    lw_val v = lw_policy_linear(m->b, "v_proj", x->args, e, POLICY_GAIN);
    lw_val kv = lw_reshape(g, lw_concat(g, k, v, 1), lw_type_of(LW_F32, 2, x->n, 4 * e));
    lw_val y = attend_two(g, q, kv, x->n, e, LW_POLICY_HEADS);
    y = lw_policy_linear(m->b, "out_proj", y, e, POLICY_GAIN);
    lw_scope_set(g, up);
    return y;
}

lw_val lw_policy_in_proj(lw_builder *b, lw_val x)
{
    if (!lw_val_ok(x))
        return x;
    int32_t e = lw_type_last(lw_val_type(b->g, x));
    lw_init init = {LW_INIT_NORMAL, (float)sqrt(1.0 / (2.0 * e))};
    lw_val w = lw_param(b, "in_proj_weight", lw_type_of(LW_F32, 2, 3 * e, e), init);
    lw_val c = lw_param(b, "in_proj_bias", lw_type_of(LW_F32, 1, 3 * e), (lw_init){0});
    return lw_linear_op(b->g, x, w, c);
}

/* One head of torch's MultiheadAttention: the published "transformer". */
static lw_val transformer_atom(const states *m, const policy_atoms *x)
{
    lw_graph *g = m->g;
    int32_t e = m->c->embed;
    const char *up = lw_scope_push(g, "atom_embedder.attention");
    lw_val q = columns(g, lw_policy_in_proj(m->b, x->p), 0, e);
    lw_val kv = columns(g, lw_policy_in_proj(m->b, x->args), e, 3 * e);
    kv = lw_reshape(g, kv, lw_type_of(LW_F32, 2, x->n, 4 * e));
    lw_val y = attend_two(g, q, kv, x->n, e, 1);
    y = lw_policy_linear(m->b, "out_proj", y, e, POLICY_GAIN);
    lw_scope_set(g, up);
    return y;
}

lw_val lw_policy_gru(lw_builder *b, const char *name, lw_val x, lw_val h)
{
    lw_graph *g = b->g;
    if (!lw_val_ok(x) || !lw_val_ok(h))
        return LW_NOVAL;
    int32_t e = lw_type_last(lw_val_type(g, x));
    lw_init init = {LW_INIT_UNIFORM, (float)(1.0 / sqrt((double)e))};
    lw_type matrix = lw_type_of(LW_F32, 2, 3 * e, e), vector = lw_type_of(LW_F32, 1, 3 * e);
    const char *up = lw_scope_push(g, name);
    lw_val wi = lw_param(b, "weight_ih_l0", matrix, init);
    lw_val wh = lw_param(b, "weight_hh_l0", matrix, init);
    lw_val i = lw_linear_op(g, x, wi, lw_param(b, "bias_ih_l0", vector, init));
    lw_val j = lw_linear_op(g, h, wh, lw_param(b, "bias_hh_l0", vector, init));
    lw_scope_set(g, up);
    lw_val r = lw_ew1(g, LW_EW_sigmoid, lw_add(g, columns(g, i, 0, e), columns(g, j, 0, e)));
    lw_val z = lw_add(g, columns(g, i, e, 2 * e), columns(g, j, e, 2 * e));
    z = lw_ew1(g, LW_EW_sigmoid, z);
    lw_val n = lw_mul(g, r, columns(g, j, 2 * e, 3 * e));
    n = lw_ew1(g, LW_EW_tanh, lw_add(g, columns(g, i, 2 * e, 3 * e), n));
    return lw_add(g, n, lw_mul(g, z, lw_sub(g, h, n)));
}

lw_val lw_policy_compose_atom(const states *m, const policy_atoms *x)
{
    switch (m->c->atom) {
    case LW_POLICY_ATOM_SUM:
        return lw_sub(m->g, lw_sub(m->g, x->p, x->h), x->t);
    case LW_POLICY_ATOM_COMPLEX:
        return complex_atom(m, x);
    case LW_POLICY_ATOM_ROTATE:
        return rotate_atom(m, x);
    case LW_POLICY_ATOM_CONCAT:
        return concat_atom(m, x);
    case LW_POLICY_ATOM_ATTENTION:
        return attention_atom(m, x);
    case LW_POLICY_ATOM_TRANSFORMER:
        return transformer_atom(m, x);
    case LW_POLICY_ATOM_RNN: {
        lw_val h = lw_policy_gru(m->b, "atom_embedder.gru", x->h, x->p);
        return lw_policy_gru(m->b, "atom_embedder.gru", x->t, h);
    }
    default:
        return lw_sub(m->g, lw_add(m->g, x->p, x->h), x->t);
    }
}

/* ---- from atoms to states -------------------------------------------------------------------- */

/* A learned query attends to the atoms (one head), then a Linear. */
static lw_val transformer_state(const states *m, lw_val atoms)
{
    lw_graph *g = m->g;
    int32_t e = m->c->embed, n = m->r * m->a;
    const char *up = lw_scope_push(g, "state_embedder");
    lw_val query = lw_param(m->b, "query", lw_type_of(LW_F32, 3, 1, 1, e),
                            (lw_init){LW_INIT_NORMAL, 1.0f});
    lw_scope_push(g, "attention");
    query = lw_reshape(g, query, lw_type_of(LW_F32, 2, 1, e));
    lw_val q = columns(g, lw_policy_in_proj(m->b, query), 0, e);
    lw_val kv = lw_policy_in_proj(m->b, atoms);
    lw_val k = columns(g, kv, e, 2 * e), v = columns(g, kv, 2 * e, 3 * e);
    lw_val s = lw_mul(g, k, lw_reshape(g, q, lw_type_of(LW_F32, 1, e)));
    s = lw_scale(g, lw_sum(g, s, LW_OVER_LAST), (float)(1.0 / sqrt((double)e)));
    lw_val w = lw_softmax(g, lw_reshape(g, s, lw_type_of(LW_F32, 2, m->r, m->a)));
    w = lw_policy_times_column(g, v, lw_reshape(g, w, lw_type_of(LW_F32, 1, n)));
    lw_val y = lw_sum(g, lw_reshape(g, w, lw_type_of(LW_F32, 3, m->r, m->a, e)), LW_OVER_MIDDLE);
    y = lw_policy_linear(m->b, "out_proj", y, e, POLICY_GAIN);
    lw_scope_set(g, up);
    return y;
}

/* The last hidden state of a GRU over all A places. */
static lw_val rnn_state(const states *m, lw_val atoms)
{
    lw_graph *g = m->g;
    int32_t e = m->c->embed;
    lw_val rows = lw_reshape(g, atoms, lw_type_of(LW_F32, 2, m->r, m->a * e));
    lw_val h = lw_zeros(g, lw_type_of(LW_F32, 2, m->r, e));
    for (int32_t a = 0; a < m->a; a++)
        h = lw_policy_gru(m->b, "state_embedder.gru", columns(g, rows, a * e, (a + 1) * e), h);
    return h;
}

lw_val lw_policy_join_atoms(const states *m, lw_val atoms, lw_val scale)
{
    lw_graph *g = m->g;
    int32_t e = m->c->embed;
    lw_val rows = lw_reshape(g, atoms, lw_type_of(LW_F32, 2, m->r, m->a * e));
    if (m->c->state == LW_POLICY_STATE_CONCAT)
        return lw_policy_linear(m->b, "state_embedder.transform", rows, e, 1.0);
    if (m->c->state == LW_POLICY_STATE_TRANSFORMER)
        return transformer_state(m, atoms);
    if (m->c->state == LW_POLICY_STATE_RNN)
        return rnn_state(m, atoms);
    lw_val each = lw_reshape(g, atoms, lw_type_of(LW_F32, 3, m->r, m->a, e));
    return lw_policy_times_column(g, lw_sum(g, each, LW_OVER_MIDDLE), scale);
}
