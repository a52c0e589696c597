/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cast: between f32 and the types of reduced precision, element by element.
 *
 * Every function works on n contiguous elements; out and x do not overlap. The results have the
 * same bits at every ISA level.
 *
 * Cost: 4 or 2 bytes on one side and 2 (bf16) or 1 (u8) on the other an element. Bound by memory;
 * products read what it writes while a cache still holds it. It has no figure of its own.
 */
#ifndef LW_KERNELS_CAST_H
#define LW_KERNELS_CAST_H

#include "base/base.h"

/* To nearest even, denormals kept, NaN quiet: lw_bf16_of_f32. */
typedef void lw_cast_f32_to_bf16_fn(lw_bf16 *out, const float *x, ptrdiff_t n);
/* Exact. */
typedef void lw_cast_bf16_to_f32_fn(float *out, const lw_bf16 *x, ptrdiff_t n);
/* out = x * (1 / scale) to nearest even, + zero, kept within 0..255; NaN gives 0. scale > 0, zero
 * 0..255. */
typedef void lw_cast_f32_to_u8_fn(uint8_t *out, const float *x, ptrdiff_t n, float scale,
                                  int32_t zero);
/* The same of the numbers that x stands for. */
typedef void lw_cast_bf16_to_u8_fn(uint8_t *out, const lw_bf16 *x, ptrdiff_t n, float scale,
                                   int32_t zero);
/* out = scale * (x - zero). */
typedef void lw_cast_u8_to_f32_fn(float *out, const uint8_t *x, ptrdiff_t n, float scale,
                                  int32_t zero);
/* Widens [*lo, *hi] to hold x[n]; NaN is passed over. Start from *lo = INFINITY, *hi
 * = -INFINITY. */
typedef void lw_cast_range_fn(float *lo, float *hi, const float *x, ptrdiff_t n);

struct lw_cast_kernels {
    lw_cast_f32_to_bf16_fn *f32_to_bf16;
    lw_cast_bf16_to_f32_fn *bf16_to_f32;
    lw_cast_f32_to_u8_fn *f32_to_u8;
    lw_cast_bf16_to_u8_fn *bf16_to_u8;
    lw_cast_u8_to_f32_fn *u8_to_f32;
    lw_cast_range_fn *range;
};

#define K(family, isa, field, function) lw_cast_##field##_fn function;
#include "kernels/cast/cast.def"
#undef K

#endif
