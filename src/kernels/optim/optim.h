/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optim: AdamW (Loshchilov and Hutter 2019, the decoupled form of PyTorch's torch.optim.AdamW), SGD with
 * Nesterov's momentum (Sutskever et al. 2013, the form of torch.optim.SGD with nesterov) and the exponential
 * moving average of the weights, one pass over flat slabs. Elements are independent: same bits for any
 * split, and on AVX2 and AVX-512.
 *
 * AdamW:
 *   g' = grad_scale g
 *   p  = p - lr weight_decay p
 *   m  = m + (1 - beta1) (g' - m)
 *   v  = beta2 v + (1 - beta2) g'^2
 *   p  = p - (lr / bias1) m / (sqrt(v) / sqrt(bias2) + eps)    bias_i = 1 - beta_i^t, t = 1, 2, ..
 *   ema = ema + (1 - ema_decay) (p - ema)
 *
 * SGD; decay is coupled (part of the gradient), m begins with 0:
 *   g' = grad_scale g + weight_decay p
 *   m  = momentum m + g'
 *   p  = p - lr (g' + momentum m)
 *   ema as above
 *
 * The gradient norm comes from reduce.chunk_sumsq over the slab, then optim.clip.
 *
 * Cost: 36 bytes a parameter (five slabs read, four written), 28 without the average, and a root
 * and a division. SGD 28 and 20 bytes. Bound by memory: 34 GB/s on one thread
 * (docs/performance-zen4.md).
 */
#ifndef LW_KERNELS_OPTIM_H
#define LW_KERNELS_OPTIM_H

#include <stddef.h>

typedef struct lw_adamw {
    double lr, beta1, beta2, eps, weight_decay;
    double bias1, bias2; /* 1 - beta^t of this step */
    double grad_scale;   /* clipping and averaging; 1 for none */
    double ema_decay;    /* unused when ema is NULL */
} lw_adamw;

typedef struct lw_sgd {
    double lr, momentum, weight_decay;
    double grad_scale, ema_decay; /* as of lw_adamw */
} lw_sgd;

/* Consecutive elements [begin, end) of the slabs and whether weight decay applies to them. */
typedef struct lw_optim_range {
    ptrdiff_t begin, end;
    int decay;
} lw_optim_range;

/* One step for the elements of [begin, end) that lie in one of the n_range ranges (ascending,
 * disjoint); others are untouched. ema may be NULL. p, m, v, ema are updated in place; g
 * is read. */
typedef void lw_optim_adamw_fn(float *p, float *m, float *v, float *ema, const float *g,
                               const lw_adamw *o, const lw_optim_range *range, ptrdiff_t n_range,
                               ptrdiff_t begin, ptrdiff_t end);
/* The same by SGD, for all elements of [begin, end). */
typedef void lw_optim_sgd_fn(float *p, float *m, float *ema, const float *g, const lw_sgd *o,
                             ptrdiff_t begin, ptrdiff_t end);
/* ema = ema + (1 - decay) (p - ema) alone. */
typedef void lw_optim_ema_fn(float *ema, const float *p, double decay, ptrdiff_t begin,
                             ptrdiff_t end);
/* norm[0] = scale sqrt(sum part[n]); coef[0] = scale min(1, max_norm / (norm + 1e-6)) as PyTorch's
 * clip_grad_norm_, to be used as grad_scale. `scale` multiplies every gradient first; max_norm <=
 * 0: no clipping. */
typedef void lw_optim_clip_fn(double *coef, double *norm, const double *part, ptrdiff_t n,
                              double scale, double max_norm);

struct lw_optim_kernels {
    lw_optim_adamw_fn *adamw;
    lw_optim_sgd_fn *sgd;
    lw_optim_ema_fn *ema;
    lw_optim_clip_fn *clip;
};

#define K(family, isa, field, function) \
    extern __typeof__(*((struct lw_optim_kernels *)0)->field) function;
#include "kernels/optim/optim.def"
#undef K

#endif
