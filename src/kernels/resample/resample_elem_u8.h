/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See resample_elem_f32.h. Here: bytes under fixed weights, sums of 32 bits, exact because the
 * weights of an output add up to 1 and their magnitudes to less than 2. Columns are made of words
 * of four bytes, by the transposition of floats.
 */
#ifndef LW_KERNELS_RESAMPLE_ELEM_U8_H
#define LW_KERNELS_RESAMPLE_ELEM_U8_H

#include "kernels/resample/resample.h"
#include "kernels/simd/simd.h"

#define EL(name) LWV_PASTE(name##_u8, LW_SIMD_SUFFIX)
typedef uint8_t el;
typedef int32_t el_weight;
typedef vi el_sum;

LW_WORD const el_weight *el_weights(const lw_resample_axis *a, ptrdiff_t o)
{
    return a->fixed + o * a->taps;
}
LW_WORD el_sum el_zero(void)
{
    return vi_set1((uint32_t)1 << (LW_RESAMPLE_BITS - 1));
}
LW_WORD el_sum el_mac(el_sum sum, el_weight w, const el *x)
{
    return vi_add(sum, v_mullo_u32(vi_set1((uint32_t)w), vi_load_u8(x)));
}
LW_WORD el_sum el_mac_n(el_sum sum, el_weight w, const el *x, ptrdiff_t n)
{
    return vi_add(sum, v_mullo_u32(vi_set1((uint32_t)w), vi_load_u8_n(x, n)));
}
LW_WORD vi el_clip(el_sum sum)
{
    return vi_min(vi_max(vi_sra(sum, LW_RESAMPLE_BITS), vi_set1(0)), vi_set1(255));
}
LW_WORD void el_store(el *y, el_sum sum)
{
    vi_store_u8(y, el_clip(sum));
}
LW_WORD void el_store_n(el *y, el_sum sum, ptrdiff_t n)
{
    vi_store_u8_n(y, el_clip(sum), n);
}

static inline void el_columns(el *t, const el *x, ptrdiff_t pitch, ptrdiff_t lines, ptrdiff_t n)
{
    vf r[VL];
    for (ptrdiff_t at = 0; at < n; at += 4 * VL) {
        ptrdiff_t left = LW_MIN(n - at, 4 * VL);
        for (ptrdiff_t l = 0; l < VL; l++) {
            const el *from = x + LW_MIN(l, lines - 1) * pitch + at;
            el tail[4 * VL] = {0};
            if (left < 4 * VL)
                from = memcpy(tail, from, (size_t)left);
            r[l] = v_as_f(vi_load(from));
        }
        v_transpose(r);
        for (ptrdiff_t i = 0; 4 * i < left; i++) {
            el *to = t + (at + 4 * i) * VL;
            vi w = v_as_i(r[i]);
            vi_store_u8(to, w);
            vi_store_u8(to + VL, vi_shr(w, 8));
            vi_store_u8(to + 2 * VL, vi_shr(w, 16));
            vi_store_u8(to + 3 * VL, vi_shr(w, 24));
        }
    }
}

LW_WORD vi el_word(const el *t) /* four columns as one of words */
{
    vi w = vi_or(vi_load_u8(t), vi_shl(vi_load_u8(t + VL), 8));
    return vi_or(w, vi_or(vi_shl(vi_load_u8(t + 2 * VL), 16), vi_shl(vi_load_u8(t + 3 * VL), 24)));
}

static inline void el_lines(el *y, const el *t, ptrdiff_t pitch, ptrdiff_t lines, ptrdiff_t n)
{
    vf r[VL];
    for (ptrdiff_t at = 0; at < n; at += 4 * VL) {
        ptrdiff_t left = LW_MIN(n - at, 4 * VL);
        for (ptrdiff_t i = 0; i < VL; i++)
            r[i] = 4 * i < left ? v_as_f(el_word(t + (at + 4 * i) * VL)) : v_zero();
        v_transpose(r);
        for (ptrdiff_t l = 0; l < lines; l++) {
            el tail[4 * VL], *to = y + l * pitch + at;
            vi_store(left < 4 * VL ? tail : to, v_as_i(r[l]));
            if (left < 4 * VL)
                memcpy(to, tail, (size_t)left);
        }
    }
}

#endif
