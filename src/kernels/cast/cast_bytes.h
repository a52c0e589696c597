/* SPDX-License-Identifier: Apache-2.0 */
/* How bytes stand for numbers that a kernel writes, in vector words: as lw_cast_f32_to_u8 (cast.h), of which this is the text. */
#ifndef LW_KERNELS_CAST_BYTES_H
#define LW_KERNELS_CAST_BYTES_H

#include "kernels/simd/simd.h"

typedef struct lw_byte_rule {
    vf inverse, lo, hi; /* 1 / scale; the numbers that become 0 and 255, times that */
    vi zero;
} lw_byte_rule;

LW_WORD lw_byte_rule lw_byte_rule_of(float scale, int32_t zero)
{
    return (lw_byte_rule){v_set1(1.0f / scale), v_set1((float)-zero), v_set1((float)(255 - zero)),
                          vi_set1((uint32_t)zero)};
}

/* The first n lanes. */
LW_WORD void v_store_bytes(uint8_t *p, vf x, const lw_byte_rule *r, ptrdiff_t n)
{
    const vf v = v_max(v_mul(x, r->inverse), r->lo);
#if LW_SIMD_SATURATES_U8 /* what no s32 holds becomes 2^31 there, unsigned, and 255 then */
    vi_store_u8_most(p, vi_add(v_to_i(v), r->zero), n);
#else
    const vi bytes = vi_add(v_to_i(v_min(v, r->hi)), r->zero);
    if (n == VL)
        vi_store_u8(p, bytes);
    else
        vi_store_u8_n(p, bytes, n);
#endif
}

#endif
