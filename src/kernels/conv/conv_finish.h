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

/* Stores channels [n, n + lanes) of output pixel `row` at out. */
LW_WORD void lw_finish(float *out, vf s, const lw_epilogue *e, vf bias, vf image_bias,
                       ptrdiff_t row, ptrdiff_t n, ptrdiff_t lanes)
{
    if (e->accumulate)
        s = v_add(s, v_load_n(out, lanes));
    if (e->bias)
        s = v_add(s, bias);
    if (e->image_bias)
        s = v_add(s, image_bias);
    if (e->residual)
        s = v_add(s, v_load_n(e->residual + row * e->ld_residual + n, lanes));
    if (e->act == LW_ACT_RELU)
        s = v_max(v_zero(), s); /* NaN stays NaN */
    else if (e->act == LW_ACT_RELU6)
        s = v_min(v_set1(6.0f), v_max(v_zero(), s));
    else if (e->act == LW_ACT_SILU)
        s = v_curve(s, LW_ACT_SILU);
    else if (e->act != LW_ACT_NONE)
        s = lw_finish_curve(s, e->act);
    if (lanes == VL)
        v_store(out, s);
    else
        v_store_n(out, s, lanes);
}

#endif
