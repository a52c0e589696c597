/* SPDX-License-Identifier: Apache-2.0 */
/* Words of simd.h on eight lanes, AVX2's and NEON's, which have no masks for bytes and halves. Included by simd.h only. */
#ifndef LW_KERNELS_SIMD_EIGHT_H
#define LW_KERNELS_SIMD_EIGHT_H

/* One word, one line. */
/* clang-format off */

LW_WORD vi vi_load_u16_n(const uint16_t *p, ptrdiff_t n)
{
    if (n >= VL)
        return vi_load_u16(p);
    uint16_t all[VL] = {0};
    memcpy(all, p, (size_t)n * sizeof *p);
    return vi_load_u16(all);
}
LW_WORD void vi_store_u16_n(uint16_t *p, vi v, ptrdiff_t n)
{
    if (n >= VL) {
        vi_store_u16(p, v);
        return;
    }
    uint16_t all[VL];
    vi_store_u16(all, v);
    memcpy(p, all, (size_t)n * sizeof *p);
}
LW_WORD vi vi_load_u8_n(const uint8_t *p, ptrdiff_t n)
{
    if (n >= VL)
        return vi_load_u8(p);
    uint8_t all[VL] = {0};
    memcpy(all, p, (size_t)n);
    return vi_load_u8(all);
}
LW_WORD void vi_store_u8_n(uint8_t *p, vi v, ptrdiff_t n)
{
    if (n >= VL) {
        vi_store_u8(p, v);
        return;
    }
    uint8_t all[VL];
    vi_store_u8(all, v);
    memcpy(p, all, (size_t)n);
}
LW_WORD vf v_load_u8(const uint8_t *p)
{
    return v_from_i(vi_load_u8(p));
}
LW_WORD vf v_load_u8_n(const uint8_t *p, ptrdiff_t n)
{
    return v_from_i(vi_load_u8_n(p, n));
}
LW_WORD vi v_mulhi_u32(vi a, vi b)
{
    vi hi, lo;
    v_mulwide_u32(a, b, &hi, &lo);
    return hi;
}

#endif
