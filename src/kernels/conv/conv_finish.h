/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the conv family: an epilogue on a vector of channels of a pixel or of some, for kernels whose sums are not
 * those of a row tile. */
#ifndef LW_KERNELS_CONV_FINISH_H
#define LW_KERNELS_CONV_FINISH_H

#include "kernels/gemm/gemm.h"
#include "kernels/simd/simd_act.h"

/* Not inlined: loops around it would hold three long curves many times. */
static vf __attribute__((noinline, unused)) lw_finish_curve(vf s, lw_act act)
{
    return v_curve(s, act);
}

/* Pixels of an image that are finished at once. */
typedef struct lw_finish_area {
    ptrdiff_t rows, cols;
    ptrdiff_t first, width; /* number of the first one, and of those in a line of the image */
} lw_finish_area;

/* Stores channels [n, n + lanes) of an area's pixels, the first at element `at` of y, neighbours `ld` elements apart; s[row *
 * pitch + col] are their sums. low, a constant: y, and what is added, may be bf16. One step of the epilogue after the other,
 * instead of all questions at each pixel. */
LW_WORD void lw_finish_pixels(void *y, ptrdiff_t at, ptrdiff_t ld, vf *s, const int pitch,
                              const lw_finish_area a, const lw_epilogue *e, vf bias, vf image_bias,
                              ptrdiff_t n, ptrdiff_t lanes, const bool low)
{
#define EACH                               \
    for (ptrdiff_t i = 0; i < a.rows; i++) \
        for (ptrdiff_t k = 0; k < a.cols; k++)
#define SUM s[i * pitch + k]
#define OUT (at + (i * a.width + k) * ld)
#define RESIDUAL ((a.first + i * a.width + k) * e->ld_residual + n)
    if (e->accumulate)
        EACH SUM = v_add(SUM, v_load_n((float *)y + OUT, lanes));
    if (e->bias)
        EACH SUM = v_add(SUM, bias);
    if (e->image_bias)
        EACH SUM = v_add(SUM, image_bias);
    if (e->residual)
        EACH SUM = v_add(SUM, v_load_n(e->residual + RESIDUAL, lanes));
    if (low && e->residual_low)
        EACH SUM = v_add(SUM, v_of_bf16(vi_load_u16_n(e->residual_low + RESIDUAL, lanes)));
    if (e->act == LW_ACT_RELU)
        EACH SUM = v_max(v_zero(), SUM); /* NaN stays NaN */
    else if (e->act == LW_ACT_RELU6)
        EACH SUM = v_min(v_set1(6.0f), v_max(v_zero(), SUM));
    else if (e->act == LW_ACT_SILU)
        EACH SUM = v_curve(SUM, LW_ACT_SILU);
    else if (e->act != LW_ACT_NONE)
        EACH SUM = lw_finish_curve(SUM, e->act);
    if (low && e->store == LW_NUM_BF16)
        EACH v_store_bf16_n((lw_bf16 *)y + OUT, SUM, lanes);
    else
        EACH v_store_n((float *)y + OUT, SUM, lanes);
#undef EACH
#undef SUM
#undef OUT
#undef RESIDUAL
}

/* The same for output pixel `row` alone. */
LW_WORD void lw_finish(void *y, ptrdiff_t at, vf s, const lw_epilogue *e, vf bias, vf image_bias,
                       ptrdiff_t row, ptrdiff_t n, ptrdiff_t lanes, const bool low)
{
    lw_finish_pixels(y, at, 0, &s, 1, (lw_finish_area){1, 1, row, 0}, e, bias, image_bias, n, lanes,
                     low);
}

#endif
