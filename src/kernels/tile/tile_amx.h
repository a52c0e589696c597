/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile_product of tile.h on tile registers, for words of two bf16 (parts 1) or of LW_NUM_BF16X3 (3):
 * C (+)= A B with aks = 1, rows of A, B and C in whole lines of 64 bytes and k a multiple of 16 parts.
 * Rows up to a multiple of 16 are read and written, whatever they hold.
 */
#ifndef LW_KERNELS_TILE_TILE_AMX_H
#define LW_KERNELS_TILE_TILE_AMX_H

#include "kernels/simd/simd_amx.h"
#include "kernels/tile/tile.h"

/* 32 or 16 rows from i on, 32 or 16 columns from j on. */
LW_WORD void amx_block(const tile_arg *t, ptrdiff_t i, ptrdiff_t j, const int halves,
                       const int vecs, const int parts)
{
    const ptrdiff_t word = (ptrdiff_t)sizeof(float), lda = t->ars * word, ldb = t->bks * word,
                    ldc = t->ldc * word;
    const float *a = t->a + i * t->ars, *b = t->b + j;
    float *c = t->c + i * t->ldc + j;
    if (t->add)
        amx_sums_load(c, ldc, halves, vecs);
    else
        amx_sums_zero();
    const ptrdiff_t chunk = parts * AMX_WORDS;
    for (ptrdiff_t k = 0; k < t->k; k += chunk, a += chunk, b += chunk * t->bks) {
        const float *lower = a + AMX_ROWS * t->ars;
        if (parts == 3)
            amx_sums_add_bf16x3(a, lda, AMX_WORDS, lower, lda, AMX_WORDS, b, ldb, halves, vecs);
        else
            amx_sums_add(a, lda, lower, lda, b, ldb, halves, vecs, AMX_BF16);
        amx_stay_awake(k / chunk, parts == 3 ? AMX_AWAKE_BF16X3 : AMX_AWAKE);
    }
    amx_sums_store(c, ldc, halves, vecs);
}

LW_WORD void amx_product_of(const tile_arg *t, ptrdiff_t m, ptrdiff_t n, const int parts)
{
    for (ptrdiff_t i = 0; i < m; i += 2 * AMX_ROWS)
        for (ptrdiff_t j = 0; j < n; j += 2 * VL) {
            const bool tall = m - i > AMX_ROWS, wide = n - j > VL;
            if (tall && wide)
                amx_block(t, i, j, 2, 2, parts);
            else if (tall)
                amx_block(t, i, j, 2, 1, parts);
            else if (wide)
                amx_block(t, i, j, 1, 2, parts);
            else
                amx_block(t, i, j, 1, 1, parts);
        }
}

static __attribute__((unused)) void amx_product(const tile_arg *t, ptrdiff_t m, ptrdiff_t n)
{
    amx_product_of(t, m, n, 1);
}

static __attribute__((unused)) void amx_product_bf16x3(const tile_arg *t, ptrdiff_t m, ptrdiff_t n)
{
    amx_product_of(t, m, n, 3);
}

#endif
