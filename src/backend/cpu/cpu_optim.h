/* SPDX-License-Identifier: Apache-2.0 */
/* The optimiser step over flat slabs: gradient norm, clipping, AdamW and EMA. */
#ifndef LW_CPU_OPTIM_H
#define LW_CPU_OPTIM_H

#include "kernels/kernels.h"
#include "plan/plan.h"

typedef struct lw_cpu_adamw_args {
    float *p, *m, *v, *ema; /* [n] each; ema may be NULL. p, m, v, ema must not overlap */
    const float *g;         /* [n]: the sum of gradients; gaps between tensors hold 0 */
    int64_t n;
    const lw_optim_range *range; /* ascending and disjoint; NULL: all of it, with decay */
    int32_t n_range;
    double lr, beta1, beta2, eps, weight_decay;
    int64_t t;         /* number of this update: 1, 2, ... */
    double grad_scale; /* every gradient is multiplied by it first: 1 / number of summed leaves */
    double max_norm;   /* clip to this global norm (after grad_scale); <= 0: no clipping */
    double ema_decay;
    double *work; /* lw_cpu_adamw_work(n) doubles */
} lw_cpu_adamw_args;

/* Doubles of scratch for n floats. */
int64_t lw_cpu_adamw_work(int64_t n);
/* One update (torch.optim.AdamW's form, formulas in kernels/optim/optim.h). *grad_norm: global norm
 * after grad_scale, before clipping. Same bits for any thread count. LW_ENUMERIC when the norm is
 * not finite: nothing was changed. */
int lw_cpu_adamw(lw_device *dev, const lw_cpu_adamw_args *a, double *grad_norm);
/* dst[n] += src[n] and dst[n] = src[n], for gradient accumulation. */
void lw_cpu_add(lw_device *dev, float *dst, const float *src, int64_t n);
void lw_cpu_copy(lw_device *dev, float *dst, const float *src, int64_t n);

#endif
