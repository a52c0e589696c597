/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the conv family: an epilogue on a vector of channels of a pixel or of some, for kernels whose sums are not
 * those of a row tile. */
#ifndef LW_KERNELS_CONV_FINISH_H
#define LW_KERNELS_CONV_FINISH_H

#include "kernels/cast/cast_bytes.h"
#include "kernels/gemm/gemm.h"
#include "kernels/simd/simd_act.h"
#include "kernels/tile/unroll.h"

/* Not inlined: loops around them would hold three long curves many times. */
static vf __attribute__((noinline, unused)) lw_finish_curve(vf s, lw_act act)
{
    return v_curve(s, act);
}
static vf __attribute__((noinline, unused)) lw_finish_curve_low(vf s, lw_act act)
{
    return v_curve_low(s, act);
}

/* Stores channels [n, n + lanes) of `count` pixels of a line (a constant where this is called), of which the first is pixel
 * number `row`, at element `at` of y, and neighbours are `ld` elements apart; s: their sums. low, a constant: y, and what is
 * added, may be bf16, and y bytes. One step of the epilogue after the other, instead of all questions at each pixel. */
LW_WORD void lw_finish_pixels(void *y, ptrdiff_t at, ptrdiff_t ld, vf *s, const int count,
                              const lw_epilogue *e, vf bias, vf image_bias, ptrdiff_t row,
                              ptrdiff_t n, const ptrdiff_t lanes, const bool low)
{
#define EACH LW_UNROLL_UP_TO(4) for (int k = 0; k < count; k++)
#define RESIDUAL ((row + k) * e->ld_residual + n)
#define OUT (at + k * ld)
    if (e->accumulate)
        EACH s[k] = v_add(s[k], v_load_n((float *)y + OUT, lanes));
    if (e->bias)
        EACH s[k] = v_add(s[k], bias);
    if (e->image_bias)
        EACH s[k] = v_add(s[k], image_bias);
    if (e->residual)
        EACH s[k] = v_add(s[k], v_load_n(e->residual + RESIDUAL, lanes));
    if (low && e->residual_low)
        EACH s[k] = v_add(s[k], v_load_bf16(e->residual_low + RESIDUAL, lanes));
    if (e->act == LW_ACT_RELU)
        EACH s[k] = v_max(v_zero(), s[k]); /* NaN stays NaN */
    else if (e->act == LW_ACT_RELU6)
        EACH s[k] = v_min(v_set1(6.0f), v_max(v_zero(), s[k]));
    else if (low && e->store != LW_NUM_F32 && e->act != LW_ACT_NONE)
        EACH s[k] = lw_finish_curve_low(s[k], e->act); /* as row tiles do what they round */
    else if (e->act == LW_ACT_SILU)
        EACH s[k] = v_curve(s[k], LW_ACT_SILU);
    else if (e->act != LW_ACT_NONE)
        EACH s[k] = lw_finish_curve(s[k], e->act);
    if (low && e->store == LW_NUM_BF16) {
        EACH v_store_bf16((lw_bf16 *)y + OUT, s[k], lanes);
    } else if (low && e->store == LW_NUM_S8) {
        const lw_byte_rule rule = lw_byte_rule_of(e->store_pair[0], (int32_t)e->store_pair[1]);
        EACH v_store_bytes((uint8_t *)y + OUT, s[k], &rule, lanes);
    } else
        EACH v_store_n((float *)y + OUT, s[k], lanes);
#undef EACH
#undef RESIDUAL
#undef OUT
}

/* The same for output pixel `row` alone. */
LW_WORD void lw_finish(void *y, ptrdiff_t at, vf s, const lw_epilogue *e, vf bias, vf image_bias,
                       ptrdiff_t row, ptrdiff_t n, ptrdiff_t lanes, const bool low)
{
    lw_finish_pixels(y, at, 0, &s, 1, e, bias, image_bias, row, n, lanes, low);
}

#endif
