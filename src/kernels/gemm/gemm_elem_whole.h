/* SPDX-License-Identifier: Apache-2.0 */
/* See gemm_elem_f32.h. What words of whole numbers share that one instruction multiplies. */
#ifndef LW_KERNELS_GEMM_ELEM_WHOLE_H
#define LW_KERNELS_GEMM_ELEM_WHOLE_H

#include "kernels/gemm/gemm_tile.h"

#define EL_UNPACKED 0
enum { EL_PARTS = 1 };
typedef vi el_sum;
typedef vi el_vec;

LW_WORD el_vec el_row(const float *p, int part)
{
    (void)part;
    return lw_word_everywhere(p);
}
LW_WORD el_vec el_panel(const float *b, int part)
{
    (void)part;
    return vi_load(b);
}

#endif
