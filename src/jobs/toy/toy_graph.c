/* SPDX-License-Identifier: Apache-2.0 */
/* Points of known distributions, the perceptron, and the field in plain ops. */
#include "jobs/toy/toy_parts.h"

#include <math.h>
#include <stdio.h>

const char *const lw_toy_data_name[LW_TOY_DATAS] = {"two_blobs", "swiss_roll", "checkerboard"};

const lw_toy_balance lw_toy_balances[LW_TOY_BALANCES] = {
    {"baseline", 1.0f, 1.0f, "8.46"},         {"attraction_1_5x", 1.5f, 1.0f, "41.05"},
    {"repulsion_1_5x", 1.0f, 1.5f, "46.28"},  {"attraction_2_0x", 2.0f, 1.0f, "86.16"},
    {"repulsion_2_0x", 1.0f, 2.0f, "112.84"}, {"attraction_only", 1.0f, 0.0f, "177.14"}};

/* ---- points ---------------------------------------------------------------------------------- */

static lw_val draw(lw_graph *g, const char *stream, lw_random_kind kind, lw_val rows,
                   int32_t columns)
{
    return lw_random(g, stream, kind, 0,
                     lw_type_of(LW_F32, 2, lw_val_type(g, rows).dim[0], columns), rows);
}

/* A row of the table [k,2] for each point. */
static lw_val pick(lw_graph *g, const float *table, int32_t k, lw_val rows)
{
    lw_val which = lw_random(g, "toy.which", LW_RANDOM_BELOW, k,
                             lw_type_of(LW_I32, 1, lw_val_type(g, rows).dim[0]), rows);
    return lw_embedding(g, lw_const(g, lw_type_of(LW_F32, 2, k, 2), table), which);
}

/* Centres at (-2.5, 0) and (2.5, 0), standard deviation 0.35. */
static lw_val two_blobs(lw_graph *g, lw_val rows)
{
    static const float centre[] = {-2.5f, 0.0f, 2.5f, 0.0f};
    return lw_add(g, pick(g, centre, 2, rows),
                  lw_scale(g, draw(g, "toy.normal", LW_RANDOM_NORMAL, rows, 2), 0.35f));
}

/* r (cos a, sin a) with a = 1.5 pi (1 + 2 u) and r = a / 4, blurred by 0.05: radius 1.2 to 3.5. */
static lw_val swiss_roll(lw_graph *g, lw_val rows)
{
    const float turn = 1.5f * (float)M_PI;
    lw_val u = draw(g, "toy.uniform", LW_RANDOM_UNIFORM, rows, 1);
    lw_val a = lw_add_f32(g, lw_scale(g, u, 2.0f * turn), turn), r = lw_scale(g, a, 0.25f);
    lw_val at = lw_concat(g, lw_mul(g, r, lw_ew1(g, LW_EW_cos, a)),
                          lw_mul(g, r, lw_ew1(g, LW_EW_sin, a)), 1);
    return lw_add(g, at, lw_scale(g, draw(g, "toy.normal", LW_RANDOM_NORMAL, rows, 2), 0.05f));
}

/* The 8 black squares, of side 1, of a board over -2 .. 2. */
static lw_val checkerboard(lw_graph *g, lw_val rows)
{
    float corner[16];
    for (int i = 0; i < 8; i++) {
        int y = i / 2, x = 2 * (i % 2) + y % 2;
        corner[2 * i] = (float)x - 2.0f;
        corner[2 * i + 1] = (float)y - 2.0f;
    }
    return lw_add(g, pick(g, corner, 8, rows), draw(g, "toy.uniform", LW_RANDOM_UNIFORM, rows, 2));
}

lw_val lw_toy_real(lw_graph *g, lw_toy_points data, lw_val rows)
{
    static lw_val (*const points[LW_TOY_DATAS])(lw_graph *, lw_val) = {two_blobs, swiss_roll,
                                                                       checkerboard};
    return points[data](g, rows);
}

/* ---- generator ------------------------------------------------------------------------------- */

lw_val lw_toy_generate(lw_builder *b, const lw_toy_config *c)
{
    lw_val x = draw(b->g, "toy.noise", LW_RANDOM_NORMAL, b->rows, c->noise);
    char name[32];
    for (int32_t i = 0; i < c->depth; i++) {
        snprintf(name, sizeof name, "layers.%d", (int)i);
        x = lw_silu(b->g, lw_linear(b, name, x, c->hidden, true));
    }
    return lw_linear(b, "out", x, 2, true);
}

/* ---- field ----------------------------------------------------------------------------------- */

/* log sum over a row of exp(l) [r,1], as the mean of l - log p under p = softmax(l). */
static lw_val log_sum(lw_graph *g, lw_val l)
{
    lw_val p = lw_softmax(g, l);
    lw_val log_p = lw_ew1(g, LW_EW_log, lw_add_f32(g, p, 1e-37f)); /* p 0: no NaN */
    return lw_sum(g, lw_mul(g, p, lw_sub(g, l, log_p)), LW_OVER_LAST);
}

/* l [n,m] and the sums of its rows [n,1] and columns [m]: sqrt(softmax over j * softmax over i). */
static lw_val affinity(lw_graph *g, lw_val l, lw_val row, lw_val column)
{
    column = lw_reshape(g, column, lw_type_of(LW_F32, 1, lw_val_type(g, l).dim[1]));
    l = lw_sub(g, lw_sub(g, l, lw_scale(g, row, 0.5f)), lw_scale(g, column, 0.5f));
    return lw_ew1(g, LW_EW_exp, l);
}

static lw_val pull(lw_graph *g, lw_val a, lw_val sum, lw_val to, lw_val x)
{
    return lw_sub(g, lw_matmul(g, a, to, false, false), lw_mul(g, sum, x));
}

/*
 * Algorithm 2: l = -d / tau (a point is 1e6 away from itself), A = sqrt(softmax over targets * softmax
 * over samples), and with P = sum_j A+_ij, N = sum_k A-_ik
 *
 *   V_i = attraction N sum_j A+_ij (y_j - x_i) - repulsion P sum_k A-_ik (x_k - x_i)
 *
 * Balanced, x_i falls out and V is that of the drift op's plain form. It is written out here since there
 * the two parts are one sum, and a plane is small enough for matrices [n,m].
 */
lw_val lw_toy_field(lw_graph *g, lw_val x, lw_val y, float temperature, const lw_toy_balance *w)
{
    int32_t n = lw_val_type(g, x).dim[0];
    float *self = lw_calloc((size_t)n * (size_t)n, sizeof *self);
    if (!self)
        return LW_NOVAL;
    for (int32_t i = 0; i < n; i++)
        self[(size_t)i * (size_t)n + (size_t)i] = 1e6f;
    lw_val far = lw_const(g, lw_type_of(LW_F32, 2, n, n), self);
    lw_free(&self);
    const float by = -1.0f / temperature;
    lw_val to_y = lw_scale(g, lw_pair_distance(g, x, y, LW_DISTANCE_L2), by);
    lw_val to_x = lw_scale(g, lw_add(g, lw_pair_distance(g, x, x, LW_DISTANCE_L2), far), by);
    lw_val from_y = lw_scale(g, lw_pair_distance(g, y, x, LW_DISTANCE_L2), by);
    lw_val row = log_sum(g, lw_concat(g, to_y, to_x, 1));
    lw_val yes = affinity(g, to_y, row, log_sum(g, from_y));
    lw_val no = affinity(g, to_x, row, log_sum(g, to_x)); /* symmetric: columns are rows */
    lw_val P = lw_sum(g, yes, LW_OVER_LAST), N = lw_sum(g, no, LW_OVER_LAST);
    return lw_sub(g, lw_mul(g, lw_scale(g, N, w->attraction), pull(g, yes, P, y, x)),
                  lw_mul(g, lw_scale(g, P, w->repulsion), pull(g, no, N, x, x)));
}
