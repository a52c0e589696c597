/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift field: tiles of distances. A tile is n targets from j0 (rows) times a strip of
 * generated samples (lanes), pitch = lanes of the strip.
 */
#ifndef LW_KERNELS_DRIFT_DISTANCE_H
#define LW_KERNELS_DRIFT_DISTANCE_H

#include "kernels/drift/drift_pack.h"

/* Whether all vectors of the group are so near its centre that no distance is taken for
 * drift_far. */
static int drift_in_reach(const drift_job *q)
{
    return drift_count_near(q, 2.5e33f) == q->d.m; /* (drift_far / 2)^2 */
}

/* Stands for "out of reach": pairs of a sample with itself before the mask is known,
 * empty lanes. */
static const float drift_far = 1e17f;

/* Squared distance of target j to sample i by differences: for pairs so close that the Gram form
 * cancels. Of the operands as given, as centring has rounded the packed ones. */
static float drift_close_pair(const drift_job *q, ptrdiff_t j, ptrdiff_t i)
{
    const float *a = drift_target(q, j), *b = drift_target(q, i);
    vf sum = v_zero();
    for (ptrdiff_t c = 0; c < q->s->c; c += VL) {
        ptrdiff_t n = q->s->c - c < VL ? q->s->c - c : VL;
        vf e = v_sub(v_load_n(a + c, n), v_load_n(b + c, n));
        sum = v_fma(e, e, sum);
    }
    return v_hsum(sum);
}

/* out[n][lanes] = t_j . x_i from lane `from` on, in blocks of channels whose panel of samples stays
 * in the first cache. Meanwhile the next n targets are asked for: each strip meets all of them, which come from
 * memory where groups are large. */
static void drift_gram(const drift_job *q, float *out, drift_strip st, ptrdiff_t j0, ptrdiff_t n,
                       ptrdiff_t from)
{
    enum { BLOCK = 192 };
    const ptrdiff_t half = n * q->d.pitch / 2,
                    steps = q->s->c * LW_CEIL_DIV(n, TILE_MR) *
                            LW_CEIL_DIV(st.lanes - from, 2 * VL),
                    step = LW_CEIL_DIV(half, LW_MAX(steps, 1));
    const float *next = q->t + (j0 + n) * q->d.pitch;
    lw_tile_fetch ask[2] = {{next, step}, {next + half, step}};
    for (ptrdiff_t c = 0; c < q->s->c; c += BLOCK)
        for (ptrdiff_t i = from; i < st.lanes; i += LW_DRIFT_NR) {
            ptrdiff_t lanes = st.lanes - i < LW_DRIFT_NR ? st.lanes - i : LW_DRIFT_NR;
            tile_arg t = {.a = q->t + j0 * q->d.pitch + c,
                          .b = q->xt + drift_lane(q, st, i) * q->s->c + c * LW_DRIFT_NR,
                          .c = out + i,
                          .ars = q->d.pitch,
                          .aks = 1,
                          .bks = LW_DRIFT_NR,
                          .ldc = st.lanes,
                          .k = q->s->c - c < BLOCK ? q->s->c - c : BLOCK,
                          .add = c > 0};
            tile_product_asking(&t, n, lanes, ask);
        }
}

/* out[n][lanes] = |t_j - x_i|^2 by differences, for few channels. */
static void drift_squares(const drift_job *q, float *out, drift_strip st, ptrdiff_t j0, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < st.lanes; i += VL) {
        ptrdiff_t at = drift_lane(q, st, i);
        const float *x = q->xt + at / LW_DRIFT_NR * LW_DRIFT_NR * q->s->c + at % LW_DRIFT_NR;
        vf xn = v_load(q->xn + st.i0 + i), far = v_set1(1e35f);
        for (ptrdiff_t j = 0; j < n; j++) {
            const float *t = q->t + (j0 + j) * q->d.pitch;
            vf sum = v_zero();
            for (ptrdiff_t c = 0; c < q->s->c; c++) {
                vf e = v_sub(v_set1(t[c]), v_load(x + c * LW_DRIFT_NR));
                sum = v_fma(e, e, sum);
            }
            v_store(out + j * st.lanes + i, v_select_gt(xn, far, xn, sum));
        }
    }
}

/* The VL squared distances at out, those of pairs nearer than `near` times their norms
 * made exact. */
static void drift_repair(const drift_job *q, float *out, ptrdiff_t j, ptrdiff_t i, float near)
{
    for (ptrdiff_t l = 0; l < VL; l++)
        if (out[l] < near * (q->xn[i + l] + q->tn[j]))
            out[l] = drift_close_pair(q, j, i + l);
}

/* What is learnt of distances on their way: minima of targets, and the sum of w d but of far ones. */
typedef struct drift_survey {
    float *cmin;
    vf sum;
} drift_survey;

/* VL lanes from `lane` of `rows` products (or squares) to squared distances. */
LW_WORD void drift_squared(const drift_job *q, vf *d2, float *row, ptrdiff_t pitch, ptrdiff_t j,
                           ptrdiff_t lane, const int rows)
{
    int direct = q->s->c <= LW_DRIFT_DIRECT;
    float close = direct ? 1e-7f
                         : 1e-3f; /* differences suffer from the rounding of centring only */
    const vf near = v_set1(close), xn = v_load(q->xn + lane);
    vm repair = v_lt(xn, v_zero()); /* none */
    LW_UNROLL_UP_TO(4)
    for (int r = 0; r < rows; r++) {
        vf both = v_add(v_set1(q->tn[j + r]), xn);
        d2[r] = v_load(row + r * pitch);
        if (!direct)
            d2[r] = v_fnma(v_set1(2.0f), d2[r], both);
        repair = vm_or(repair, v_lt(d2[r], v_mul(near, both)));
    }
    if (!vm_any(repair))
        return;
    LW_UNROLL_UP_TO(4)
    for (int r = 0; r < rows; r++)
        v_store(row + r * pitch, d2[r]);
    for (int r = 0; r < rows; r++)
        drift_repair(q, row + r * pitch, j + r, lane, close);
    LW_UNROLL_UP_TO(4)
    for (int r = 0; r < rows; r++)
        d2[r] = v_load(row + r * pitch);
}

/* `rows` rows of products (or squares) from target j to distances, where lanes before `from` are
 * distances already; the pair with itself, if here, gets far away. Surveyed, unless to is NULL, where
 * minima of samples go to rmin. */
LW_WORD void drift_root_rows(const drift_job *q, drift_survey *to, float *row, drift_strip st,
                             ptrdiff_t j, ptrdiff_t from, const int rows)
{
    const vf far = v_set1(drift_far);
    vf low[4] = {far, far, far, far};
    for (ptrdiff_t own = j > st.i0 ? j : st.i0; own < j + rows && own < st.i0 + st.live; own++)
        row[(own - j) * st.lanes + own - st.i0] = q->s->c <= LW_DRIFT_DIRECT ? 1e36f : -1e36f;
    for (ptrdiff_t i = 0; i < st.lanes; i += VL) {
        vf d[4], least = to ? v_load(q->rmin + st.i0 + i) : far;
        if (i >= from)
            drift_squared(q, d, row + i, st.lanes, j, st.i0 + i, rows);
        LW_UNROLL_UP_TO(4)
        for (int r = 0; r < rows; r++) {
            float *at = row + r * st.lanes + i;
            d[r] = i < from ? v_load(at) : v_sqrt(v_max(d[r], v_set1(1e-8f)));
            v_store(at, d[r]);
            if (!to)
                continue;
            least = v_min(least, d[r]);
            low[r] = v_min(low[r], d[r]);
            to->sum = v_fma(v_keep(v_gt(far, d[r]), d[r]), v_set1(q->w[j + r]), to->sum);
        }
        if (to)
            v_store(q->rmin + st.i0 + i, least);
    }
    float lows[4];
    if (to)
        v_hmin4(lows, low[0], low[1], low[2], low[3]);
    for (int r = 0; to && r < rows; r++)
        to->cmin[j + r] = to->cmin[j + r] < lows[r] ? to->cmin[j + r] : lows[r];
}

/* The same of a tile of n targets from j0. */
LW_WORD void drift_roots(const drift_job *q, drift_survey *to, float *tile, drift_strip st,
                         ptrdiff_t j0, ptrdiff_t n, ptrdiff_t from)
{
    ptrdiff_t j = 0;
    for (; j + 4 <= n; j += 4)
        drift_root_rows(q, to, tile + j * st.lanes, st, j0 + j, from, 4);
    for (; j < n; j++)
        drift_root_rows(q, to, tile + j * st.lanes, st, j0 + j, from, 1);
}

static void drift_products(const drift_job *q, float *out, drift_strip st, ptrdiff_t j0,
                           ptrdiff_t n, ptrdiff_t from)
{
    if (q->s->c <= LW_DRIFT_DIRECT)
        drift_squares(q, out, st, j0, n);
    else if (drift_on_tiles(q))
        drift_gram_tiles(q, out, st, j0, n);
    else if (q->d.low)
        drift_gram_low(q, out, st, j0, n);
    else
        drift_gram(q, out, st, j0, n, from);
}

/* Where the distances of a strip to all targets are kept, or NULL. */
static float *drift_kept(const drift_job *q, drift_strip st)
{
    int in = q->kept && (q->d.kept == 0 || st.i0 / LW_DRIFT_LANES < q->d.kept);
    return in ? q->kept + st.i0 * q->d.m : NULL;
}

/* Distances of n generated targets from j0 to the samples of the strip before them, which are those
 * of these samples as targets: from `keep`, where the strip's are. Returns how many there are. */
static ptrdiff_t drift_mirror(const drift_job *q, const float *keep, float *tile, drift_strip st,
                              ptrdiff_t j0, ptrdiff_t n)
{
    ptrdiff_t before = j0 - st.i0;
    if (!keep || before <= 0 || before % LW_DRIFT_NR || before + n > st.live ||
        q->s->c <= LW_DRIFT_DIRECT || q->d.words)
        return 0;
    tile_transpose(tile, st.lanes, keep + st.i0 * st.lanes + before, st.lanes, before, n, 1.0f);
    return before;
}

/* Targets multiplied at once where `rows` of them are looked at: what tile registers take to wake up is
 * paid once. */
static ptrdiff_t drift_product_rows(const drift_job *q, ptrdiff_t rows)
{
    return drift_on_tiles(q) ? LW_DRIFT_TARGETS : rows;
}

/* Distances of n targets from j0 into tile. */
static void drift_fresh(const drift_job *q, float *tile, drift_strip st, ptrdiff_t j0, ptrdiff_t n)
{
    drift_products(q, tile, st, j0, n, 0);
    drift_roots(q, NULL, tile, st, j0, n, 0);
}

/* Targets of a tile of distances that stays in the first cache: a whole number of products' rows at
 * any level where lanes are few. */
static ptrdiff_t drift_tile_rows(drift_strip st)
{
    return st.lanes == 16 ? 96 : LW_DRIFT_ROWS;
}

/* Distances of a strip to all targets into their place. */
static void drift_fresh_strip(const drift_job *q, drift_strip st)
{
    ptrdiff_t rows = drift_tile_rows(st);
    for (ptrdiff_t j = 0; j < q->d.m; j += rows)
        drift_fresh(q, drift_kept(q, st) + j * st.lanes, st, j,
                    q->d.m - j < rows ? q->d.m - j : rows);
}

/* Distances of a tile, kept ones or fresh ones in scratch; a sample is `self` away from itself. */
static float *drift_tile(const drift_job *q, drift_strip st, ptrdiff_t j0, ptrdiff_t n, float self)
{
    float *tile = drift_kept(q, st);
    if (tile) {
        tile += j0 * st.lanes;
    } else {
        const ptrdiff_t most = drift_product_rows(q, LW_DRIFT_ROWS);
        tile = q->buf_d;
        for (ptrdiff_t j = 0; j < n; j += most)
            drift_fresh(q, tile + j * st.lanes, st, j0 + j, n - j < most ? n - j : most);
    }
    for (ptrdiff_t j = j0 < st.i0 ? st.i0 : j0; j < j0 + n && j < st.i0 + st.live; j++)
        tile[(j - j0) * st.lanes + j - st.i0] = self;
    return tile;
}

/* Some of a group's targets, from one on, a step apart: as many as a strip has lanes. */
typedef struct drift_probes {
    drift_job job; /* whose lanes these are */
    drift_strip st;
    ptrdiff_t step;
    float xn[LW_DRIFT_LANES]; /* squared norms */
    float on[LW_DRIFT_LANES]; /* 1, and 0 in lanes without one */
} drift_probes;

/* How many of n. */
static ptrdiff_t drift_probe_count(const drift_job *q, ptrdiff_t n)
{
    return n < q->d.lanes ? n : q->d.lanes;
}

static void drift_probes_open(drift_probes *p, const drift_job *q, ptrdiff_t from, ptrdiff_t n)
{
    ptrdiff_t channels = q->s->c, live = drift_probe_count(q, n);
    *p = (drift_probes){.job = *q, .st = {0, (live + 15) / 16 * 16, live}, .step = n / live};
    float *xt = p->job.xt = q->out;
    ptrdiff_t panels = (live + LW_DRIFT_NR - 1) / LW_DRIFT_NR * LW_DRIFT_NR;
    memset(xt, 0, (size_t)(panels * channels) * sizeof *xt);
    for (ptrdiff_t i = 0; i < live; i += LW_DRIFT_NR)
        tile_transpose(xt + i * channels, LW_DRIFT_NR, q->t + (from + i * p->step) * q->d.pitch,
                       p->step * q->d.pitch, live - i < LW_DRIFT_NR ? live - i : LW_DRIFT_NR,
                       channels, 1.0f);
    for (ptrdiff_t i = 0; i < live; i++) {
        p->xn[i] = q->tn[from + i * p->step];
        p->on[i] = 1.0f;
    }
}

/* Squared distances of the targets j0 .. j0 + n - 1 to the probes into buf_d, [n][lanes]. */
static void drift_probe_squares(const drift_probes *p, ptrdiff_t j0, ptrdiff_t n)
{
    const drift_job *q = &p->job;
    drift_gram(q, q->buf_d, p->st, j0, n, 0);
    for (ptrdiff_t j = 0; j < n; j++)
        for (ptrdiff_t i = 0; i < p->st.lanes; i += VL) {
            float *at = q->buf_d + j * p->st.lanes + i;
            vf both = v_add(v_set1(q->tn[j0 + j]), v_load(p->xn + i));
            v_store(at, v_max(v_fnma(v_set1(2.0f), v_load(at), both), v_zero()));
        }
}

#endif
