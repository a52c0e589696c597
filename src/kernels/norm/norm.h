/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm: group normalisation with optional modulation and activation (Wu and He, "Group
 * Normalization", 2018).
 *
 *   xh = (x - mean_g) * rstd_g                          mean, population variance over the group's
 *                                                       channels and all pixels; with rms the mean
 *                                                       is 0 and the variance that around 0
 *   u  = (xh * gamma + beta) * (1 + scale) + shift      scale, shift: per sample and
 *                                                       channel, or NULL
 *   y  = act(u)
 *
 * One call = one sample and a range of groups [g0, g1): pointers are those of the sample. Results
 * of a group do not depend on the range it is computed in. Letters: HW pixels, C channels, G
 * groups, channel c is in group c / (C / G).
 *
 * Cost: 8 bytes of memory and a few operations an element forward, and an exponential with SiLU,
 * which bounds it: 17 GB/s on one thread (docs/performance-zen4.md); without, memory or cache does.
 */
#ifndef LW_KERNELS_NORM_H
#define LW_KERNELS_NORM_H

#include "base/base.h"

typedef struct lw_norm_shape {
    ptrdiff_t hw, c, groups;    /* c % groups == 0 */
    ptrdiff_t x_pitch, y_pitch; /* elements between pixels of x (and dx), of y (and dy); >= c */
    float eps;                  /* rstd = 1 / sqrt(var + eps) */
    lw_act act;
    bool rms;     /* RMSNorm: no mean is taken off, mean is 0 */
    lw_num x_num; /* of x: LW_NUM_F32, or of forward_narrow LW_NUM_BF16 */
} lw_norm_shape;

/*
 * y [HW, y_pitch], mean [G], rstd [G] from x [HW, x_pitch], gamma [C], beta [C] (NULL: 1, 0),
 * scale [C], shift [C] (NULL: 0). Only channels and groups of [g0, g1) are written. y may be x
 * (equal pitches).
 */
#define LW_NORM_FORWARD(name, real)                                                                \
    void name(real *y, real *mean, real *rstd, const real *x, const real *gamma, const real *beta, \
              const real *scale, const real *shift, const lw_norm_shape *s, ptrdiff_t g0,          \
              ptrdiff_t g1, float *scratch)

/*
 * From dy [HW, y_pitch] and the forward's inputs and mean, rstd: dx [HW, x_pitch] (added to when
 * add_dx is 1), and this sample's terms dgamma [C], dbeta [C], dscale [C], dshift [C]; any of the
 * five outputs may be NULL. The normalised value and the activation's slope are recomputed. dx may
 * be dy (equal pitches, add_dx 0). Sums over samples are the caller's.
 */
#define LW_NORM_BACKWARD(name, real)                                                           \
    void name(real *dx, real *dgamma, real *dbeta, real *dscale, real *dshift, const real *dy, \
              const real *x, const real *mean, const real *rstd, const real *gamma,            \
              const real *beta, const real *scale, const real *shift, const lw_norm_shape *s,  \
              ptrdiff_t g0, ptrdiff_t g1, int add_dx, float *scratch)

/*
 * As forward, y of f32, bf16 (num LW_NUM_BF16) or u8 (LW_NUM_S8; pair = {scale, zero}, u8 = y / scale +
 * zero as kernels/cast rounds it; NULL otherwise), x of x_num. y may not be x. bf16 is rounded by v_store_bf16 (simd.h).
 */
typedef void lw_norm_forward_narrow_fn(void *y, float *mean, float *rstd, const void *x,
                                       const float *gamma, const float *beta, const float *scale,
                                       const float *shift, lw_num num, const float *pair,
                                       const lw_norm_shape *s, ptrdiff_t g0, ptrdiff_t g1,
                                       float *scratch);

/*
 * Layer norm: `rows` samples of one pixel and one group (hw 1, groups 1). y [rows, y_pitch] of f32
 * or bf16 (num), mean [rows], rstd [rows], x [rows, x_pitch], scale and shift [rows, C] or NULL.
 * y may be x (f32, equal pitches). A row's results do not depend on the others. also [rows, C],
 * with y of f32: the same numbers in bf16; or NULL.
 */
typedef void lw_norm_rows_fn(void *y, lw_bf16 *also, float *mean, float *rstd, const float *x,
                             const float *gamma, const float *beta, const float *scale,
                             const float *shift, lw_num num, const lw_norm_shape *s,
                             ptrdiff_t rows);
/*
 * Its backward without scale and activation, rows c apart (of the shape c and rms count): dx (NULL; may
 * be dy) and these rows' sums dgamma [c] and dbeta [c] (overwritten; either may be NULL) from dy.
 * gamma may be NULL: 1.
 */
typedef void lw_norm_rows_backward_fn(float *dx, float *dgamma, float *dbeta, const float *dy,
                                      const float *x, const float *mean, const float *rstd,
                                      const float *gamma, const lw_norm_shape *s, ptrdiff_t rows);

typedef LW_NORM_FORWARD(lw_norm_forward_fn, float);
typedef LW_NORM_BACKWARD(lw_norm_backward_fn, float);

typedef struct lw_norm_kernels {
    lw_norm_forward_fn *forward;
    lw_norm_forward_narrow_fn *forward_narrow;
    lw_norm_rows_fn *rows;
    lw_norm_backward_fn *backward;
    lw_norm_rows_backward_fn *rows_backward;
} lw_norm_kernels;

/* Floats of scratch one call needs. */
size_t lw_norm_scratch(const lw_norm_shape *s);
/* Tasks that each of so many samples is cut into: its groups, as evenly as they go. A pure function of both; no bit depends
 * on it. */
ptrdiff_t lw_norm_tasks(const lw_norm_shape *s, ptrdiff_t samples);
/* Groups [g0, g1) of task `task` of so many. */
void lw_norm_range(const lw_norm_shape *s, ptrdiff_t tasks, ptrdiff_t task, ptrdiff_t *g0,
                   ptrdiff_t *g1);

/* The reference in double, for gradient checks. */
LW_NORM_FORWARD(lw_norm_forward_f64, double);
LW_NORM_BACKWARD(lw_norm_backward_f64, double);

#define K(family, isa, field, function) lw_norm_##field##_fn function;
#include "kernels/norm/norm.def"
#undef K

#endif
