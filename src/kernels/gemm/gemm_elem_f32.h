/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the tiles of gemm and conv: how a 32-bit word of a row meets the words of a panel.
 *
 * One of gemm_elem_{f32,bf16,u8,s16}.h is included before a tile body and gives it
 *   EL(name)            the name of the tile in this type and at this level
 *   el_sum              a vector of sums; el_vec: what is multiplied
 *   EL_PARTS            multiplications that a word takes (2 where the level must widen halves)
 *   el_row(p, part)     a word of a row in every lane
 *   el_panel(b, part)   VL words of a panel; el_panel_n the first n (f32 only: EL_IN_PLACE)
 *   el_mac(sum, row, panel)
 *   EL_INTEGER, EL_OF_FLOAT(v)  whole sums, 0 or 1; the bits v as sums
 *   EL_UNPACKED         0 or 1: words of rows are unpacked once for all panels, a word for each part (el_unpack)
 *   el_store(p, sum)    for tile.h
 *   EL_LOW              0 or 1: finished sums may be bf16, and what is added to them
 *
 * Here: one float.
 */
#ifndef LW_KERNELS_GEMM_ELEM_F32_H
#define LW_KERNELS_GEMM_ELEM_F32_H

#include "kernels/gemm/gemm_tile.h"

#define EL(name) LWV(name)
#define EL_UNPACKED 0
#define EL_IN_PLACE 1 /* rank tiles read columns where they lie: the last vector may be short */
#define EL_INTEGER 0
#define EL_LOW 0
#define EL_OF_FLOAT(v) (v)
enum { EL_PARTS = 1 };
typedef vf el_sum;
typedef vf el_vec;

LW_WORD el_vec el_row(const float *p, int part)
{
    (void)part;
    return v_set1(*p);
}
LW_WORD el_vec el_panel(const float *b, int part)
{
    (void)part;
    return v_load(b);
}
LW_WORD el_vec el_panel_n(const float *b, int part, ptrdiff_t n)
{
    (void)part;
    return v_load_n(b, n);
}
LW_WORD el_sum el_mac(el_sum sum, el_vec row, el_vec panel)
{
    return v_fma(row, panel, sum);
}

LW_WORD void el_store(float *p, el_sum s)
{
    v_store(p, s);
}

#endif
