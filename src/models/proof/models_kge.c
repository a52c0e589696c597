/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of knowledge graph embeddings. */
#include "models/models.h"

#include <math.h>

/* Under roots: their slope at 0 would not be finite. */
#define TINY 1e-20f

bool lw_kge_is_distance(const lw_kge_config *c)
{
    return c->kind == LW_KGE_TRANSE || c->kind == LW_KGE_ROTATE;
}

static bool is_complex(const lw_kge_config *c)
{
    return c->kind == LW_KGE_ROTATE || c->kind == LW_KGE_COMPLEX;
}

/* f32 numbers of an entity's row, of a relation's row. */
static int32_t width_of(const lw_kge_config *c)
{
    return is_complex(c) ? 2 * c->dim : c->dim;
}

static int32_t relation_width_of(const lw_kge_config *c)
{
    return c->kind == LW_KGE_COMPLEX ? 2 * c->dim : c->dim;
}

int lw_kge_check(lw_kge_config *c)
{
    if (c->kind < 0 || c->kind >= LW_KGE_KINDS)
        return lw_fail(LW_EUSAGE, "model %d is none of " LW_KGE_CHOICES, (int)c->kind);
    if (c->dim < 1 || c->dim > 65536)
        return lw_fail(LW_EUSAGE, "embedding-dim is %d, may be 1 .. 65536", (int)c->dim);
    if (c->entities < 1 || c->relations < 1)
        return lw_fail(LW_EUSAGE, "an embedding needs entities and relations");
    if ((int64_t)c->entities * width_of(c) >= INT32_MAX)
        return lw_fail(LW_EUSAGE, "embedding-dim: %d x %d numbers are too many", (int)c->entities,
                       (int)width_of(c));
    if (c->kind == LW_KGE_TRANSE && c->norm != 1 && c->norm != 2)
        return lw_fail(LW_EUSAGE, "norm is %d, may be 1 or 2", (int)c->norm);
    if (!isfinite(c->gamma) || c->gamma < 0.0f || !isfinite(c->range) || c->range < 0.0f)
        return lw_fail(LW_EUSAGE, "gamma and the initial range may not be negative");
    if (c->range == 0.0f)
        c->range = lw_kge_is_distance(c) ? (c->gamma + 2.0f) / (float)c->dim : 1e-2f;
    return 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

lw_val lw_kge_entities(lw_builder *b, const lw_kge_config *c)
{
    return lw_param(b, "entity_embedding", lw_type_of(LW_F32, 2, c->entities, width_of(c)),
                    (lw_init){LW_INIT_UNIFORM, c->range});
}

lw_val lw_kge_relations(lw_builder *b, const lw_kge_config *c)
{
    int32_t n = c->inverse ? 2 * c->relations : c->relations;
    return lw_param(b, "relation_embedding", lw_type_of(LW_F32, 2, n, relation_width_of(c)),
                    (lw_init){LW_INIT_UNIFORM, c->range});
}

/* ---- complex numbers: real parts, then imaginary parts --------------------------------------- */

typedef struct pair {
    lw_val re, im;
} pair;

static pair parts(lw_graph *g, const lw_kge_config *c, lw_val rows)
{
    return (pair){lw_slice(g, rows, 1, 0, c->dim), lw_slice(g, rows, 1, c->dim, 2 * c->dim)};
}

static lw_val times(lw_graph *g, pair a, pair b)
{
    lw_val re = lw_sub(g, lw_mul(g, a.re, b.re), lw_mul(g, a.im, b.im));
    lw_val im = lw_add(g, lw_mul(g, a.re, b.im), lw_mul(g, a.im, b.re));
    return lw_concat(g, re, im, 1);
}

static pair unit(lw_graph *g, const lw_kge_config *c, lw_val relation)
{
    lw_val phase = lw_scale(g, relation, (float)(M_PI / (double)c->range));
    return (pair){lw_ew1(g, LW_EW_cos, phase), lw_ew1(g, LW_EW_sin, phase)};
}

static lw_val squares(lw_graph *g, pair z)
{
    return lw_add(g, lw_sqr(g, z.re), lw_sqr(g, z.im));
}

static lw_val root(lw_graph *g, lw_val x)
{
    return lw_ew1(g, LW_EW_sqrt, lw_add_f32(g, x, TINY));
}

/* ---- scores ---------------------------------------------------------------------------------- */

lw_val lw_kge_query(lw_graph *g, const lw_kge_config *c, lw_val entity, lw_val relation,
                    lw_val side)
{
    pair r;
    switch ((lw_kge_kind)c->kind) {
    case LW_KGE_TRANSE:
        return lw_add(g, entity, lw_mul(g, relation, side));
    case LW_KGE_DISTMULT:
        return lw_mul(g, entity, relation);
    case LW_KGE_ROTATE:
        r = unit(g, c, relation);
        break;
    default:
        r = parts(g, c, relation);
        break;
    }
    r.im = lw_mul(g, r.im, side); /* conj(r) where the head is asked for */
    return times(g, parts(g, c, entity), r);
}

/* gamma - distance */
static lw_val from_gamma(lw_graph *g, const lw_kge_config *c, lw_val distance)
{
    return lw_add_f32(g, lw_ew1(g, LW_EW_neg, distance), c->gamma);
}

lw_val lw_kge_score_all(lw_graph *g, const lw_kge_config *c, lw_val query, lw_val rows)
{
    if (!lw_kge_is_distance(c))
        return lw_matmul(g, query, rows, false, true);
    lw_distance d = c->kind == LW_KGE_ROTATE ? LW_DISTANCE_MODULUS
                    : c->norm == 1           ? LW_DISTANCE_L1
                                             : LW_DISTANCE_L2;
    return from_gamma(g, c, lw_pair_distance(g, query, rows, d));
}

lw_val lw_kge_score_each(lw_graph *g, const lw_kge_config *c, lw_val query, lw_val rows)
{
    if (!lw_kge_is_distance(c))
        return lw_sum(g, lw_mul(g, query, rows), LW_OVER_LAST);
    lw_val d = lw_sub(g, query, rows);
    if (c->kind == LW_KGE_ROTATE)
        d = root(g, squares(g, parts(g, c, d)));
    else
        d = c->norm == 1 ? lw_ew1(g, LW_EW_abs, d) : lw_sqr(g, d);
    d = lw_sum(g, d, LW_OVER_LAST);
    if (c->kind == LW_KGE_TRANSE && c->norm == 2)
        d = root(g, d);
    return from_gamma(g, c, d);
}

lw_val lw_kge_cubes(lw_graph *g, const lw_kge_config *c, lw_val rows)
{
    if (!lw_val_ok(rows))
        return rows;
    bool halves = is_complex(c) && lw_type_last(lw_val_type(g, rows)) == 2 * c->dim;
    lw_val square = halves ? squares(g, parts(g, c, rows)) : lw_sqr(g, rows);
    return lw_sum(g, lw_mul(g, square, root(g, square)), LW_OVER_LAST);
}
