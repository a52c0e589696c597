/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift field: V of a strip from what was gathered.
 *
 * V = sum_neg A * sum_pos A t - sum_pos A * sum_neg A t loses what the two terms have in common:
 * where samples have copies among negatives and positives alike, or all that reaches them lies
 * close by and far from the centre, nothing may be left. A strip whose V is below drift_slight of
 * its terms is done again at that temperature from the differences t_j - x_i of the operands as
 * given, in which what they have in common is zero.
 */
#ifndef LW_KERNELS_DRIFT_CLOSE_H
#define LW_KERNELS_DRIFT_CLOSE_H

#include "kernels/drift/drift_side.h"

static const double drift_slight = 1.0 / 256;

/* Products V_a . V_b, a <= b, and per temperature the squares of the terms of V. */
typedef struct drift_moments {
    vf products[LW_DRIFT_MAX_TAU * (LW_DRIFT_MAX_TAU + 1) / 2], terms[LW_DRIFT_MAX_TAU];
} drift_moments;

/* What affinity sums are multiplied by, so that V comes in its unit. */
static float drift_unit(const drift_job *q)
{
    return (float)(1.0 / (q->rule.v_unit * q->v_scale));
}

/* Affinity sums of sample i of a strip at temperature k. */
static float drift_sum_of(const drift_job *q, int positive, int k, ptrdiff_t i)
{
    return q->sums[(positive * q->s->k + k) * q->d.lanes + i];
}

/* V of sample i of a strip at every temperature, from what lies above the floor and the floor's
 * part. */
LW_WORD void drift_close_sample(const drift_job *q, drift_moments *acc, drift_strip st, ptrdiff_t i,
                                float unit, const int k_count)
{
    ptrdiff_t cp = q->d.cp, plane = q->s->n * cp, side = q->d.lanes * cp;
    float *v = q->v + (st.i0 + i) * cp;
    const float *out = q->out + i * cp;
    vf low = v_set1(drift_floor(q));
    vf neg[LW_DRIFT_MAX_TAU], pos[LW_DRIFT_MAX_TAU];
    for (int k = 0; k < k_count; k++) {
        neg[k] = v_set1(drift_sum_of(q, 0, k, i) * unit);
        pos[k] = v_set1(drift_sum_of(q, 1, k, i) * unit);
    }
    for (ptrdiff_t c = 0; c < cp; c += VL) {
        vf x[LW_DRIFT_MAX_TAU], low_n = v_mul(low, v_load(q->base + c)),
                                low_p = v_mul(low, v_load(q->base + cp + c));
        for (int k = 0; k < k_count; k++) {
            vf on = v_add(v_load(v + k * plane + c), low_n),
               op = v_add(v_load(out + k * side + c), low_p);
            vf term = v_mul(pos[k], on);
            x[k] = v_fms(neg[k], op, term);
            acc->terms[k] = v_fma(term, term, acc->terms[k]);
            v_store(v + k * plane + c, x[k]);
        }
        vf *at = acc->products;
        for (int a = 0; a < k_count; a++)
            for (int b = a; b < k_count; b++, at++)
                *at = v_fma(x[a], x[b], *at);
    }
}

/* V of sample i again in the moments, as drift_close_sample has it. */
static void drift_close_again(const drift_job *q, vf *acc, drift_strip st, ptrdiff_t i)
{
    ptrdiff_t cp = q->d.cp, plane = q->s->n * cp;
    const float *v = q->v + (st.i0 + i) * cp;
    for (ptrdiff_t c = 0; c < cp; c += VL) {
        vf *at = acc;
        for (int a = 0; a < q->s->k; a++)
            for (int b = a; b < q->s->k; b++, at++)
                *at = v_fma(v_load(v + a * plane + c), v_load(v + b * plane + c), *at);
    }
}

/* out += a (t_j - x_i) */
static void drift_exact_pair(const drift_job *q, float *out, float a, ptrdiff_t j, ptrdiff_t i)
{
    const float *t = drift_target(q, j), *x = drift_target(q, i);
    for (ptrdiff_t c = 0; c < q->s->c; c += VL) {
        ptrdiff_t n = q->s->c - c < VL ? q->s->c - c : VL;
        vf difference = v_sub(v_load_n(t + c, n), v_load_n(x + c, n));
        v_store(out + c, v_fma(v_set1(a), difference, v_load(out + c)));
    }
}

/* Sums of A (t - x) of one side at temperature k into out [live][cp]. */
static void drift_exact_side(const drift_job *q, float *out, const drift_taus *t, int k, float self,
                             drift_strip st, int positive)
{
    drift_cut cut = drift_cut_of(q, positive);
    drift_tally tally = {0};
    float sums[LW_DRIFT_LANES] = {0}, floor_at = drift_floor(q);
    drift_fill(out, st.live * q->d.cp, 0.0f);
    for (ptrdiff_t j0 = cut.from; j0 < cut.to; j0 += cut.step) {
        ptrdiff_t n = cut.to - j0 < cut.step ? cut.to - j0 : cut.step;
        const float *e = drift_tile_powers(q, t, t->base[k], drift_tile_kept(q, self, st, j0, n),
                                           st, j0, n);
        drift_affinity(q, &tally, sums, e, st, j0, n, k, v_set1(t->least[k]), floor_at,
                       t->power[k]);
        for (ptrdiff_t i = 0; i < st.live; i++)
            for (ptrdiff_t j = 0; j < n; j++) {
                float above = q->buf_a[i / 16 * 16 * n + j * 16 + i % 16],
                      a = above + floor_at * q->w[j0 + j];
                if (a > 0)
                    drift_exact_pair(q, out + i * q->d.cp, a, j0 + j, st.i0 + i);
            }
    }
}

/* V of a strip at temperature k from differences. */
static void drift_exact(const drift_job *q, const drift_taus *t, int k, float self, drift_strip st)
{
    ptrdiff_t cp = q->d.cp;
    float *v = drift_gathered(q, 0, k, st), *on = v, *op = q->out, unit = drift_unit(q);
    drift_exact_side(q, on, t, k, self, st, 0);
    drift_exact_side(q, op, t, k, self, st, 1);
    for (ptrdiff_t i = 0; i < st.live; i++) {
        vf neg = v_set1(drift_sum_of(q, 0, k, i) * unit),
           pos = v_set1(drift_sum_of(q, 1, k, i) * unit);
        for (ptrdiff_t c = i * cp; c < (i + 1) * cp; c += VL)
            v_store(v + c, v_fms(neg, v_load(op + c), v_mul(pos, v_load(on + c))));
    }
}

/* Adds up what a few samples left. */
static void drift_moments_add(double *to, vf *from, ptrdiff_t n)
{
    for (ptrdiff_t k = 0; k < n; k++) {
        to[k] += v_hsum_d(from[k]);
        from[k] = v_zero();
    }
}

/* V of a strip for every temperature, and its products V_a . V_b added to moments. */
static void drift_close(const drift_job *q, double *moments, const drift_taus *t, float self,
                        drift_strip st)
{
    drift_moments acc;
    double products[LW_DRIFT_MAX_TAU * (LW_DRIFT_MAX_TAU + 1) / 2] = {0},
                                                                terms[LW_DRIFT_MAX_TAU] = {0};
    int k_count = q->s->k, again = 0;
    ptrdiff_t diagonal = 0;
    float unit = drift_unit(q);
    for (ptrdiff_t k = 0; k < q->d.moments; k++)
        acc.products[k] = v_zero();
    for (int k = 0; k < k_count; k++)
        acc.terms[k] = v_zero();
    for (ptrdiff_t i = 0; i < st.live; i++) {
        if (k_count == 3)
            drift_close_sample(q, &acc, st, i, unit, 3);
        else
            drift_close_sample(q, &acc, st, i, unit, k_count);
        if (i % 8 == 7 || i == st.live - 1) {
            drift_moments_add(products, acc.products, q->d.moments);
            drift_moments_add(terms, acc.terms, k_count);
        }
    }
    for (int k = 0; k < k_count; diagonal += k_count - k, k++)
        if (products[diagonal] < drift_slight * drift_slight * terms[k]) {
            drift_exact(q, t, k, self, st);
            again = 1;
        }
    for (ptrdiff_t i = 0; again && i < st.live; i++) {
        if (i == 0)
            memset(products, 0, sizeof products);
        drift_close_again(q, acc.products, st, i);
        drift_moments_add(products, acc.products, q->d.moments);
    }
    for (ptrdiff_t k = 0; k < q->d.moments; k++)
        moments[k] += products[k];
}

/* V of a strip for every temperature, and its products V_a . V_b added to moments. */
static void drift_field(const drift_job *q, double *moments, const drift_taus *t, float self,
                        drift_strip st)
{
    drift_fill(q->sums, 2 * t->k * q->d.lanes, 0.0f);
    drift_side(q, t, self, st, 0);
    drift_side(q, t, self, st, 1);
    drift_close(q, moments, t, self, st);
}

#endif
