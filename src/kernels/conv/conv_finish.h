/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the conv family: an epilogue on one vector of channels, for kernels whose sums are not
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

/* Stores channels [n, n + lanes) of output pixel `row` at element `at` of y. low, a constant: y, and what is added, may be
 * bf16. */
LW_WORD void lw_finish(void *y, ptrdiff_t at, vf s, const lw_epilogue *e, vf bias, vf image_bias,
                       ptrdiff_t row, ptrdiff_t n, ptrdiff_t lanes, const bool low)
{
    float *out = (float *)y + at;
    if (e->accumulate)
        s = v_add(s, v_load_n(out, lanes));
    if (e->bias)
        s = v_add(s, bias);
    if (e->image_bias)
        s = v_add(s, image_bias);
    if (e->residual)
        s = v_add(s, v_load_n(e->residual + row * e->ld_residual + n, lanes));
    if (low && e->residual_low)
        s = v_add(s, v_of_bf16(vi_load_u16_n(e->residual_low + row * e->ld_residual + n, lanes)));
    if (e->act == LW_ACT_RELU)
        s = v_max(v_zero(), s); /* NaN stays NaN */
    else if (e->act == LW_ACT_RELU6)
        s = v_min(v_set1(6.0f), v_max(v_zero(), s));
    else if (e->act == LW_ACT_SILU)
        s = v_curve(s, LW_ACT_SILU);
    else if (e->act != LW_ACT_NONE)
        s = lw_finish_curve(s, e->act);
    if (low && e->store == LW_NUM_BF16)
        vi_store_u16_n((lw_bf16 *)y + at, vi_bf16(s), lanes);
    else if (lanes == VL)
        v_store(out, s);
    else
        v_store_n(out, s, lanes);
}

#endif
