/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats: one-read statistics of a feature map, the keys of the drift loss (Deng et al., "Generative
 * Modeling via Drifting", 2026): per channel, mean and std over all locations, over 2x2 and over
 * 4x4 patches, where std = sqrt(population variance + 1e-6).
 *
 * One call = one sample and a range of channels [c0, c1); pointers are those of the sample. Patches
 * tile from the top left; trailing rows and columns that fill no patch are dropped (floor mode of
 * PyTorch's avg_pool2d) but still count in mean and std. Results of a channel do not depend on the
 * range.
 *
 * Cost: 4 bytes and a few operations an element: a map is read once for all its keys. Bound by
 * reading memory or cache; it has no figure of its own.
 */
#ifndef LW_KERNELS_STATS_H
#define LW_KERNELS_STATS_H

#include <stddef.h>

#define LW_STATS_EPS 1e-6

typedef struct lw_stats_shape {
    ptrdiff_t h, w, c;
    ptrdiff_t pitch; /* elements between pixels of x and dx; >= c */
} lw_stats_shape;

/*
 * mean [C], std [C], mean2 and std2 [(H/2)(W/2), C], mean4 and std4 [(H/4)(W/4), C] (dense,
 * locations row-major) from x [H W, pitch]; any output may be NULL.
 */
#define LW_STATS_FORWARD(name, real)                                                   \
    void name(real *mean, real *std, real *mean2, real *std2, real *mean4, real *std4, \
              const real *x, const lw_stats_shape *s, ptrdiff_t c0, ptrdiff_t c1)
/*
 * dx [H W, pitch] from the gradients of the six outputs (NULL: none); added to dx when add is 1.
 * Statistics are recomputed from x. d std / d x_i = (x_i - mean) / (n std).
 */
#define LW_STATS_BACKWARD(name, real)                                                  \
    void name(real *dx, const real *dmean, const real *dstd, const real *dmean2,       \
              const real *dstd2, const real *dmean4, const real *dstd4, const real *x, \
              const lw_stats_shape *s, ptrdiff_t c0, ptrdiff_t c1, int add)

typedef LW_STATS_FORWARD(lw_stats_forward_fn, float);
typedef LW_STATS_BACKWARD(lw_stats_backward_fn, float);

typedef struct lw_stats_kernels {
    lw_stats_forward_fn *forward;
    lw_stats_backward_fn *backward;
} lw_stats_kernels;

/* Tasks of one sample (a split of its channels, pure function of the shape) and their channel
 * ranges. */
ptrdiff_t lw_stats_tasks(const lw_stats_shape *s);
void lw_stats_range(const lw_stats_shape *s, ptrdiff_t task, ptrdiff_t *c0, ptrdiff_t *c1);

/* The reference in double, for gradient checks. */
LW_STATS_FORWARD(lw_stats_forward_f64, double);
LW_STATS_BACKWARD(lw_stats_backward_f64, double);

#define K(family, isa, field, function) lw_stats_##field##_fn function;
#include "kernels/stats/stats.def"
#undef K

#endif
