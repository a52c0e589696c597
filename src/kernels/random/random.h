/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random: rows of random numbers from Philox4x32-10, a pure function of (key, step, row id,
 * element), with the counter layout of base/rng.h. The same bits on ref, AVX2 and AVX-512, for any
 * split into ranges of blocks.
 *
 * Row r of the output holds n elements made for row id rows[r]. Element e uses word e of the row:
 *   uniform   (word >> 8) * 2^-24, in [0, 1)
 *   below     the high half of word * limit, in [0, limit)
 *   dropout   keeps the element when uniform >= p
 *   normal    Box and Muller (1958) on the pair of elements (2i, 2i + 1), words u and v:
 *               radius = sqrt(-2 ln(float(((u >> 1) | 1) * 2^-31))),  angle = v * 2 pi / 2^32
 *               element 2i = radius * cos(angle), 2i + 1 = radius * sin(angle)
 *             in float with the polynomials of simd/simd_math.h; the quarter turn comes from the
 *             integer v, so the angle is reduced exactly. |normal| < 6.56.
 *
 * Cost: ten rounds of Philox for four elements, and 4 bytes written each; a normal pair takes a
 * logarithm, a root, a sine and a cosine besides. Bound by arithmetic, most of it the
 * multiplications of Philox; it has no figure of its own.
 */
#ifndef LW_KERNELS_RANDOM_H
#define LW_KERNELS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/rng.h"

/* Rows of n elements are made in blocks of so many, the last of a row shorter: block i is a part of row
 * i / lw_random_blocks(n). So many rows have as many times lw_random_blocks(n). */
enum { LW_RANDOM_BLOCK = 8192 };
static inline ptrdiff_t lw_random_blocks(ptrdiff_t n)
{
    return LW_MAX(LW_CEIL_DIV(n, LW_RANDOM_BLOCK), 1);
}

/* out[r * pitch + e], r and e of the blocks in [begin, end). pitch >= n. */
typedef void lw_random_fill_fn(float *out, ptrdiff_t pitch, const int64_t *rows, lw_rng_key key,
                               uint32_t step, ptrdiff_t n, ptrdiff_t begin, ptrdiff_t end);
typedef void lw_random_below_fn(int32_t *out, ptrdiff_t pitch, const int64_t *rows, lw_rng_key key,
                                uint32_t step, uint32_t limit, ptrdiff_t n, ptrdiff_t begin,
                                ptrdiff_t end);
/* y = x / (1 - p) where kept, else 0, on dense rows of n; 0 <= p < 1. y may be x. Called with dy it is its own
 * gradient. */
typedef void lw_random_dropout_fn(float *y, const float *x, float p, const int64_t *rows,
                                  lw_rng_key key, uint32_t step, ptrdiff_t n, ptrdiff_t begin,
                                  ptrdiff_t end);

struct lw_random_kernels {
    lw_random_fill_fn *uniform, *normal;
    lw_random_below_fn *below;
    lw_random_dropout_fn *dropout;
};

#define K(family, isa, field, function) \
    extern __typeof__(*((struct lw_random_kernels *)0)->field) function;
#include "kernels/random/random.def"
#undef K

#endif
