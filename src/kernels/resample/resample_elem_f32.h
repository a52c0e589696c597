/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pass of a resize needs to know of its elements (this file: floats; resample_elem_u8.h:
 * bytes): their sums, and lines turned into columns. t [bytes or floats of a line][VL]: element i
 * of VL lines side by side; lines past `lines` repeat the last one.
 */
#ifndef LW_KERNELS_RESAMPLE_ELEM_F32_H
#define LW_KERNELS_RESAMPLE_ELEM_F32_H

#include "kernels/resample/resample.h"
#include "kernels/simd/simd.h"

#define EL(name) LWV_PASTE(name##_f32, LW_SIMD_SUFFIX)
typedef float el;
typedef float el_weight;
typedef vf el_sum;

LW_WORD const el_weight *el_weights(const lw_resample_axis *a, ptrdiff_t o)
{
    return a->weight + o * a->taps;
}
LW_WORD el_sum el_zero(void)
{
    return v_zero();
}
LW_WORD el_sum el_mac(el_sum sum, el_weight w, const el *x)
{
    return v_fma(v_set1(w), v_load(x), sum);
}
LW_WORD el_sum el_mac_n(el_sum sum, el_weight w, const el *x, ptrdiff_t n)
{
    return v_fma(v_set1(w), v_load_n(x, n), sum);
}
LW_WORD void el_store(el *y, el_sum sum)
{
    v_store(y, sum);
}
LW_WORD void el_store_n(el *y, el_sum sum, ptrdiff_t n)
{
    v_store_n(y, sum, n);
}

static inline void el_columns(el *t, const el *x, ptrdiff_t pitch, ptrdiff_t lines, ptrdiff_t n)
{
    vf r[VL];
    for (ptrdiff_t at = 0; at < n; at += VL) {
        ptrdiff_t left = LW_MIN(n - at, VL);
        for (ptrdiff_t l = 0; l < VL; l++)
            r[l] = v_load_n(x + LW_MIN(l, lines - 1) * pitch + at, left);
        v_transpose(r);
        for (ptrdiff_t i = 0; i < left; i++)
            v_store(t + (at + i) * VL, r[i]);
    }
}

static inline void el_lines(el *y, const el *t, ptrdiff_t pitch, ptrdiff_t lines, ptrdiff_t n)
{
    vf r[VL];
    for (ptrdiff_t at = 0; at < n; at += VL) {
        ptrdiff_t left = LW_MIN(n - at, VL);
        for (ptrdiff_t i = 0; i < VL; i++)
            r[i] = i < left ? v_load(t + (at + i) * VL) : v_zero();
        v_transpose(r);
        for (ptrdiff_t l = 0; l < lines; l++)
            v_store_n(y + l * pitch + at, r[l], left);
    }
}

#endif
