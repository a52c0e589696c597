/* SPDX-License-Identifier: Apache-2.0 */
/* The vector words of simd.h in plain C, one lane. Included by simd.h only. */
#ifndef LW_KERNELS_SIMD_SCALAR_H
#define LW_KERNELS_SIMD_SCALAR_H

/* One word, one line. */
/* clang-format off */

#define VL 1
#define LW_SIMD_SUFFIX _ref
#define LW_SIMD_BASE_SUFFIX _ref
typedef float vf;
typedef uint32_t vi;
typedef int vm;

LW_WORD vi v_as_i(vf a)
{
    uint32_t u;
    memcpy(&u, &a, sizeof u);
    return u;
}
LW_WORD vf v_as_f(vi a)
{
    float f;
    memcpy(&f, &a, sizeof f);
    return f;
}
LW_WORD vf v_load(const float *p)
{
    return *p;
}
LW_WORD void v_store(float *p, vf v)
{
    *p = v;
}
LW_WORD vf v_load_n(const float *p, ptrdiff_t n)
{
    return n > 0 ? *p : 0.0f;
}
LW_WORD void v_store_n(float *p, vf v, ptrdiff_t n)
{
    if (n > 0)
        *p = v;
}
LW_WORD vf v_set1(float x)
{
    return x;
}
LW_WORD vf v_zero(void)
{
    return 0.0f;
}
LW_WORD vf v_add(vf a, vf b)
{
    return a + b;
}
LW_WORD vf v_sub(vf a, vf b)
{
    return a - b;
}
LW_WORD vf v_mul(vf a, vf b)
{
    return a * b;
}
LW_WORD vf v_div(vf a, vf b)
{
    return a / b;
}
LW_WORD vf v_sqrt(vf a)
{
    return sqrtf(a);
}
LW_WORD vf v_fma(vf a, vf b, vf c)
{
    return fmaf(a, b, c);
}
LW_WORD vf v_fnma(vf a, vf b, vf c)
{
    return fmaf(-a, b, c);
}
LW_WORD vf v_fms(vf a, vf b, vf c)
{
    return fmaf(a, b, -c);
}
LW_WORD vf v_max(vf a, vf b)
{
    return a > b ? a : b;
}
LW_WORD vf v_min(vf a, vf b)
{
    return a < b ? a : b;
}
LW_WORD vf v_neg(vf a)
{
    return -a;
}
LW_WORD vf v_abs(vf a)
{
    return fabsf(a);
}
LW_WORD vf v_copysign(vf a, vf b)
{
    return copysignf(a, b);
}

LW_WORD vm v_gt(vf a, vf b)
{
    return a > b;
}
LW_WORD vm v_ge(vf a, vf b)
{
    return a >= b;
}
LW_WORD vm v_lt(vf a, vf b)
{
    return a < b;
}
LW_WORD vm v_le(vf a, vf b)
{
    return a <= b;
}
LW_WORD vm v_eq(vf a, vf b)
{
    return a == b;
}
LW_WORD vm v_isnan(vf a)
{
    return a != a;
}
LW_WORD vm vm_and(vm a, vm b)
{
    return a & b;
}
LW_WORD vm vm_or(vm a, vm b)
{
    return a | b;
}
LW_WORD int vm_any(vm a)
{
    return a;
}
LW_WORD uint32_t vm_bits(vm a) /* lane l is bit l */
{
    return a != 0;
}
LW_WORD vf v_keep(vm m, vf x)
{
    return m ? x : 0.0f;
}
LW_WORD vf v_sel(vm m, vf x, vf y)
{
    return m ? x : y;
}
LW_WORD float v_hsum(vf a)
{
    return a;
}
LW_WORD void v_transpose(vf r[VL]) /* VL rows become VL columns */
{
    (void)r;
}
LW_WORD void v_hsum4(float *to, vf a, vf b, vf c, vf d) /* four sums at once */
{
    to[0] = a;
    to[1] = b;
    to[2] = c;
    to[3] = d;
}
LW_WORD void v_hmin4(float *to, vf a, vf b, vf c, vf d)
{
    v_hsum4(to, a, b, c, d);
}
LW_WORD double v_hsum_d(vf a)
{
    return (double)a;
}
LW_WORD float v_hmax(vf a)
{
    return a;
}
LW_WORD float v_hmin(vf a)
{
    return a;
}

LW_WORD vf v_from_i(vi a)
{
    return (float)(int32_t)a;
}
LW_WORD vi vi_set1(uint32_t x)
{
    return x;
}
LW_WORD vi vi_iota(void)
{
    return 0;
}
LW_WORD vi vi_load(const void *p)
{
    uint32_t u;
    memcpy(&u, p, sizeof u);
    return u;
}
LW_WORD void vi_store(void *p, vi v)
{
    memcpy(p, &v, sizeof v);
}
LW_WORD vi vi_load_n(const void *p, ptrdiff_t n)
{
    return n > 0 ? vi_load(p) : 0;
}
LW_WORD void vi_store_n(void *p, vi v, ptrdiff_t n)
{
    if (n > 0)
        vi_store(p, v);
}
LW_WORD vi vi_add(vi a, vi b)
{
    return a + b;
}
LW_WORD vi vi_sub(vi a, vi b)
{
    return a - b;
}
LW_WORD vi vi_and(vi a, vi b)
{
    return a & b;
}
LW_WORD vi vi_or(vi a, vi b)
{
    return a | b;
}
LW_WORD vi vi_xor(vi a, vi b)
{
    return a ^ b;
}
LW_WORD vi vi_shl(vi a, unsigned k)
{
    return a << k;
}
LW_WORD vi vi_shr(vi a, unsigned k)
{
    return a >> k;
}
LW_WORD vi vi_sra(vi a, unsigned k)
{
    return (uint32_t)((int32_t)a >> k);
}
LW_WORD void v_mulwide_u32(vi a, vi b, vi *hi, vi *lo)
{
    uint64_t p = (uint64_t)a * b;
    *hi = (uint32_t)(p >> 32);
    *lo = (uint32_t)p;
}
LW_WORD vi v_mullo_u32(vi a, vi b)
{
    return a * b;
}
LW_WORD vi v_mulhi_u32(vi a, vi b)
{
    return (uint32_t)(((uint64_t)a * b) >> 32);
}
LW_WORD vm vi_gt(vi a, vi b)
{
    return (int32_t)a > (int32_t)b;
}
LW_WORD vm vi_eq(vi a, vi b)
{
    return a == b;
}
LW_WORD vm vi_ltu(vi a, vi b)
{
    return a < b;
}
LW_WORD vi vi_sel(vm m, vi x, vi y)
{
    return m ? x : y;
}
LW_WORD vf v_gather(const float *base, vi index)
{
    return base[(int32_t)index];
}
LW_WORD vf v_load_u8(const uint8_t *p)
{
    return (float)*p;
}
LW_WORD vi v_to_i(vf a)
{
    return (vi)(int32_t)lrintf(a);
}
LW_WORD vi vi_load_u16(const uint16_t *p)
{
    return *p;
}
LW_WORD vi vi_load_u8(const uint8_t *p)
{
    return *p;
}
LW_WORD vi vi_load_u8_n(const uint8_t *p, ptrdiff_t n)
{
    return n > 0 ? *p : 0;
}
LW_WORD vi vi_max(vi a, vi b)
{
    return (int32_t)a > (int32_t)b ? a : b;
}
LW_WORD vi vi_min(vi a, vi b)
{
    return (int32_t)a < (int32_t)b ? a : b;
}
LW_WORD void vi_store_u16(uint16_t *p, vi v)
{
    *p = (uint16_t)v;
}
LW_WORD void vi_store_u8(uint8_t *p, vi v)
{
    *p = (uint8_t)v;
}
LW_WORD vi vi_load_u16_n(const uint16_t *p, ptrdiff_t n)
{
    return n > 0 ? *p : 0;
}
LW_WORD void vi_store_u16_n(uint16_t *p, vi v, ptrdiff_t n)
{
    if (n > 0)
        *p = (uint16_t)v;
}
LW_WORD void v_pack(float *p, vf v, vm m)
{
    if (m)
        *p = v;
}
LW_WORD void vi_pack_u16(uint16_t *p, vi v, vm m)
{
    if (m)
        *p = (uint16_t)v;
}
LW_WORD void vi_store_u8_n(uint8_t *p, vi v, ptrdiff_t n)
{
    if (n > 0)
        *p = (uint8_t)v;
}
LW_WORD vf v_load_u8_n(const uint8_t *p, ptrdiff_t n)
{
    return n > 0 ? (float)*p : 0.0f;
}

LW_WORD vi vi_load_u24(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16;
}
LW_WORD void vi_store_u24(uint8_t *p, vi v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)(v >> 16);
}
LW_WORD void vi_zip(vi a, vi b, vi *lo, vi *hi)
{
    *lo = a;
    *hi = b;
}
LW_WORD void vi_unzip(vi lo, vi hi, vi *even, vi *odd)
{
    *even = lo;
    *odd = hi;
}

LW_WORD vi vi_block_iota(void)
{
    return 0;
}
LW_WORD void vi_interleave4(vi w[4])
{
    (void)w;
}

#endif
