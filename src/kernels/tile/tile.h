/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tile: a small dense product held in cache, the inner part of attention, of the drift field and of convolutions over
 * Winograd's tiles.
 *
 *   C[i][j] (+)= sum_k A(i, k) B[k][j],   i < M, j < N, k < K, N a multiple of VL
 *
 * A(i, k) = a[i * ars + k * aks] is read one float at a time, so it may be transposed; B and C have
 * unit column stride. Each element is one chain of fused multiply-adds over k in order (starting at
 * 0 or at the old C), so its bits do not depend on how a caller cuts rows and columns.
 *
 * After gemm_elem_bf16.h or _s16.h everything is counted in words of two: k in pairs, A and B are words, and of s16 C is s32,
 * modulo 2^32.
 */
#ifndef LW_KERNELS_TILE_H
#define LW_KERNELS_TILE_H

#include "kernels/simd/simd.h"
#include "kernels/tile/unroll.h"

#ifndef EL
#include "kernels/gemm/gemm_elem_f32.h"
#endif

#if VL == 16
#define TILE_MR 12
#else
#define TILE_MR 6
#endif

typedef struct tile_arg {
    const float *a, *b;
    float *c;
    ptrdiff_t ars, aks, bks, ldc, k;
    int add;
} tile_arg;

/* mr x (nv VL) outputs in registers; mr, nv and beside, whether ars is 1, are constants where this is called. ask: what to ask
 * for meanwhile, and on return from where on later, or NULL. */
LW_WORD void tile_block(const tile_arg *t, const float *a, const float *b, float *c, const int mr,
                        const int nv, const bool beside, lw_tile_fetch *ask)
{
    /* A pointer to every third of a dozen rows, of which compilers know nothing: else they keep the distance of each row to the
     * first one, more than there are registers. */
    const int each = beside || TILE_MR < 12 ? TILE_MR : 3, pointers = (mr + each - 1) / each;
    const float *row[(TILE_MR + 2) / 3];
    el_sum s[TILE_MR][2];
    const ptrdiff_t ars = beside ? 1 : t->ars, aks = t->aks, bks = t->bks, ldc = t->ldc;
    lw_tile_fetch fetch[2] = {{0}};
    if (ask) {
        fetch[0] = ask[0];
        fetch[1] = ask[1];
    }
    LW_UNROLL_UP_TO(12)
    for (int i = 0; i < mr; i++) {
        LW_UNROLL_UP_TO(2)
        for (int v = 0; v < nv; v++)
            s[i][v] = EL_OF_FLOAT(t->add ? v_load(c + i * ldc + v * VL) : v_zero());
    }
    LW_UNROLL_UP_TO(4)
    for (int i = 0; i < pointers; i++) {
        row[i] = a + each * i * ars;
        __asm__("" : "+r"(row[i]));
    }
    for (ptrdiff_t k = t->k; k > 0; k--) {
        if (ask)
            lw_tile_fetch_lines(fetch);
        LW_UNROLL_UP_TO(2)
        for (int part = 0; part < EL_PARTS; part++) {
            el_vec bv[2];
            LW_UNROLL_UP_TO(2)
            for (int v = 0; v < nv; v++)
                bv[v] = el_panel(b + v * VL, part);
            LW_UNROLL_UP_TO(12)
            for (int i = 0; i < mr; i++) {
                el_vec ai = el_row(row[i / each] + i % each * ars, part);
                LW_UNROLL_UP_TO(2)
                for (int v = 0; v < nv; v++)
                    s[i][v] = el_mac(s[i][v], ai, bv[v]);
            }
        }
        LW_UNROLL_UP_TO(4)
        for (int i = 0; i < pointers; i++)
            row[i] += aks;
        b += bks;
    }
    if (ask) {
        ask[0] = fetch[0];
        ask[1] = fetch[1];
    }
    LW_UNROLL_UP_TO(12)
    for (int i = 0; i < mr; i++) {
        LW_UNROLL_UP_TO(2)
        for (int v = 0; v < nv; v++)
            el_store(c + i * ldc + v * VL, s[i][v]);
    }
}

/* All rows of one column strip of nv vectors. Those of the last two blocks are shared out: one or two alone would wait for their
 * own sums. */
LW_WORD void tile_strip(const tile_arg *t, ptrdiff_t m, const float *b, float *c, const int nv,
                        const bool beside, lw_tile_fetch *ask)
{
    const ptrdiff_t ars = beside ? 1 : t->ars;
    ptrdiff_t i = 0, rows;
    for (; m - i == TILE_MR || m - i >= 2 * TILE_MR - 1; i += TILE_MR)
        tile_block(t, t->a + i * ars, b, c + i * t->ldc, TILE_MR, nv, beside, ask);
    for (; i < m; i += rows) {
        rows = m - i > TILE_MR ? (m - i) / 2 : m - i;
#define ROWS(n)                                                               \
    case n:                                                                   \
        tile_block(t, t->a + i * ars, b, c + i * t->ldc, n, nv, beside, ask); \
        break
        switch (rows) {
            ROWS(1);
            ROWS(2);
            ROWS(3);
            ROWS(4);
            ROWS(5);
#if TILE_MR > 6
            ROWS(6);
            ROWS(7);
            ROWS(8);
            ROWS(9);
            ROWS(10);
            ROWS(11);
#endif
        }
#undef ROWS
    }
}

LW_WORD void tile_columns(const tile_arg *t, ptrdiff_t m, ptrdiff_t n, const bool beside,
                          lw_tile_fetch *ask)
{
    ptrdiff_t j = 0;
    for (; j + 2 * VL <= n; j += 2 * VL)
        tile_strip(t, m, t->b + j, t->c + j, 2, beside, ask);
    for (; j < n; j += VL)
        tile_strip(t, m, t->b + j, t->c + j, 1, beside, ask);
}

static void __attribute__((unused)) tile_product(const tile_arg *t, ptrdiff_t m, ptrdiff_t n)
{
    if (t->ars == 1)
        tile_columns(t, m, n, true, NULL);
    else
        tile_columns(t, m, n, false, NULL);
}

/* The same, asking for lines meanwhile: two with each step of some rows. */
static void __attribute__((unused))
tile_product_asking(const tile_arg *t, ptrdiff_t m, ptrdiff_t n, lw_tile_fetch ask[2])
{
    tile_columns(t, m, n, false, ask);
}

/* to[c][i] = scale from[i][c] for m rows and n columns of `from`. */
static inline void tile_transpose(float *to, ptrdiff_t to_pitch, const float *from, ptrdiff_t pitch,
                                  ptrdiff_t m, ptrdiff_t n, float scale)
{
    ptrdiff_t whole_m = m / VL * VL, whole_n = n / VL * VL;
    for (ptrdiff_t i = 0; i < whole_m; i += VL)
        for (ptrdiff_t c = 0; c < whole_n; c += VL) {
            vf r[VL];
            LW_UNROLL_UP_TO(16)
            for (int l = 0; l < VL; l++)
                r[l] = v_mul(v_load(from + (i + l) * pitch + c), v_set1(scale));
            v_transpose(r);
            LW_UNROLL_UP_TO(16)
            for (int l = 0; l < VL; l++)
                v_store(to + (c + l) * to_pitch + i, r[l]);
        }
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t c = i < whole_m ? whole_n : 0; c < n; c++)
            to[c * to_pitch + i] = from[i * pitch + c] * scale;
}

#endif
