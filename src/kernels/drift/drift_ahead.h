/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift field: the first pass over the distances.
 *
 * It finds S and the minima. Where distances are too many to keep, each further pass costs the
 * products again, so it also notes near pairs (drift_near.h) and takes the sums of drift_sums.h, ahead
 * of S: at a guess S' of it.
 * With y = d - S', b' = 1 / (S' tau) and b = 1 / (S tau), a row (or column) has
 *
 *   log sum e^{-b y} = log sum e^{-b' y} - e mu + e^2 kappa / 2 + r,   e = b - b',
 *   mu, kappa = mean and variance of y under weights e^{-b' y},   |r| <= 0.1 (|e| range)^3 / 6,
 *
 * range being the largest less the least distance (third central moment of a bounded variable).
 * drift_ahead_holds lets these sums stand where r < 2e-7 and no exponential can leave the normal
 * numbers; else the group's sums are taken by another pass, as there.
 *
 * S' is a mean over LW_DRIFT_LANES samples spread over the group, corrected by root mean square
 * distances, which are known without looking at pairs: of each sample where near pairs are noted,
 * else of all. Within 2e-5 for 4,096 x 8,192 normal vectors, 2e-4 where these are in 16 clusters.
 */
#ifndef LW_KERNELS_DRIFT_AHEAD_H
#define LW_KERNELS_DRIFT_AHEAD_H

#include "base/memory.h"
#include "kernels/drift/drift_near.h"

/* A group's share of the guess from some of its targets: sums of w d and w d^2 of sampled pairs. And
 * of the sums that limits of near pairs come from, [KINDS][K][LANES], unless `near` is NULL. */
static void drift_probe(const drift_job *q, double *to, float *near, ptrdiff_t j0, ptrdiff_t j1)
{
    drift_probes p;
    vf d_sum = v_zero(), d2_sum = v_zero();
    ptrdiff_t n = q->s->n, kind = q->s->k * LW_DRIFT_LANES, rows;
    double weight, square = drift_mean_square(q, &weight);
    drift_near_guess guess = drift_near_guess_of(q, sqrt(square));
    drift_probes_open(&p, q, 0, n);
    to[0] = to[1] = 0;
    if (near)
        drift_fill(near, LW_DRIFT_NEAR_KINDS * kind, 0.0f);
    for (ptrdiff_t j = j0; j < j1; j += rows) {
        ptrdiff_t end = j < n && n < j1 ? n : j1;
        rows = end - j < LW_DRIFT_ROWS ? end - j : LW_DRIFT_ROWS;
        drift_probe_squares(&p, j, rows);
        for (ptrdiff_t l = 0; l < rows; l++)
            for (ptrdiff_t i = 0; i < p.st.lanes; i += VL) {
                vf d2 = v_load(q->buf_d + l * p.st.lanes + i);
                vf w = v_mul(v_set1(q->w[j + l]), v_load(p.on + i));
                d2_sum = v_fma(v_mul(d2, v_set1(0x1p-40f)), w, d2_sum); /* w may be large */
                d_sum = v_fma(v_sqrt(d2), w, d_sum);
            }
        to[0] += v_hsum_d(d_sum);
        to[1] += v_hsum_d(d2_sum) * 0x1p40;
        d_sum = d2_sum = v_zero();
        if (near)
            drift_near_sums(q, near + (j < n ? DRIFT_OWN : DRIFT_ROW) * kind, &guess, &p, j, rows,
                            j < n);
    }
    if (!near)
        return;
    for (ptrdiff_t i = 0; i < kind; i++) /* a row has both */
        near[DRIFT_ROW * kind + i] += near[DRIFT_OWN * kind + i];
    drift_probes_open(&p, q, n, q->d.m - n);
    for (ptrdiff_t j = j0; j < j1 && j < n; j += rows) {
        ptrdiff_t end = j1 < n ? j1 : n;
        rows = end - j < LW_DRIFT_ROWS ? end - j : LW_DRIFT_ROWS;
        drift_probe_squares(&p, j, rows);
        drift_near_sums(q, near + DRIFT_OTHER * kind, &guess, &p, j, rows, 0);
    }
}

/* Mean of w d of the group by its probes, and its sum of weights in *weight. */
static double drift_guess_group(const drift_job *q, const double *probes, double *weight)
{
    ptrdiff_t n = q->s->n, live = drift_probe_count(q, n);
    double d = 0, d2 = 0, roots = 0, probed = 0;
    for (int i = 0; i < LW_DRIFT_PROBES; i++) {
        d += probes[2 * i];
        d2 += probes[2 * i + 1];
    }
    double all = drift_mean_square(q, weight), pairs = (double)live * *weight,
           by = all > 0 && d2 > 0 ? sqrt(all * pairs / d2) : 1.0;
    for (ptrdiff_t i = 0; q->near.row && i < n; i++)
        roots += (double)q->near.row[i] / (double)n;
    for (ptrdiff_t i = 0; q->near.row && i < live; i++)
        probed += (double)q->near.row[i * (n / live)] / (double)live;
    return d / pairs * (roots > 0 && probed > 0 ? roots / probed : by);
}

/* Temperatures at the guess, and where this block's sums go. */
typedef struct drift_ahead {
    drift_taus t;
    float h;
    float by;    /* y is in units of 1 / by, about h, so that squares stay far from overflow */
    float *csum; /* [K][3][m] sums of e, e y, e y^2 over the block's samples */
    drift_notes *notes; /* NULL: no near pairs are noted */
} drift_ahead;

static drift_ahead drift_ahead_of(const drift_job *q, double guess, float *csum)
{
    drift_near_guess at = drift_near_guess_of(q, guess);
    return (drift_ahead){
        .t = at.t, .h = at.h, .by = (float)(1.0 / fmax(guess, 1e-4)), .csum = csum};
}

/* The sums of `rows` targets (rows 0 .. of e and y) at one temperature, over the lanes of a strip
 * into r [3][lp] and over targets into c [3][m]; e^p are the exponentials. */
LW_WORD void drift_ahead_rows(float *r, ptrdiff_t lp, float *c, ptrdiff_t m, const float *e,
                              const float *y_at, ptrdiff_t lanes, vf least, const int rows,
                              const int p)
{
    vf c0[4], c1[4], c2[4];
    LW_UNROLL_UP_TO(4)
    for (int j = 0; j < 4; j++)
        c0[j] = c1[j] = c2[j] = v_zero();
    for (ptrdiff_t i = 0; i < lanes; i += VL) {
        vf r0 = v_load(r + i), r1 = v_load(r + lp + i), r2 = v_load(r + 2 * lp + i);
        LW_UNROLL_UP_TO(4)
        for (int j = 0; j < rows; j++) {
            vf y = v_load(y_at + j * lanes + i);
            vf x = drift_power(v_load(e + j * lanes + i), least, p), z = v_mul(x, y);
            r0 = v_add(r0, x);
            r1 = v_add(r1, z);
            r2 = v_fma(z, y, r2);
            c0[j] = v_add(c0[j], x);
            c1[j] = v_add(c1[j], z);
            c2[j] = v_fma(z, y, c2[j]);
        }
        v_store(r + i, r0);
        v_store(r + lp + i, r1);
        v_store(r + 2 * lp + i, r2);
    }
    float four[3][4];
    v_hsum4(four[0], c0[0], c0[1], c0[2], c0[3]);
    v_hsum4(four[1], c1[0], c1[1], c1[2], c1[3]);
    v_hsum4(four[2], c2[0], c2[1], c2[2], c2[3]);
    for (int k = 0; k < 3; k++)
        for (int j = 0; j < rows; j++)
            c[k * m + j] += four[k][j];
}

LW_WORD void drift_ahead_power(float *r, ptrdiff_t lp, float *c, ptrdiff_t m, const float *e,
                               const float *y, ptrdiff_t lanes, ptrdiff_t n, vf least, const int p)
{
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4)
        drift_ahead_rows(r, lp, c + j, m, e + j * lanes, y + j * lanes, lanes, least, 4, p);
    for (; j < n; j++)
        drift_ahead_rows(r, lp, c + j, m, e + j * lanes, y + j * lanes, lanes, least, 1, p);
}

/* Sums of a tile of n targets from j0, its distances d; of targets only where `columns`. Pairs out
 * of reach count as e^-87. */
static void drift_ahead_tile(const drift_job *q, const drift_ahead *a, const float *d,
                             drift_strip st, ptrdiff_t j0, ptrdiff_t n, int columns)
{
    ptrdiff_t lp = q->d.lp, pitch = columns ? q->d.m : LW_DRIFT_ROWS;
    const drift_taus *t = &a->t;
    float no_columns[3 * LW_DRIFT_ROWS] = {0}, *e = q->buf_e, *y = q->buf_a;
    const vf by = v_set1(a->by), h_by = v_set1(a->h * a->by);
    for (int base = 0; base < t->k; base++) {
        if (t->base[base] != base)
            continue;
        float far = a->h - DRIFT_LEAST / t->b[base];
        vf b = v_set1(t->b[base]), h = v_set1(a->h), fv = v_set1(far);
        for (ptrdiff_t i = 0; i < n * st.lanes; i += VL) {
            const vf near = v_min(v_load(d + i), fv);
            v_store(y + i, v_fms(near, by, h_by));
            v_store(e + i, v_exp_normal(v_mul(v_sub(h, near), b)));
        }
        for (int k = 0; k < t->k; k++) {
            float *r = q->rmom + 3 * k * lp + st.i0,
                  *c = columns ? a->csum + 3 * k * pitch + j0 : no_columns;
            vf least = v_set1(t->least[k]);
            if (t->base[k] == base)
                DRIFT_BY_POWER(t->power[k], drift_ahead_power, r, lp, c, pitch, e, y, st.lanes, n,
                               least);
        }
    }
}

/* Distances of a strip to the targets j0 .. j1 - 1, kept if they are to be. Returns their part of
 * S; minima go to rmin and cmin, for which the pair of a sample with itself is out of reach; sums
 * go to `a` if there is one, those of targets if `columns`. */
static double drift_span(const drift_job *q, float *cmin, const drift_ahead *a, drift_strip st,
                         ptrdiff_t j0, ptrdiff_t j1, int columns)
{
    float *keep = drift_kept(q, st);
    const ptrdiff_t rows = a ? LW_DRIFT_ROWS : drift_tile_rows(st),
                    most = drift_product_rows(q, rows);
    double sum = 0;
    for (ptrdiff_t n, some; j0 < j1; j0 += n) {
        float *tile = keep ? keep + j0 * st.lanes : q->buf_d;
        n = LW_MIN(j1 - j0, most);
        ptrdiff_t known = drift_mirror(q, keep, tile, st, j0, n);
        drift_products(q, tile, st, j0, n, known);
        for (ptrdiff_t j = j0; j < j0 + n; j += some, tile += some * st.lanes) {
            drift_survey part = {cmin, v_zero()};
            some = LW_MIN(j0 + n - j, rows);
            drift_roots(q, &part, tile, st, j, some, known);
            sum += v_hsum_d(part.sum);
            if (a)
                drift_ahead_tile(q, a, tile, st, j, some, columns);
            if (a && a->notes)
                drift_notes_tile(q, a->notes, tile, st, j, some);
        }
    }
    return sum;
}

/* What a strip's samples have from the generated targets becomes theirs as targets. */
static void drift_ahead_turn(const drift_job *q, float *cmin, const drift_ahead *a, drift_strip st)
{
    for (ptrdiff_t i = st.i0; i < st.i0 + st.live; i++)
        cmin[i] = cmin[i] < q->rmin[i] ? cmin[i] : q->rmin[i];
    drift_fill(q->rmin + st.i0, st.lanes, 3e38f);
    for (int k = 0; k < 3 * q->s->k; k++) {
        float *from = q->rmom + k * q->d.lp + st.i0, *to = a->csum + k * q->d.m + st.i0;
        for (ptrdiff_t i = 0; i < st.live; i++)
            to[i] += from[i];
        drift_fill(from, st.lanes, 0.0f);
    }
}

/* Distances of a strip, its minima and sums. Returns its part of S.
 *
 * Ahead, a pair of generated samples is met once, in the strip of the first of the two: what it
 * adds to the one's row it adds to the other's column, and as these have the same generated
 * samples on either side, the row of a sample is its column and what the other targets add, which
 * is all that stays in rmin and rmom. drift_ahead_close_rows puts them together. */
static double drift_distances(const drift_job *q, float *cmin, const drift_ahead *a, drift_strip st)
{
    ptrdiff_t n = q->s->n, m = q->d.m, end = st.i0 + st.live;
    double self = (double)st.live * 1e-4;
    if (!a)
        return self + drift_span(q, cmin, NULL, st, 0, m, 1);
    if (drift_kept(q, st))
        for (ptrdiff_t j = 0; j < st.i0; j += LW_DRIFT_ROWS)
            drift_fresh(q, drift_kept(q, st) + j * st.lanes, st, j, LW_DRIFT_ROWS);
    if (a->notes)
        drift_notes_open(q, a->notes, st);
    double sum = drift_span(q, cmin, a, st, st.i0, end, 0) +
                 2.0 * drift_span(q, cmin, a, st, end, n, 1);
    drift_ahead_turn(q, cmin, a, st);
    sum += drift_span(q, cmin, a, st, n, q->d.neg, 1);
    return self + sum + drift_span(q, cmin, a, st, q->d.neg, m, 1);
}

/* Whether sums at the guess serve: see above. Minima are known. */
static int drift_ahead_holds(const drift_job *q, const drift_ahead *a, const drift_taus *t,
                             float self)
{
    float near = 3e38f, far = 0, norm = 0, most = 0, shift = 0, least = 3e38f;
    for (ptrdiff_t j = 0; j < q->d.m; j++) {
        near = q->cmin[j] < near ? q->cmin[j] : near;
        far = q->cmin[j] > far ? q->cmin[j] : far;
        norm = q->tn[j] > norm ? q->tn[j] : norm;
    }
    for (ptrdiff_t i = 0; i < q->s->n; i++)
        far = q->rmin[i] > far ? q->rmin[i] : far;
    for (int k = 0; k < t->k; k++) {
        most = a->t.b[k] > most ? a->t.b[k] : most;
        least = a->t.b[k] < least ? a->t.b[k] : least;
        shift = fabsf(t->b[k] - a->t.b[k]) > shift ? fabsf(t->b[k] - a->t.b[k]) : shift;
    }
    return shift * 2.0f * sqrtf(norm) <= 0.02f && (far - a->h) * most <= DRIFT_REACH &&
           (a->h - near) * most <= DRIFT_REACH && (self - a->h) * least >= 90.0f;
}

/* What temperature k moves by, in units of y. */
static float drift_ahead_shift(const drift_ahead *a, const drift_taus *t, int k)
{
    return (t->b[k] - a->t.b[k]) / a->by;
}

/* exp((low - h) b) times the sum at b. */
LW_WORD vf drift_ahead_close(vf m0, vf m1, vf m2, vf low, float h, float b, float shift)
{
    vf mu = v_div(m1, m0), s = v_set1(shift);
    vf kappa = v_max(v_fnma(mu, mu, v_div(m2, m0)), v_zero());
    vf up = v_mul(s, v_fms(v_mul(s, v_set1(0.5f)), kappa, mu));
    return v_mul(m0, v_exp(v_fma(v_sub(low, v_set1(h)), v_set1(b), up)));
}

/* Row sums of temperature k to rsum = 1 / sqrt(R) (or 1 / R); columns: its sums of targets. */
static void drift_ahead_close_rows(const drift_job *q, const drift_ahead *a, const drift_taus *t,
                                   int k, const float *columns)
{
    ptrdiff_t lp = q->d.lp, m = q->d.m, n = q->s->n;
    for (ptrdiff_t i = 0; i < lp; i += VL) {
        const float *from = q->rmom + 3 * k * lp + i, *own = columns + i;
        ptrdiff_t live = i >= n ? 0 : n - i < VL ? n - i : VL;
        vf r = drift_ahead_close(v_add(v_load(from), v_load_n(own, live)),
                                 v_add(v_load(from + lp), v_load_n(own + m, live)),
                                 v_add(v_load(from + 2 * lp), v_load_n(own + 2 * m, live)),
                                 v_load(q->rmin + i), a->h, t->b[k], drift_ahead_shift(a, t, k));
        v_store(q->rsum + k * lp + i, v_div(v_set1(1.0f), q->s->rows_only ? r : v_sqrt(r)));
    }
}

/* Column sums of temperature k to w / sqrt(C) (or w). */
static void drift_ahead_close_columns(const drift_job *q, const drift_ahead *a, const drift_taus *t,
                                      int k, const float *columns)
{
    ptrdiff_t m = q->d.m;
    for (ptrdiff_t j = 0; j < m; j += VL) {
        ptrdiff_t n = m - j < VL ? m - j : VL;
        const float *from = columns + j;
        vf c = drift_ahead_close(v_load_n(from, n), v_load_n(from + m, n),
                                 v_load_n(from + 2 * m, n), v_load_n(q->cmin + j, n), a->h, t->b[k],
                                 drift_ahead_shift(a, t, k)),
           w = v_load_n(q->w + j, n);
        v_store_n(q->csum + k * m + j, q->s->rows_only ? w : v_div(w, v_sqrt(c)), n);
    }
}

#endif
