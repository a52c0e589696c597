/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile_product of tile.h on tile registers, for words of two bf16: C (+)= A B with aks = 1, rows of A, B
 * and C in whole lines of 64 bytes and k a multiple of 16. Rows up to a multiple of 16 are read and
 * written, whatever they hold.
 */
#ifndef LW_KERNELS_TILE_TILE_AMX_H
#define LW_KERNELS_TILE_TILE_AMX_H

#include "kernels/simd/simd_amx.h"
#include "kernels/tile/tile.h"

/* 32 or 16 rows from i on, 32 or 16 columns from j on. */
LW_WORD void amx_block(const tile_arg *t, ptrdiff_t i, ptrdiff_t j, const int halves,
                       const int vecs)
{
    const ptrdiff_t word = (ptrdiff_t)sizeof(float), lda = t->ars * word, ldb = t->bks * word,
                    ldc = t->ldc * word;
    const float *a = t->a + i * t->ars, *b = t->b + j;
    float *c = t->c + i * t->ldc + j;
    if (t->add)
        amx_sums_load(c, ldc, halves, vecs);
    else
        amx_sums_zero();
    for (ptrdiff_t k = 0; k < t->k; k += AMX_WORDS, a += AMX_WORDS, b += AMX_WORDS * t->bks)
        amx_sums_add(a, lda, a + AMX_ROWS * t->ars, lda, b, ldb, halves, vecs, AMX_BF16);
    amx_sums_store(c, ldc, halves, vecs);
}

static void amx_product(const tile_arg *t, ptrdiff_t m, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < m; i += 2 * AMX_ROWS)
        for (ptrdiff_t j = 0; j < n; j += 2 * VL) {
            const bool tall = m - i > AMX_ROWS, wide = n - j > VL;
            if (tall && wide)
                amx_block(t, i, j, 2, 2);
            else if (tall)
                amx_block(t, i, j, 2, 1);
            else if (wide)
                amx_block(t, i, j, 1, 2);
            else
                amx_block(t, i, j, 1, 1);
        }
}

#endif
