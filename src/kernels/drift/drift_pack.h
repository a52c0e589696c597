/* SPDX-License-Identifier: Apache-2.0 */
/* Drift field: a group's operands centred and packed. */
#ifndef LW_KERNELS_DRIFT_PACK_H
#define LW_KERNELS_DRIFT_PACK_H

#include "kernels/drift/drift_tiles.h"
#include "kernels/simd/simd_fetch.h"
#include "kernels/tile/tile.h"

/* Vectors of a group lie apart, where the hardware does not look ahead; behind the beginning of a
 * long one it does. */
LW_WORD void drift_prefetch(const drift_job *q, drift_place at)
{
    lw_fetch_floats(drift_vector(q, at), 0, LW_MIN(q->s->c, (ptrdiff_t)512), LW_FETCH_L1);
}

/* The next few targets of the queue. */
LW_WORD void drift_fetch(const drift_job *q, ptrdiff_t targets)
{
    if (!q->fetch)
        return;
    for (; targets > 0 && q->fetch->at < q->fetch->end; targets--)
        lw_fetch_floats(drift_target(q, q->fetch->at++), 0, q->s->c, LW_FETCH_L2);
}

static void drift_fill(float *p, ptrdiff_t n, float x)
{
    for (ptrdiff_t i = 0; i < n; i++)
        p[i] = x;
}

/* `share` of n targets from j, a step apart, to the mean. */
LW_WORD void drift_add_to_mean(const drift_job *q, ptrdiff_t j, ptrdiff_t step, ptrdiff_t n,
                               float share)
{
    vf by = v_set1(share);
    for (ptrdiff_t c = 0; c < q->s->c; c += VL) {
        ptrdiff_t live = q->s->c - c < VL ? q->s->c - c : VL;
        vf sum = v_load(q->mean + c);
        for (ptrdiff_t r = 0; r < n; r++)
            sum = v_fma(v_load_n(drift_target(q, j + r * step) + c, live), by, sum);
        v_store(q->mean + c, sum);
    }
}

/* VL channels of a packed vector; its norm and the squares of what products take. low: where its
 * rounded copy goes, or NULL. */
LW_WORD vf drift_pack_vector(float *to, uint16_t *low, vf t, vf norm)
{
    v_store(to, t);
    if (low) {
        vi rounded = vi_bf16(t);
        vi_store_u16(low, rounded);
        t = v_of_bf16(rounded);
    }
    return v_fma(t, t, norm);
}

static inline float drift_weight_of(const drift_job *q, drift_place at)
{
    return at.kind == 1 ? q->w_u : 1.0f;
}

/* The rounded copy of target j. */
static uint16_t *drift_low_at(const drift_job *q, ptrdiff_t j)
{
    return (uint16_t *)(void *)(q->tb + j * q->d.word_pitch);
}

/* Zeros behind its last channel. */
static inline void drift_low_end(const drift_job *q, ptrdiff_t j)
{
    memset(drift_low_at(q, j) + q->d.cp, 0, (size_t)(2 * q->d.words - q->d.cp) * sizeof(uint16_t));
}

/* VL channels of a side's weighted sum, and of what it is too large by: Kahan's summation. The sum is of
 * thousands of vectors in large groups, and its rounding would be an error that V of all samples
 * shares. */
LW_WORD void drift_add_to_base(float *base, float *excess, vf sum)
{
    vf old = v_load(base), more = v_sub(sum, v_load(excess)), now = v_add(old, more);
    v_store(excess, v_sub(v_sub(now, old), more));
    v_store(base, now);
}

/* `rows` targets of one kind (one or four) from j, the first of which lies `at`, centred, their norms,
 * their part of the weighted sum of their side. */
LW_WORD void drift_pack_rows(const drift_job *q, ptrdiff_t j, drift_place at, const int rows)
{
    const float *from = drift_vector(q, at), *mean = q->mean;
    const ptrdiff_t side = (at.kind + 2) % 3 * q->d.cp;
    float *base = q->base + side, *excess = q->excess + side, *to = q->t + j * q->d.pitch, four[4],
          *norms = rows == 4 ? q->tn + j : four;
    uint16_t *low = q->d.low ? drift_low_at(q, j) : NULL;
    ptrdiff_t channels = q->s->c, row = drift_row_of(q, at.kind), n;
    vf norm[4] = {v_zero(), v_zero(), v_zero(), v_zero()}, w = v_set1(drift_weight_of(q, at));
    for (ptrdiff_t c = 0; c < q->d.cp; c += VL) {
        vf sum = q->d.tile ? v_load(base + c) : v_zero();
        n = channels - c;
        LW_UNROLL_UP_TO(4)
        for (int r = 0; r < rows; r++) {
            const float *p = from + r * row + c;
            vf t = n >= VL ? v_sub(v_load(p), v_load(mean + c))
                   : n > 0 ? v_sub(v_load_n(p, n), v_load_n(mean + c, n))
                           : v_zero();
            norm[r] = drift_pack_vector(to + r * q->d.pitch + c,
                                        low ? low + 2 * r * q->d.word_pitch + c : NULL, t, norm[r]);
            sum = v_fma(t, w, sum);
        }
        if (q->d.tile)
            v_store(base + c, sum);
        else
            drift_add_to_base(base + c, excess + c, sum);
    }
    for (int r = 0; low && r < rows; r++)
        drift_low_end(q, j + r);
    v_hsum4(norms, norm[0], norm[1], norm[2], norm[3]);
    if (rows == 1)
        q->tn[j] = four[0];
}

/* n targets of one kind from j. */
LW_WORD void drift_pack_targets(const drift_job *q, ptrdiff_t j, ptrdiff_t n)
{
    ptrdiff_t end = j + n;
    for (; j + 4 <= end; j += 4)
        drift_pack_rows(q, j, drift_place_of(q, j), 4);
    for (; j < end; j++)
        drift_pack_rows(q, j, drift_place_of(q, j), 1);
}

/* n targets of one kind from j, centred. Rounded copies, too, where distances are to be computed from
 * these. */
LW_WORD void drift_centred(const drift_job *q, ptrdiff_t j, ptrdiff_t n, float *to)
{
    const drift_place at = drift_place_of(q, j);
    const float *from = drift_vector(q, at), *mean = q->mean;
    ptrdiff_t row = drift_row_of(q, at.kind), pitch = q->d.pitch, cp = q->d.cp, channels = q->s->c;
    for (ptrdiff_t r = 0; r < n; r++, from += row, to += pitch) {
        uint16_t *low = q->d.low && !q->d.kept ? drift_low_at(q, j + r) : NULL;
        for (ptrdiff_t c = 0, some = channels; c < cp; c += VL, some -= VL) {
            vf t = some >= VL ? v_sub(v_load(from + c), v_load(mean + c))
                   : some > 0 ? v_sub(v_load_n(from + c, some), v_load_n(mean + c, some))
                              : v_zero();
            drift_pack_vector(to + c, low ? low + c : NULL, t, t);
        }
        if (low)
            drift_low_end(q, j + r);
    }
}

/* Where the packed targets of the tile that begins at j0 lie: packed late and for one strip only,
 * in each other's place, so that they stay in the second cache. */
static float *drift_rows_at(const drift_job *q, ptrdiff_t j0)
{
    return q->fetch && q->d.strips == 1 ? q->t : q->t + j0 * q->d.pitch;
}

/* Targets j0 .. j0 + n - 1 centred, where all else about them is known. */
static void drift_pack_late(const drift_job *q, ptrdiff_t j0, ptrdiff_t n)
{
    float *to = drift_rows_at(q, j0);
    drift_fetch(q, n);
    for (ptrdiff_t j = j0, some; j < j0 + n; j += some) {
        ptrdiff_t end = drift_kind_end(q, j);
        some = end < j0 + n ? end - j : j0 + n - j;
        drift_centred(q, j, some, to + (j - j0) * q->d.pitch);
    }
}

/* What is done with targets on their way. */
typedef enum drift_pass { DRIFT_MEAN, DRIFT_PACK, DRIFT_CENTRE } drift_pass;

/* Every step-th target of `jobs` groups in a row: some targets of all groups before the next ones, as
 * such groups have vectors next to each other; the next ones are fetched meanwhile. share: of the
 * mean. */
LW_WORD void drift_each_target(const drift_job *q, ptrdiff_t jobs, ptrdiff_t step, float share,
                               const drift_pass pass)
{
    ptrdiff_t m = q->d.m, most = LW_DRIFT_AT_ONCE * step, n;
    for (ptrdiff_t j = 0; j < m; j += n) {
        drift_place next[LW_DRIFT_AT_ONCE];
        ptrdiff_t end = pass == DRIFT_MEAN ? m : drift_kind_end(q, j), count = 0;
        n = end - j < most ? end - j : most;
        for (ptrdiff_t i = j + n; i < j + n + most && i < m; i += step)
            next[count++] = drift_place_of(q, i);
        for (ptrdiff_t b = 0; b < jobs; b++) {
            for (ptrdiff_t i = 0; i < count; i++)
                drift_prefetch(&q[b], next[i]);
            if (pass == DRIFT_MEAN)
                drift_add_to_mean(&q[b], j, step, (n + step - 1) / step, share);
            else if (pass == DRIFT_PACK)
                drift_pack_targets(&q[b], j, n);
            else
                drift_centred(&q[b], j, n, q[b].t + j * q->d.pitch);
        }
    }
}

/* Norms of the generated samples by lane. */
static void drift_pack_norms(const drift_job *q)
{
    drift_fill(q->xn, q->d.lp, 1e36f);
    memcpy(q->xn, q->tn, (size_t)q->s->n * sizeof *q->xn);
}

/* Samples i0 .. i0 + lanes - 1 transposed into panels of NR lanes, the first of xt or xb. */
static void drift_pack_lanes(const drift_job *q, ptrdiff_t i0, ptrdiff_t lanes)
{
    ptrdiff_t channels = q->s->c;
    for (ptrdiff_t i = 0; i < lanes; i += LW_DRIFT_NR) {
        if (q->d.words) {
            drift_panel_words(q, q->xb + i * q->d.words, i0 + i);
            continue;
        }
        ptrdiff_t n = q->s->n - i0 - i < LW_DRIFT_NR ? q->s->n - i0 - i : LW_DRIFT_NR;
        float *to = q->xt + i * channels;
        if (n < LW_DRIFT_NR)
            memset(to, 0, (size_t)(LW_DRIFT_NR * channels) * sizeof *to);
        tile_transpose(to, LW_DRIFT_NR, q->t + (i0 + i) * q->d.pitch, q->d.pitch, n, channels,
                       1.0f);
    }
}

/* All targets of `jobs` groups centred, where all else about them is known; what distances are
 * computed from, unless these are kept. */
static void drift_pack_groups_late(const drift_job *q, ptrdiff_t jobs)
{
    drift_each_target(q, jobs, 1, 0.0f, DRIFT_CENTRE);
    for (ptrdiff_t b = 0; b < jobs && !q->d.kept; b++) {
        drift_pack_norms(&q[b]);
        drift_pack_lanes(&q[b], 0, q[b].d.lp);
    }
}

/* Weights of all targets. */
static void drift_weigh(const drift_job *q)
{
    drift_fill(q->w, q->s->n, 1.0f);
    drift_fill(q->w + q->s->n, q->s->nu, q->w_u);
    drift_fill(q->w + q->d.neg, q->s->np, 1.0f);
}

/* The strip at i0, its samples laid out for products. */
static drift_strip drift_strip_open(const drift_job *q, ptrdiff_t i0)
{
    drift_strip st = drift_strip_at(q, i0);
    if (!q->d.tile)
        drift_pack_lanes(q, i0, st.lanes);
    return st;
}

/* Targets whose squared norm is at most `bound`, of which NaN is none. */
static ptrdiff_t drift_count_near(const drift_job *q, float bound)
{
    ptrdiff_t near = 0;
    for (ptrdiff_t j = 0; j < q->d.m; j += VL) {
        ptrdiff_t n = q->d.m - j < VL ? q->d.m - j : VL;
        uint32_t live = (uint32_t)(((uint64_t)1 << n) - 1);
        near += __builtin_popcount(vm_bits(v_le(v_load_n(q->tn + j, n), v_set1(bound))) & live);
    }
    return near;
}

/* The greatest squared norm up to `bound`. */
static float drift_farthest(const drift_job *q, float bound)
{
    vf far = v_zero(), most = v_set1(bound);
    for (ptrdiff_t j = 0; j < q->d.m; j += VL) {
        vf norm = v_load_n(q->tn + j, q->d.m - j < VL ? q->d.m - j : VL);
        far = v_max(far, v_keep(v_le(norm, most), norm));
    }
    return v_hmax(far);
}

/* Sums begin with nothing. */
static void drift_no_base(const drift_job *q)
{
    drift_fill(q->base, 3 * q->d.cp, 0.0f);
    if (!q->d.tile)
        drift_fill(q->excess, 3 * q->d.cp, 0.0f);
}

/* The centre moves to those targets it is near to (squared norms up to `near`). */
static void drift_move_centre(const drift_job *q, float near)
{
    ptrdiff_t m = q->d.m, live = drift_count_near(q, near), step, used = 0;
    step = live > 64 ? (live + 63) / 64 : 1;
    drift_fill(q->mean, q->d.cp, 0.0f);
    drift_no_base(q);
    for (ptrdiff_t j = 0; j < m; j++)
        if (q->tn[j] <= near && used++ % step == 0)
            drift_add_to_mean(q, j, 1, 1, 1.0f / (float)((live + step - 1) / step));
    drift_each_target(q, 1, 1, 0.0f, DRIFT_PACK);
}

/* A few targets far from all others draw the centre away from these, whose differences would then
 * be rounded as coarsely as the far ones'. So where more than half are much nearer than the
 * farthest, they become the centre. */
static void drift_pack_again(const drift_job *q)
{
    float bound = 3e38f;
    for (int round = 0; round < 4; round++) {
        bound = drift_farthest(q, bound) / 8;
        if (2 * drift_count_near(q, bound) <= q->d.m || !(bound > 0))
            return;
        drift_move_centre(q, bound);
    }
}

/* The packs of `jobs` groups in a row. The centre is the mean of some sixty targets; any point near
 * most of them serves, for V does not depend on it, only its rounding does. Lanes are packed only when
 * distances are to be computed. */
static void drift_pack(const drift_job *q, ptrdiff_t jobs, int lanes)
{
    ptrdiff_t m = q->d.m, step = (m + 63) / 64;
    float share = 1.0f / (float)((m + step - 1) / step);
    for (ptrdiff_t b = 0; b < jobs; b++) {
        drift_fill(q[b].mean, q->d.cp, 0.0f);
        drift_no_base(&q[b]);
    }
    drift_each_target(q, jobs, step, share, DRIFT_MEAN);
    drift_each_target(q, jobs, 1, 0.0f, DRIFT_PACK);
    for (ptrdiff_t b = 0; b < jobs; b++) {
        float *base = q[b].base;
        drift_weigh(&q[b]);
        drift_pack_again(&q[b]);
        for (ptrdiff_t c = 0; c < q->d.cp; c += VL) /* generated samples are negatives too */
            v_store(base + c, v_add(v_load(base + c), v_load(base + 2 * q->d.cp + c)));
        drift_pack_norms(&q[b]);
        if (lanes)
            drift_pack_lanes(&q[b], 0, q[b].d.lp);
    }
}

#endif
