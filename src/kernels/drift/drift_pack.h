/* SPDX-License-Identifier: Apache-2.0 */
/* Drift field: a group's operands centred and packed. */
#ifndef LW_KERNELS_DRIFT_PACK_H
#define LW_KERNELS_DRIFT_PACK_H

#include "kernels/drift/drift_bf16.h"
#include "kernels/tile/tile.h"

/* Vectors of a group lie apart, where the hardware does not look ahead. Always inline: gcc 12 takes
 * a function that only prefetches for one without effect and drops its calls. */
LW_WORD void drift_prefetch(const drift_job *q, drift_place at)
{
    const float *from = drift_vector(q, at);
    for (ptrdiff_t c = 0; c < q->s->c; c += 16)
        __builtin_prefetch(from + c);
}

/* The next few targets of the queue. */
LW_WORD void drift_fetch(const drift_job *q, ptrdiff_t targets)
{
    if (!q->fetch)
        return;
    for (; targets > 0 && q->fetch->at < q->fetch->end; targets--) {
        const float *from = drift_target(q, q->fetch->at++);
        for (ptrdiff_t c = 0; c < q->s->c; c += 16)
            __builtin_prefetch(from + c, 0, 2);
    }
}

static void drift_fill(float *p, ptrdiff_t n, float x)
{
    for (ptrdiff_t i = 0; i < n; i++)
        p[i] = x;
}

LW_WORD void drift_add_to_mean(const drift_job *q, drift_place at, float share)
{
    const float *from = drift_vector(q, at);
    vf by = v_set1(share);
    ptrdiff_t c = 0, channels = q->s->c;
    for (; c + VL <= channels; c += VL)
        v_store(q->mean + c, v_fma(v_load(from + c), by, v_load(q->mean + c)));
    if (c < channels)
        v_store(q->mean + c, v_fma(v_load_n(from + c, channels - c), by, v_load(q->mean + c)));
}

/* Where a packed vector goes, and its rounded copy, if any. */
typedef struct drift_packed {
    float *t;
    uint16_t *low;
} drift_packed;

/* Its channels c ..; norm and the squares of what products take. */
LW_WORD vf drift_pack_vector(drift_packed to, ptrdiff_t c, vf t, vf norm)
{
    v_store(to.t + c, t);
    if (to.low) {
        vi rounded = vi_bf16(t);
        vi_store_u16(to.low + c, rounded);
        t = v_of_bf16(rounded);
    }
    return v_fma(t, t, norm);
}

static inline float drift_weight_of(const drift_job *q, drift_place at)
{
    return at.kind == 1 ? q->w_u : 1.0f;
}

/* Target j, which lies `at`, centred, its norm and weight; its part of the weighted sum of its side. */
LW_WORD void drift_pack_target(const drift_job *q, ptrdiff_t j, drift_place at)
{
    const float *from = drift_vector(q, at), *mean = q->mean;
    float *base = q->base + (at.kind + 2) % 3 * q->d.cp;
    drift_packed to = {q->t + j * q->d.pitch,
                       q->d.low ? (uint16_t *)(void *)(q->tb + j * q->d.low_pitch) : NULL};
    float w = drift_weight_of(q, at);
    ptrdiff_t channels = q->s->c, cp = q->d.cp, c = 0;
    vf norm = v_zero(), wv = v_set1(w);
    for (; c + VL <= channels; c += VL) {
        vf t = v_sub(v_load(from + c), v_load(mean + c));
        norm = drift_pack_vector(to, c, t, norm);
        v_store(base + c, v_fma(t, wv, v_load(base + c)));
    }
    for (; c < cp; c += VL) {
        ptrdiff_t n = channels - c;
        vf t = n > 0 ? v_sub(v_load_n(from + c, n), v_load_n(mean + c, n)) : v_zero();
        norm = drift_pack_vector(to, c, t, norm);
        v_store(base + c, v_fma(t, wv, v_load(base + c)));
    }
    q->tn[j] = v_hsum(norm);
    q->w[j] = w;
}

/* The target that lies `at`, centred. */
LW_WORD void drift_centred(const drift_job *q, float *to, drift_place at)
{
    const float *from = drift_vector(q, at);
    ptrdiff_t channels = q->s->c, c = 0;
    for (; c + VL <= channels; c += VL)
        v_store(to + c, v_sub(v_load(from + c), v_load(q->mean + c)));
    for (; c < q->d.cp; c += VL) {
        ptrdiff_t n = channels - c;
        v_store(to + c, n > 0 ? v_sub(v_load_n(from + c, n), v_load_n(q->mean + c, n)) : v_zero());
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
    drift_fetch(q, n);
    for (ptrdiff_t j = j0; j < j0 + n; j++)
        drift_centred(q, drift_rows_at(q, j0) + (j - j0) * q->d.pitch, drift_place_of(q, j));
}

/* What is done with a target on its way through all of them. */
typedef enum drift_pass { DRIFT_MEAN, DRIFT_PACK, DRIFT_CENTRE } drift_pass;

/* Every step-th target of `jobs` groups in a row: target by target, as such groups have vectors next to
 * each other. Some four kilobytes are fetched before they are needed. share: of DRIFT_MEAN. */
LW_WORD void drift_each_target(const drift_job *q, ptrdiff_t jobs, ptrdiff_t step, float share,
                               const drift_pass pass)
{
    ptrdiff_t m = q->d.m, ahead = (1024 / (q->d.cp * jobs) + 1) * step;
    for (ptrdiff_t j = 0; j < m; j += step) {
        drift_place at = drift_place_of(q, j),
                    next = drift_place_of(q, j + ahead < m ? j + ahead : j);
        for (ptrdiff_t b = 0; b < jobs; b++) {
            drift_prefetch(&q[b], next);
            if (pass == DRIFT_MEAN)
                drift_add_to_mean(&q[b], at, share);
            else if (pass == DRIFT_PACK)
                drift_pack_target(&q[b], j, at);
            else
                drift_centred(&q[b], q[b].t + j * q->d.pitch, at);
        }
    }
}

/* All targets of `jobs` groups centred, where all else about them is known. */
static void drift_pack_groups_late(const drift_job *q, ptrdiff_t jobs)
{
    drift_each_target(q, jobs, 1, 0.0f, DRIFT_CENTRE);
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
        if (q->d.low) {
            drift_panel_low(q, q->xb + i * (q->d.cp / 2), i0 + i);
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

/* The strip at i0, its samples laid out for products. */
static drift_strip drift_strip_open(const drift_job *q, ptrdiff_t i0)
{
    drift_strip st = drift_strip_at(q, i0);
    if (!q->d.tile)
        drift_pack_lanes(q, i0, st.lanes);
    return st;
}

/* The centre moves to those targets it is near to (squared norms up to `near`). */
static void drift_move_centre(const drift_job *q, float near)
{
    ptrdiff_t m = q->d.m, live = 0, step, used = 0;
    for (ptrdiff_t j = 0; j < m; j++)
        live += q->tn[j] <= near;
    step = live > 64 ? (live + 63) / 64 : 1;
    drift_fill(q->mean, q->d.cp, 0.0f);
    drift_fill(q->base, 3 * q->d.cp, 0.0f);
    for (ptrdiff_t j = 0; j < m; j++)
        if (q->tn[j] <= near && used++ % step == 0)
            drift_add_to_mean(q, drift_place_of(q, j), 1.0f / (float)((live + step - 1) / step));
    for (ptrdiff_t j = 0; j < m; j++)
        drift_pack_target(q, j, drift_place_of(q, j));
}

/* A few targets far from all others draw the centre away from these, whose differences would then
 * be rounded as coarsely as the far ones'. So where more than half are much nearer than the
 * farthest, they become the centre. */
static void drift_pack_again(const drift_job *q)
{
    float bound = 3e38f;
    for (int round = 0; round < 4; round++) {
        float far = 0;
        ptrdiff_t near = 0;
        for (ptrdiff_t j = 0; j < q->d.m; j++)
            far = q->tn[j] <= bound && q->tn[j] > far ? q->tn[j] : far;
        bound = far / 8;
        for (ptrdiff_t j = 0; j < q->d.m; j++)
            near += q->tn[j] <= bound;
        if (2 * near <= q->d.m || !(bound > 0))
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
        drift_fill(q[b].base, 3 * q->d.cp, 0.0f);
    }
    drift_each_target(q, jobs, step, share, DRIFT_MEAN);
    drift_each_target(q, jobs, 1, 0.0f, DRIFT_PACK);
    for (ptrdiff_t b = 0; b < jobs; b++) {
        float *base = q[b].base;
        drift_pack_again(&q[b]);
        for (ptrdiff_t c = 0; c < q->d.cp; c += VL) /* generated samples are negatives too */
            v_store(base + c, v_add(v_load(base + c), v_load(base + 2 * q->d.cp + c)));
        drift_pack_norms(&q[b]);
        if (lanes)
            drift_pack_lanes(&q[b], 0, q[b].d.lp);
    }
}

#endif
