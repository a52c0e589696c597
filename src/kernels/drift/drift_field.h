/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drift field: affinities and V.
 *
 * A_ij = w_j max(floor, p_ij) is split in a constant part and what lies above the floor:
 *   sum_j A_ij t_j = floor sum_j w_j t_j + sum_j (A_ij - floor w_j) t_j
 *
 * The first sum is one vector for a group. Of the second most terms vanish in large groups,
 * whatever the data: as p = sqrt(row softmax * column softmax) <= their mean, all p of a group add
 * up to at most (N + M) / 2, so at most (N + M) / (2 floor) pairs lie above the floor. Tiles with
 * few of them are gathered pair by pair, others as dense products.
 */
#ifndef LW_KERNELS_DRIFT_FIELD_H
#define LW_KERNELS_DRIFT_FIELD_H

#include "kernels/drift/drift_near.h"

typedef struct drift_tally {
    ptrdiff_t pairs; /* above the floor */
} drift_tally;

static float drift_floor(const drift_job *q)
{
    return (float)(q->rule.inside > 0 ? sqrt(q->rule.inside) : q->rule.floor);
}

/* Whether dense products serve whatever is above the floor. Of sixteen samples most pairs are (an
 * average softmax over these is 1/16, so the other need only be above 2e-5), and up to so many channels
 * it costs more to find out which are not than to add zeros. */
static int drift_dense(const drift_job *q, drift_strip st)
{
    return st.lanes == 16 && q->d.cp <= 96;
}

/* n targets from j0: what lies above the floor to buf_a, which (if noted) to bits, and added to
 * sum[lanes]. soft: A = w sqrt(p^2 + floor^2), not w max(p, floor). lanes: of the strip; where it is a
 * constant, sums stay in registers. */
LW_WORD void drift_affinity_rows(const drift_job *q, drift_tally *tally, float *sum, const float *e,
                                 drift_strip st, ptrdiff_t j0, ptrdiff_t n, int k, vf least,
                                 float floor_at, const int soft, const int p, const ptrdiff_t lanes,
                                 const int noted)
{
    const float *rs = q->rsum + k * q->d.lp + st.i0, *cs = q->csum + k * q->d.m + j0,
                *w = q->w + j0;
    float *buf_a = q->buf_a;
    uint64_t *bits = q->bits;
    const uint64_t live = drift_live(st);
    ptrdiff_t pairs = 0;
    vf sums[LW_DRIFT_LANES / VL];
    for (ptrdiff_t i = 0; i < lanes; i += VL)
        sums[i / VL] = v_load(sum + i);
    for (ptrdiff_t j = 0; j < n; j++, e += lanes) {
        vf cv = v_set1(cs[j]), low = v_set1(floor_at * w[j]);
        float *a = buf_a + j * 16;
        uint64_t above = 0;
        for (ptrdiff_t i = 0; i < lanes; i += VL) {
            vf x = v_mul(v_mul(drift_power(v_load(e + i), least, p), v_load(rs + i)), cv);
            if (soft) { /* what is far below the floor would be denormal as a square */
                x = v_max(x, v_mul(low, v_set1(1e-3f)));
                x = v_sqrt(v_fma(x, x, v_mul(low, low)));
            }
            if (noted)
                above |= (uint64_t)vm_bits(v_gt(x, low)) << i;
            x = v_sub(v_max(x, low), low);
            sums[i / VL] = v_add(sums[i / VL], x);
            v_store(a + i / 16 * 16 * n + i % 16, x);
        }
        if (!noted)
            continue;
        bits[j] = above & live;
        pairs += __builtin_popcountll(above & live);
    }
    for (ptrdiff_t i = 0; i < lanes; i += VL)
        v_store(sum + i, sums[i / VL]);
    tally->pairs += pairs;
}

LW_WORD void drift_affinity(const drift_job *q, drift_tally *tally, float *sum, const float *e,
                            drift_strip st, ptrdiff_t j0, ptrdiff_t n, int k, vf least,
                            float floor_at, const int p)
{
    if (q->rule.inside > 0)
        drift_affinity_rows(q, tally, sum, e, st, j0, n, k, least, floor_at, 1, p, st.lanes, 1);
    else if (drift_dense(q, st))
        drift_affinity_rows(q, tally, sum, e, st, j0, n, k, least, floor_at, 0, p, 16, 0);
    else if (st.lanes == 16)
        drift_affinity_rows(q, tally, sum, e, st, j0, n, k, least, floor_at, 0, p, 16, 1);
    else if (st.lanes == LW_DRIFT_LANES)
        drift_affinity_rows(q, tally, sum, e, st, j0, n, k, least, floor_at, 0, p, LW_DRIFT_LANES,
                            1);
    else
        drift_affinity_rows(q, tally, sum, e, st, j0, n, k, least, floor_at, 0, p, st.lanes, 1);
}

/* out[live][cp] += buf_a^T times targets j0 .. j0 + n - 1 (=, for the first). A panel of channels
 * stays in the first cache while sixteen samples after the other go by. */
static void drift_gather_dense(const drift_job *q, float *out, drift_strip st, ptrdiff_t j0,
                               ptrdiff_t n, int first)
{
    ptrdiff_t cp = q->d.cp, pitch = q->d.pitch;
    const float *rows = drift_rows_at(q, j0);
    for (ptrdiff_t c = 0; c < cp; c += 32)
        for (ptrdiff_t i = 0; i < st.live; i += 16) {
            tile_arg t = {.a = q->buf_a + i * n,
                          .b = rows + c,
                          .c = out + i * cp + c,
                          .ars = 1,
                          .aks = 16,
                          .bks = pitch,
                          .ldc = cp,
                          .k = n,
                          .add = !first};
            tile_product(&t, st.live - i < 16 ? st.live - i : 16, cp - c < 32 ? cp - c : 32);
            drift_fetch(q, 3);
        }
}

/* Some targets of a tile: `words` words of 64 from number `word` on, and of these those
 * in `only`. */
typedef struct drift_some {
    ptrdiff_t word, words;
    uint64_t only;
} drift_some;

/* nv vectors of one sample's sum, over the targets that reach it. */
LW_WORD void drift_gather_part(float *out, const float *a, const float *t, ptrdiff_t pitch,
                               const uint64_t *reach, drift_some some, int first, const int nv)
{
    vf acc[12];
    LW_UNROLL_UP_TO(16)
    for (int v = 0; v < nv; v++)
        acc[v] = first ? v_zero() : v_load(out + v * VL);
    for (ptrdiff_t w = some.word; w < some.word + some.words; w++)
        for (uint64_t bits = reach[w * 64] & some.only; bits; bits &= bits - 1) {
            ptrdiff_t l = w * 64 + __builtin_ctzll(bits);
            vf by = v_set1(a[l * 16]);
            const float *from = t + l * pitch;
            __asm__("" : "+r"(from)); /* one address, not a sum for each of the loads */
            LW_UNROLL_UP_TO(16)
            for (int v = 0; v < nv; v++)
                acc[v] = v_fma(by, v_load(from + v * VL), acc[v]);
        }
    LW_UNROLL_UP_TO(16)
    for (int v = 0; v < nv; v++)
        v_store(out + v * VL, acc[v]);
}

/* Up to 64 words of 64 bits transposed, by halves. */
static void drift_turn_bits(uint64_t *to, const uint64_t *from, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < 64; i++)
        to[i] = i < n ? from[i] : 0;
    uint64_t low = 0xffffffff;
    for (int half = 32; half > 0; half >>= 1, low ^= low << half)
        for (int i = 0; i < 64; i += 2 * half)
            for (int k = i; k < i + half; k++) {
                uint64_t swap = (to[k] >> half ^ to[k + half]) & low;
                to[k] ^= swap << half;
                to[k + half] ^= swap;
            }
}

/* A panel of nv vectors for the samples that have a target; the first panel of a sum begins it. */
LW_WORD void drift_gather_panel(const drift_job *q, float *out, const float *t, drift_strip st,
                                ptrdiff_t n, drift_some some, int first, const int nv)
{
    for (ptrdiff_t i = 0; i < st.live; i++, out += q->d.cp) {
        uint64_t any = 0;
        for (ptrdiff_t w = some.word; w < some.word + some.words; w++)
            any |= q->reach[w * 64 + i] & some.only;
        if (any || first)
            drift_gather_part(out, q->buf_a + i / 16 * 16 * n + i % 16, t, q->d.pitch, q->reach + i,
                              some, first, nv);
    }
}

/* The same as drift_gather_dense, pair by pair as q->reach has them. Where there are many, so few
 * targets at a time that a panel of them stays in the first cache. */
static void drift_gather_pairs(const drift_job *q, float *out, drift_strip st, ptrdiff_t j0,
                               ptrdiff_t n, int first, int many)
{
    ptrdiff_t cp = q->d.cp, step = many ? 512 / VL : (n + 63) / 64 * 64;
    const float *t = drift_rows_at(q, j0);
    for (ptrdiff_t j = 0; j < n; j += step, first = 0) {
        ptrdiff_t c = 0;
        drift_some some = {j / 64, (step + 63) / 64,
                           step < 64 ? (((uint64_t)1 << step) - 1) << j % 64 : ~(uint64_t)0};
        for (; c + 12 * VL <= cp; c += 12 * VL)
            drift_gather_panel(q, out + c, t + c, st, n, some, first, 12);
        for (; c + 8 * VL <= cp; c += 8 * VL)
            drift_gather_panel(q, out + c, t + c, st, n, some, first, 8);
        for (; c + 4 * VL <= cp; c += 4 * VL)
            drift_gather_panel(q, out + c, t + c, st, n, some, first, 4);
        for (; c < cp; c += VL)
            drift_gather_panel(q, out + c, t + c, st, n, some, first, 1);
    }
}

/* Temperature k's affinities of a tile from its base's exponentials, gathered into out. */
static void drift_gather(const drift_job *q, float *out, float *sum, const drift_taus *t, int k,
                         const float *e, drift_strip st, ptrdiff_t j0, ptrdiff_t n, int first)
{
    float at = drift_floor(q);
    vf least = v_set1(t->least[k]);
    drift_tally tally = {0};
    DRIFT_BY_POWER(t->power[k], drift_affinity, q, &tally, sum, e, st, j0, n, k, least, at);
    ptrdiff_t vectors = q->d.cp / 16;
    if (drift_dense(q, st) || tally.pairs * (5 * vectors + 36) >= 4 * n * st.live * vectors) {
        drift_gather_dense(q, out, st, j0, n, first);
        return;
    }
    for (ptrdiff_t j = 0; j < n; j += 64)
        drift_turn_bits(q->reach + j, q->bits + j, n - j);
    drift_gather_pairs(q, out, st, j0, n, first, tally.pairs > n * st.live / 8);
}

/* Targets of a tile and where one side's begin and end. */
typedef struct drift_cut {
    ptrdiff_t from, to, step;
} drift_cut;

static drift_cut drift_cut_of(const drift_job *q, int positive)
{
    drift_cut c = {positive ? q->d.neg : 0, positive ? q->d.m : q->d.neg, 0};
    ptrdiff_t tiles = (c.to - c.from + q->d.jb - 1) / q->d.jb,
              step = ((c.to - c.from + tiles - 1) / tiles + 7) / 8 * 8;
    c.step = step < q->d.jb ? step : q->d.jb;
    return c;
}

/* Where temperature k's part above the floor is summed up: negatives where their V goes, to be
 * replaced by it. */
static float *drift_gathered(const drift_job *q, int positive, int k, drift_strip st)
{
    return positive ? q->out + k * q->d.lanes * q->d.cp : q->v + (k * q->s->n + st.i0) * q->d.cp;
}

/* The tile that begins at target j. */
static drift_queue drift_next_tile(const drift_job *q, ptrdiff_t j)
{
    drift_cut cut = drift_cut_of(q, j >= q->d.neg);
    return (drift_queue){j, j + cut.step < cut.to ? j + cut.step : cut.to};
}

/* A tile's exponentials at temperature number `base` from its distances d. */
static const float *drift_tile_powers(const drift_job *q, const drift_taus *t, int base,
                                      const float *d, drift_strip st, ptrdiff_t j0, ptrdiff_t n)
{
    float half = q->s->rows_only ? 1.0f : 0.5f;
    if (q->powers_kept)
        return d;
    drift_exponentials(q, q->buf_e, d, st, j0, n, t->b[base], half, q->s->rows_only ? 0.0f : half);
    return q->buf_e;
}

/* Distances of a tile, or its exponentials where these are kept. */
static const float *drift_tile_kept(const drift_job *q, float self, drift_strip st, ptrdiff_t j0,
                                    ptrdiff_t n)
{
    return q->powers_kept ? drift_kept(q, st) + j0 * st.lanes : drift_tile(q, st, j0, n, self);
}

/* A tile of one side (negatives or positives) for a strip, every temperature. */
static void drift_side_tile(const drift_job *q, const drift_taus *t, float self, drift_strip st,
                            int positive, ptrdiff_t j0, ptrdiff_t n)
{
    const float *d = drift_tile_kept(q, self, st, j0, n);
    if (q->fetch && st.i0 == 0) {
        drift_pack_late(q, j0, n);
        *q->fetch = drift_next_tile(q, j0 + n);
    }
    for (int base = 0; base < t->k; base++) {
        if (t->base[base] != base)
            continue;
        const float *e = drift_tile_powers(q, t, base, d, st, j0, n);
        for (int k = 0; k < t->k; k++) {
            ptrdiff_t at = (positive * t->k + k) * q->d.lanes;
            if (t->base[k] == base)
                drift_gather(q, drift_gathered(q, positive, k, st), q->sums + at, t, k, e, st, j0,
                             n, j0 == (positive ? q->d.neg : 0));
        }
    }
}

#endif
