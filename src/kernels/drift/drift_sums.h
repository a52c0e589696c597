/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift field: temperatures and normalisers.
 *
 * With r_i and c_j the least distances of a sample and of a target and b = 1 / (unit tau), all
 * exponentials are of non-positive numbers and no normaliser leaves [1, M]:
 *   R_i = sum_j exp(-(d_ij - r_i) b)    C_j = sum_i exp(-(d_ij - c_j) b)
 *   sqrt(softmax_j softmax_i) = E_ij / sqrt(R_i C_j),    E_ij = exp(-(d_ij - (r_i + c_j) / 2) b)
 *
 * One exponential serves all three, as
 *   R_i = e^{(r_i - C) b / 2} sum_j E_ij u_j,  u_j = e^{-(c_j - C) b / 2},  C = least c
 *   C_j = e^{(c_j - R) b / 2} sum_i E_ij v_i,  v_i = e^{-(r_i - R) b / 2},  R = least r
 *
 * as long as no |r_i - c_j| b / 2 exceeds DRIFT_REACH: then the largest term of any sum is at least
 * e^-60 while what underflows is below e^-87. Groups that spread further take two exponentials.
 * When b of one temperature is a whole multiple of another's, its exponential is a power of the
 * other's. Nothing below e^-87 is let into the arithmetic: it counts for nothing and denormal
 * numbers are slow.
 */
#ifndef LW_KERNELS_DRIFT_SUMS_H
#define LW_KERNELS_DRIFT_SUMS_H

#include "kernels/drift/drift_distance.h"

#define DRIFT_REACH 60.0f
#define DRIFT_LEAST (-87.3f)
#define DRIFT_MOST_POWER 16

/* Temperatures as factors: exp argument per distance, and which power of which base each one is. */
typedef struct drift_taus {
    int k, bases;
    int base[LW_DRIFT_MAX_TAU]; /* index of the base temperature; itself for a base */
    int power[LW_DRIFT_MAX_TAU];
    float b[LW_DRIFT_MAX_TAU];     /* 1 / (unit tau factor) */
    float least[LW_DRIFT_MAX_TAU]; /* exponentials of the base up to this count as 0, so that powers
                                      stay normal numbers */
} drift_taus;

static drift_taus drift_taus_of(const drift_job *q)
{
    drift_taus t = {.k = q->s->k};
    for (int k = 0; k < t.k; k++) {
        t.base[k] = k;
        t.power[k] = 1;
        t.b[k] = (float)(1.0 / (q->rule.unit * q->rule.tau_factor * q->s->tau[k]));
        for (int e = 0; e < t.k; e++) {
            double ratio = q->s->tau[e] / q->s->tau[k], whole = floor(ratio + 0.5);
            if (whole > t.power[k] && whole <= DRIFT_MOST_POWER &&
                fabs(ratio - whole) < 1e-7 * whole) {
                t.base[k] = e;
                t.power[k] = (int)whole;
            }
        }
    }
    for (int k = 0; k < t.k; k++) { /* a base must be one itself */
        while (t.base[t.base[k]] != t.base[k]) {
            t.power[k] *= t.power[t.base[k]];
            t.base[k] = t.base[t.base[k]];
        }
        if (t.power[k] > DRIFT_MOST_POWER) { /* of many steps: rounding grows with the power */
            t.base[k] = k;
            t.power[k] = 1;
        }
    }
    for (int k = 0; k < t.k; k++) {
        t.least[k] = (float)exp((double)DRIFT_LEAST / t.power[k]);
        t.bases += t.base[k] == k;
    }
    return t;
}

/* 0 and not the least normal number where it underflows: a product with that one would be denormal,
 * and on some machines a denormal result takes 150 cycles. Each sample meets one, in itself. */
LW_WORD vf drift_exp(vf x)
{
    vf least = v_set1(DRIFT_LEAST);
    return v_keep(v_gt(x, least), v_exp_normal(v_max(x, least)));
}

/* e^p, 0 below least; p is a constant where this is called but for rare powers. */
LW_WORD vf drift_power(vf e, vf least, int p)
{
    if (p == 1)
        return e;
    e = v_keep(v_gt(e, least), e);
    if (p == 2 || p == 4 || p == 10) {
        vf e2 = v_mul(e, e);
        if (p == 2)
            return e2;
        vf e4 = v_mul(e2, e2);
        return p == 4 ? e4 : v_mul(v_mul(e4, e4), e2);
    }
    vf r = e;
    for (p--; p > 0; p >>= 1) { /* no square that is not used: it may be denormal */
        if (p & 1)
            r = v_mul(r, e);
        if (p > 1)
            e = v_mul(e, e);
    }
    return r;
}

/* Calls f(..., p) with p constant for the powers of the usual temperatures. */
#define DRIFT_BY_POWER(p, f, ...) \
    do {                          \
        if ((p) == 1)             \
            f(__VA_ARGS__, 1);    \
        else if ((p) == 4)        \
            f(__VA_ARGS__, 4);    \
        else if ((p) == 10)       \
            f(__VA_ARGS__, 10);   \
        else                      \
            f(__VA_ARGS__, (p));  \
    } while (0)

/* The masked distance of a sample to itself joins the minima. */
static void drift_close_minima(const drift_job *q, float self)
{
    for (ptrdiff_t i = 0; i < q->s->n; i++) {
        q->rmin[i] = q->rmin[i] < self ? q->rmin[i] : self;
        q->cmin[i] = q->cmin[i] < self ? q->cmin[i] : self;
    }
}

/* to[i] = exp(b (shift - from[i])). */
static void drift_factor(float *to, const float *from, ptrdiff_t n, float b, float shift)
{
    for (ptrdiff_t i = 0; i < n; i += VL) {
        ptrdiff_t m = n - i < VL ? n - i : VL;
        vf x = v_mul(v_sub(v_set1(shift), v_load_n(from + i, m)), v_set1(b));
        v_store_n(to + i, drift_exp(x), m);
    }
}

/* The least and the greatest of n distances. */
static void drift_extremes(const float *d, ptrdiff_t n, float *least, float *most)
{
    vf low = v_set1(d[0]), high = low, first = low;
    for (ptrdiff_t i = 0; i < n; i += VL) {
        ptrdiff_t live = n - i < VL ? n - i : VL;
        vf x = v_load_n(d + i, live);
        if (live < VL) /* what is not there: 0, less than all distances are */
            x = v_select_gt(x, v_zero(), x, first);
        low = v_min(low, x);
        high = v_max(high, x);
    }
    *least = v_hmin(low);
    *most = v_hmax(high);
}

/* u and v_i of the group, and range = {1 if one exponential serves all sums, R, C}. */
static void drift_factors(const drift_job *q, const drift_taus *t)
{
    ptrdiff_t n = q->s->n, m = q->d.m, lp = q->d.lp;
    float r0, r1, c0, c1, b = 0;
    drift_extremes(q->rmin, n, &r0, &r1);
    drift_extremes(q->cmin, m, &c0, &c1);
    for (int k = 0; k < t->k; k++)
        b = t->b[k] > b ? t->b[k] : b;
    float spread = r1 - c0 > c1 - r0 ? r1 - c0 : c1 - r0;
    int one = !q->s->rows_only && 0.5f * spread * b <= DRIFT_REACH;
    q->range[0] = (float)one;
    q->range[1] = r0;
    q->range[2] = c0;
    for (int k = 0; k < t->k; k++) {
        float *u = q->u + k * m, *v = q->v_i + k * lp;
        if (one) {
            drift_factor(u, q->cmin, m, 0.5f * t->b[k], c0);
            drift_factor(v, q->rmin, n, 0.5f * t->b[k], r0);
        } else {
            drift_fill(u, m, 1.0f);
            drift_fill(v, n, 1.0f);
        }
        drift_fill(v + n, lp - n, 0.0f);
    }
}

/* to = exp(b (shift - d)), shift = by_r r_i + by_c c_j. */
static void drift_exponentials(const drift_job *q, float *to, const float *d, drift_strip st,
                               ptrdiff_t j0, ptrdiff_t n, float b, float by_r, float by_c)
{
    vf bv = v_set1(b), br = v_set1(by_r);
    for (ptrdiff_t j = 0; j < n; j++, d += st.lanes, to += st.lanes) {
        vf c = v_set1(by_c * q->cmin[j0 + j]);
        for (ptrdiff_t i = 0; i < st.lanes; i += VL) {
            vf shift = v_fma(v_load(q->rmin + st.i0 + i), br, c);
            v_store(to + i, drift_exp(v_mul(v_sub(shift, v_load(d + i)), bv)));
        }
    }
}

/* Four targets (or fewer: the last one again, its result unused): rsum += e^p u, csum = sum
 * e^p v. lanes: of the strip; where it is a constant, loops are none. */
LW_WORD void drift_sum_rows(const drift_job *q, float *rsum, float *csum, const float *e,
                            drift_strip st, ptrdiff_t j0, ptrdiff_t n, int k, vf least,
                            const ptrdiff_t lanes, const int p)
{
    const float *v = q->v_i + k * q->d.lp + st.i0, *u = q->u + k * q->d.m + j0;
    const float *e1 = n > 1 ? e + lanes : e, *e2 = n > 2 ? e1 + lanes : e1,
                *e3 = n > 3 ? e2 + lanes : e2;
    vf u0 = v_set1(u[0]), u1 = n > 1 ? v_set1(u[1]) : v_zero(),
       u2 = n > 2 ? v_set1(u[2]) : v_zero(), u3 = n > 3 ? v_set1(u[3]) : v_zero();
    vf c0 = v_zero(), c1 = c0, c2 = c0, c3 = c0;
    for (ptrdiff_t i = 0; i < lanes; i += VL) {
        vf vv = v_load(v + i), x, r, r2;
        x = drift_power(v_load(e + i), least, p);
        r = v_mul(x, u0);
        c0 = v_fma(x, vv, c0);
        x = drift_power(v_load(e1 + i), least, p);
        r = v_fma(x, u1, r);
        c1 = v_fma(x, vv, c1);
        x = drift_power(v_load(e2 + i), least, p);
        r2 = v_mul(x, u2); /* two chains: what is added to rsum is waited for the next time */
        c2 = v_fma(x, vv, c2);
        x = drift_power(v_load(e3 + i), least, p);
        r2 = v_fma(x, u3, r2);
        c3 = v_fma(x, vv, c3);
        v_store(rsum + i, v_add(v_load(rsum + i), v_add(r, r2)));
    }
    float four[4];
    v_hsum4(four, c0, c1, c2, c3);
    for (ptrdiff_t j = 0; j < n && j < 4; j++)
        csum[j] += four[j];
}

LW_WORD void drift_sum_power(const drift_job *q, float *rsum, float *csum, const float *e,
                             drift_strip st, ptrdiff_t j0, ptrdiff_t n, int k, vf least,
                             const ptrdiff_t lanes, const int p)
{
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4)
        drift_sum_rows(q, rsum, csum + j, e + j * lanes, st, j0 + j, 4, k, least, lanes, p);
    if (j < n)
        drift_sum_rows(q, rsum, csum + j, e + j * lanes, st, j0 + j, n - j, k, least, lanes, p);
}

/* Sums of every temperature of one base from its exponentials e. rows: into rsum; cols: into csum;
 * sums not asked for go nowhere. */
static void drift_sum_tile(const drift_job *q, float *csum, const drift_taus *t, int base,
                           const float *e, drift_strip st, ptrdiff_t j0, ptrdiff_t n, int rows,
                           int cols)
{
    float no_rows[LW_DRIFT_LANES] = {0}, no_cols[LW_DRIFT_ROWS] = {0};
    for (int k = 0; k < t->k; k++) {
        if (t->base[k] != base)
            continue;
        float *r = rows ? q->rsum + k * q->d.lp + st.i0 : no_rows,
              *c = cols ? csum + k * q->d.m + j0 : no_cols;
        vf least = v_set1(t->least[k]);
        if (st.lanes == 16)
            DRIFT_BY_POWER(t->power[k], drift_sum_power, q, r, c, e, st, j0, n, k, least, 16);
        else
            DRIFT_BY_POWER(t->power[k], drift_sum_power, q, r, c, e, st, j0, n, k, least, st.lanes);
    }
}

/* Sums of a strip over all targets into rsum, and its part of the targets' sums into
 * csum [K][m]. */
static void drift_sums(const drift_job *q, float *csum, const drift_taus *t, drift_strip st,
                       float self)
{
    int one = q->range[0] > 0;
    for (int k = 0; k < t->k; k++)
        drift_fill(q->rsum + k * q->d.lp + st.i0, st.lanes, 0.0f);
    for (ptrdiff_t j0 = 0; j0 < q->d.m; j0 += LW_DRIFT_ROWS) {
        ptrdiff_t n = q->d.m - j0 < LW_DRIFT_ROWS ? q->d.m - j0 : LW_DRIFT_ROWS;
        float *d = drift_tile(q, st, j0, n, self);
        drift_fetch(q, 16);
        for (int k = 0; k < t->k; k++) {
            float *e = q->powers_kept ? d : q->buf_e, b = t->b[k];
            if (t->base[k] != k)
                continue;
            if (one || q->s->rows_only) {
                float half = one ? 0.5f : 1.0f;
                drift_exponentials(q, e, d, st, j0, n, b, half, one ? half : 0.0f);
                drift_sum_tile(q, csum, t, k, e, st, j0, n, 1, one);
                continue;
            }
            drift_exponentials(q, e, d, st, j0, n, b, 1.0f, 0.0f);
            drift_sum_tile(q, csum, t, k, e, st, j0, n, 1, 0);
            drift_exponentials(q, e, d, st, j0, n, b, 0.0f, 1.0f);
            drift_sum_tile(q, csum, t, k, e, st, j0, n, 0, 1);
        }
    }
}

/* rsum of a strip becomes 1 / sqrt(R) (or 1 / R). */
static void drift_close_rows(const drift_job *q, const drift_taus *t, drift_strip st)
{
    for (int k = 0; k < t->k; k++)
        for (ptrdiff_t i = 0; i < st.lanes; i += VL) {
            float *at = q->rsum + k * q->d.lp + st.i0 + i;
            vf r = v_load(at), low = v_load(q->rmin + st.i0 + i);
            if (q->range[0] > 0)
                r = v_mul(r, v_exp(v_mul(v_sub(low, v_set1(q->range[2])), v_set1(0.5f * t->b[k]))));
            v_store(at, v_div(v_set1(1.0f), q->s->rows_only ? r : v_sqrt(r)));
        }
}

/* csum becomes w / sqrt(C), or w for row softmax only. */
static void drift_close_columns(const drift_job *q, const drift_taus *t)
{
    for (int k = 0; k < t->k; k++)
        for (ptrdiff_t j = 0; j < q->d.m; j += VL) {
            ptrdiff_t n = q->d.m - j < VL ? q->d.m - j : VL;
            float *at = q->csum + k * q->d.m + j;
            vf c = v_load_n(at, n), low = v_load_n(q->cmin + j, n);
            if (q->range[0] > 0)
                c = v_mul(c, v_exp(v_mul(v_sub(low, v_set1(q->range[1])), v_set1(0.5f * t->b[k]))));
            vf w = v_load_n(q->w + j, n);
            v_store_n(at, q->s->rows_only ? w : v_div(w, v_sqrt(c)), n);
        }
}

#endif
