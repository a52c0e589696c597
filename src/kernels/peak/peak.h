/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine can do at most: for `leeway info --peak` and as the ceiling of benchmarks. It is
 * the 100 % that every share of a peak in these headers is of. */
#ifndef LW_KERNELS_PEAK_H
#define LW_KERNELS_PEAK_H

#include <stddef.h>

/* `rounds` rounds of 12 independent fused multiply-adds on registers (4 of tile
 * registers), nothing else. *ops:
 * multiplications and additions done (two per element), *sink: a number that keeps the work from
 * being dropped. */
typedef void lw_peak_fma_fn(double *ops, float *sink, ptrdiff_t rounds);
/* The same for products of bf16 pairs summed in f32, and of u8 x s8 quadruples summed in s32. Only
 * at levels that have instructions for them: NULL elsewhere. */
typedef lw_peak_fma_fn lw_peak_bf16_fn;
typedef lw_peak_fma_fn lw_peak_int8_fn;
/* *sum: sum of x[n] in no useful order; reads every byte once. n is a multiple of 64. */
typedef void lw_peak_read_fn(float *sum, const float *x, ptrdiff_t n);
/* y[n] = x[n]; n is a multiple of 64. */
typedef void lw_peak_copy_fn(float *y, const float *x, ptrdiff_t n);

struct lw_peak_kernels {
    lw_peak_fma_fn *fma;
    lw_peak_bf16_fn *bf16;
    lw_peak_int8_fn *int8;
    lw_peak_read_fn *read;
    lw_peak_copy_fn *copy;
};

#define K(family, isa, field, function) lw_peak_##field##_fn function;
#include "kernels/peak/peak.def"
#undef K

#endif
