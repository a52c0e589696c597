/* SPDX-License-Identifier: Apache-2.0 */
/* What the passes of the drift field share: a group's targets and their places. */
#ifndef LW_CUDA_DRIFT_H
#define LW_CUDA_DRIFT_H

#include "backend/cuda/kernels/cuda_port.h"

/* The vectors of a (g, t) pair, `row` elements apart, and the weight of its unconditional ones. */
typedef struct drift_group {
    const float *x, *unc, *pos;
    int64_t row;
    float w;
} drift_group;

LW_ON_DEVICE drift_group drift_group_of(const lw_cuda_drift *a, int32_t b)
{
    int64_t g = b / a->t, row = (int64_t)a->t * a->c, slot = (int64_t)(b % a->t) * a->c;
    drift_group q;
    q.x = a->x + g * a->n * row + slot;
    q.unc = a->unc + (a->nu ? g * a->nu * row + slot : 0);
    q.pos = a->pos + g * a->np * row + slot;
    q.row = row;
    q.w = a->nu ? a->w_u[g] : 0.0f;
    return q;
}

/* The vector at a place; NULL: there is none. */
LW_ON_DEVICE const float *drift_vector(const lw_cuda_drift *a, const drift_group *q, int32_t place)
{
    if (place < a->n)
        return q->x + place * q->row;
    if (place < a->n + a->nu)
        return q->unc + (place - a->n) * q->row;
    place -= a->pos_at;
    return place >= 0 && place < a->np ? q->pos + place * q->row : NULL;
}

LW_ON_DEVICE bool drift_there(const lw_cuda_drift *a, int32_t place)
{
    return place < a->n + a->nu || (place >= a->pos_at && place < a->pos_at + a->np);
}

/* 0 where there is no target. */
LW_ON_DEVICE float drift_weight(const lw_cuda_drift *a, float uncond, int32_t place)
{
    if (!drift_there(a, place))
        return 0.0f;
    return place >= a->n && place < a->n + a->nu ? uncond : 1.0f;
}

LW_ON_DEVICE const lw_cuda_drift_rule *drift_rule_of(const lw_cuda_drift *a, int32_t b)
{
    return a->rule + b % a->t % a->scales;
}

/* A value as the sum of two of f16, but for 2^-22 of it or 2^-25. */
LW_ON_DEVICE void drift_split(float x, uint32_t half[2])
{
    half[0] = lw_f16_bits(x);
    half[1] = lw_f16_bits(x - lw_f16_to_float((uint16_t)half[0]));
}

/* The power of two over which a value becomes 2^13 or more, less than 2^14: the largest that are added up safely as f16, so
 * that small ones keep most bits. by: 1 over it. */
LW_ON_DEVICE float drift_unit(float most, float *by)
{
    uint32_t exponent = (lw_float_to_bits(most) & 0x7fffffffu) >> 23;
    exponent = exponent < 14 ? 14 : exponent > 254 ? 254 : exponent;
    *by = lw_bits_to_float((267 - exponent) << 23);
    return lw_bits_to_float((exponent - 13) << 23);
}

/* ---- S --------------------------------------------------------------------------------------- */

LW_ON_DEVICE double drift_sigma(const lw_cuda_drift *a, double scale)
{
    return a->variant == 1 ? 1.0 : fmax(scale / sqrt((double)a->c), 1e-3);
}

/* lw_drift_rule_of. Logits are multiplied by log2 e, so that exponentials are powers of two. */
LW_ON_DEVICE void drift_write_rule(const lw_cuda_drift *a, double scale, lw_cuda_drift_rule *r)
{
    double unit = a->variant == 1 ? 1.0 : fmax(scale, 1e-3), factor = 1.0;
    double mask = 100.0 * unit;
    r->scale = scale;
    r->v_unit = drift_sigma(a, scale);
    r->floor = a->rows_only || a->variant ? 0.0f : 1e-3f;
    r->inside = a->rows_only || a->variant != 2 ? 0.0f : 1e-30f;
    if (a->variant)
        mask = 1e6 * unit;
    if (a->variant == 2) {
        factor = sqrt((double)a->c);
        r->v_unit = 1.0;
    }
    if (isnan(scale)) /* then all results are */
        r->v_unit = scale;
    r->mask = (float)mask;
    for (int k = 0; k < a->k; k++)
        r->by[k] = (float)fmin(1.4426950408889634 / (unit * a->tau[k] * factor), 1e38);
}

/* S of all slots, or of one, by a block. room: a double per thread */
LW_ON_DEVICE void drift_make_rule(const lw_cuda_drift *a, int32_t slot, double *room,
                                  lw_cuda_drift_rule *r)
{
    int32_t groups = a->g * a->t / a->scales, slots = a->t / a->scales;
    int32_t tiles = ((a->n + LW_CUDA_DRIFT_TILE - 1) / LW_CUDA_DRIFT_TILE) *
                    ((a->width + LW_CUDA_DRIFT_TILE - 1) / LW_CUDA_DRIFT_TILE);
    double sum = 0.0, wu = 0.0;
    if (a->scales == 1)
        for (int32_t e = LW_TID; e < groups * tiles; e += 256)
            sum += a->part[e];
    else
        for (int32_t e = LW_TID; e < groups * tiles; e += 256)
            sum += a->part[((int64_t)(e / tiles) * a->scales + slot) * tiles + e % tiles];
    for (int32_t g = LW_TID; a->nu && g < a->g; g += 256)
        wu += (double)a->w_u[g];
    sum = lw_block_sum(room, sum);
    if (a->nu)
        wu = lw_block_sum(room, wu);
    if (LW_TID == 0)
        drift_write_rule(a,
                         sum / ((double)a->n * (double)slots *
                                ((double)a->g * (double)(a->n + a->np) + (double)a->nu * wu)),
                         r);
}

#endif
