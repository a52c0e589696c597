/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The primitives that kernels for GPUs are written in. nvcc compiles them for the device, a C
 * compiler for the emulating driver of the tests, from the same source. A kernel takes one struct
 * by value, allocates nothing and calls nothing but what stands here and <math.h>.
 */
#ifndef LW_CUDA_PORT_H
#define LW_CUDA_PORT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/cuda/kernels/cuda_args.h"

#ifdef __CUDACC__
/* Programmatic dependent launch: on compute capability 9.0 a kernel of a CUDA graph may start
 * before the one before has finished. LW_START_NEXT lets the next kernel start, LW_AWAIT_BEFORE
 * waits until all kernels before have finished. Ahead of that wait a kernel may read what no kernel
 * of the graph writes, as weights, and must write nothing. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define LW_START_NEXT() asm volatile("griddepcontrol.launch_dependents;" ::: "memory")
#define LW_AWAIT_BEFORE() asm volatile("griddepcontrol.wait;" ::: "memory")
#else
#define LW_START_NEXT() ((void)0)
#define LW_AWAIT_BEFORE() ((void)0)
#endif
#define LW_KERNEL_BOUNDS(name, args, begin, ...)              \
    LW_ON_DEVICE void lw_body_##name(const args &a);          \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__) \
        lw_kernel_##name(const __grid_constant__ args a)      \
    {                                                         \
        LW_START_NEXT();                                      \
        begin;                                                \
        lw_body_##name(a);                                    \
    }                                                         \
    LW_ON_DEVICE void lw_body_##name(const args &a)
#define LW_KERNEL(name, args, threads) LW_KERNEL_BOUNDS(name, args, LW_AWAIT_BEFORE(), threads)
/* so many blocks at once on a multiprocessor, which bounds registers */
#define LW_KERNEL_SHARING(name, args, threads, blocks) \
    LW_KERNEL_BOUNDS(name, args, LW_AWAIT_BEFORE(), threads, blocks)
/* It says itself where it waits for those before. */
#define LW_KERNEL_EARLY(name, args, threads, blocks) LW_KERNEL_BOUNDS(name, args, , threads, blocks)
#define LW_ON_DEVICE static __device__ __forceinline__
#define LW_SHARED __shared__
#define LW_UNROLL _Pragma("unroll")
#define LW_PRAGMA(text) _Pragma(#text)
#define LW_UNROLL_BY(n) LW_PRAGMA(unroll n)
#define LW_ROLLED _Pragma("unroll 1") /* copies of the body would spill registers */
#define LW_TID ((int)threadIdx.x)
#define LW_BX ((int64_t)blockIdx.x)
#define LW_BY ((int64_t)blockIdx.y)
#define LW_THREADS ((int64_t)blockDim.x)
#define LW_BLOCKS ((int64_t)gridDim.x)
#define LW_SYNC() __syncthreads()
LW_ON_DEVICE uint32_t lw_high_product(uint32_t a, uint32_t b)
{
    return __umulhi(a, b);
}
LW_ON_DEVICE float lw_bits_to_float(uint32_t u)
{
    return __uint_as_float(u);
}
LW_ON_DEVICE uint32_t lw_float_to_bits(float f)
{
    return __float_as_uint(f);
}
#define LW_ALIGNED16 __align__(16)
#define LW_ALIGNED8 __align__(8)
/* 16 bytes to shared memory, zeros where there is nothing to copy, by themselves; LW_COPY_WAIT: this thread's have come */
LW_ON_DEVICE void lw_copy_async(void *to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}
/* The same of 8 bytes. */
LW_ON_DEVICE void lw_copy_async_8(void *to, const void *from, bool there)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 8 : 0)
                 : "memory");
}
#define LW_COPY_WAIT() asm volatile("cp.async.wait_all;" ::: "memory")
/* What this thread copied since the last of these is a group; all groups but the newest n, at most
 * three, have come. */
#define LW_COPY_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
LW_ON_DEVICE void lw_copy_wait_for(const int n)
{
    if (n == 0)
        asm volatile("cp.async.wait_group 0;" ::: "memory");
    else if (n == 1)
        asm volatile("cp.async.wait_group 1;" ::: "memory");
    else if (n == 2)
        asm volatile("cp.async.wait_group 2;" ::: "memory");
    else
        asm volatile("cp.async.wait_group 3;" ::: "memory");
}
/* What this thread copied and waited for is seen, behind the next barrier, by tensor cores that read shared memory by
 * themselves. */
#define LW_FENCE_FOR_CORES() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
/* Shared memory of the size that the launch says, aligned to 1,024 bytes. */
#define LW_SHARED_AT_LAUNCH(name) extern __shared__ __align__(1024) unsigned char name[]
/* Bytes, a multiple of 16 as `from` is, that will be asked for soon. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
#define LW_PREFETCH(from, bytes) \
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory")
#else
#define LW_PREFETCH(from, bytes) ((void)0)
#endif
/* Bytes that are read here: before LW_AWAIT_BEFORE none that a kernel of a recording writes. The emulated GPU looks at it. */
#define LW_READS(from, bytes) ((void)0)
/* *p, which becomes one more. Whoever counts further sees what this block wrote before its last barrier, and what those wrote
 * that counted before. */
LW_ON_DEVICE uint32_t lw_count_up(uint32_t *p)
{
    uint32_t was;
    asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(was) : "l"(p) : "memory");
    return was;
}
/* sum += left right, 16 x 16 by 16 x 8 over a warp (PTX ISA, mma.m16n8k16): lane 4 g + t has rows g and g + 8 of left and
 * sum, column g of right, and of those the elements 2 t, 2 t + 1 and 8 behind. */
#define LW_MMA(type)                                                                               \
    LW_ON_DEVICE void lw_mma_##type(float sum[4], const uint32_t left[4], const uint32_t right[2]) \
    {                                                                                              \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #type "." #type ".f32 "              \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"             \
                     : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                      \
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]),      \
                       "r"(right[1]));                                                             \
    }
LW_MMA(bf16)
LW_MMA(f16)
#undef LW_MMA
/* Four matrices of 8 x 8 halves from shared memory; lane 8 i + r says where row r of matrix i is. Lane 4 g + t gets of each the
 * elements 2 t and 2 t + 1 of row g; transposed, those of column g in rows 2 t and 2 t + 1. */
#define LW_LDMATRIX(name, how)                                                                 \
    LW_ON_DEVICE void lw_ldmatrix_x4##name(uint32_t out[4], const void *row)                   \
    {                                                                                          \
        asm volatile("ldmatrix.sync.aligned.m8n8.x4" how ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                     : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])                  \
                     : "r"((unsigned)__cvta_generic_to_shared(row)));                          \
    }
LW_LDMATRIX(, "")
LW_LDMATRIX(_trans, ".trans")
#undef LW_LDMATRIX
/* What the lane with another bit has. */
LW_ON_DEVICE uint32_t lw_shuffle_xor_bits(uint32_t bits, int lane)
{
    return __shfl_xor_sync(0xffffffffu, bits, lane);
}
/* x, of which the compiler then knows that all lanes of a warp have it. */
LW_ON_DEVICE int lw_same_in_warp(int x)
{
    return __shfl_sync(0xffffffffu, x, 0);
}
/* 2^x, to two units in the last place; nothing below 2^-126 */
LW_ON_DEVICE float lw_exp2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/* 8 bytes, aligned to as many */
LW_ON_DEVICE void lw_put_two(void *to, uint32_t first, uint32_t second)
{
    *(uint2 *)to = make_uint2(first, second);
}
/* Two values to bf16, the first as the lower half. */
LW_ON_DEVICE uint32_t lw_two_bf16(float low, float high)
{
    uint32_t two;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
    return two;
}
/* To two units in the last place; 0 over what is larger than 2^126. */
LW_ON_DEVICE float lw_over(float a, float b)
{
    return __fdividef(a, b);
}
/* 1 / sqrt(x), to two units in the last place; infinite below 2^-126 */
LW_ON_DEVICE float lw_over_root(float x)
{
    float y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/* sum = left right: no register is set to zero before. */
#define LW_MMA_FIRST(type)                                                                    \
    LW_ON_DEVICE void lw_mma_first_##type(float sum[4], const uint32_t left[4],               \
                                          const uint32_t right[2])                            \
    {                                                                                         \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." #type "." #type ".f32 "         \
                     "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %10, %10, %10};"    \
                     : "=f"(sum[0]), "=f"(sum[1]), "=f"(sum[2]), "=f"(sum[3])                 \
                     : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), \
                       "r"(right[1]), "f"(0.0f));                                             \
    }
LW_MMA_FIRST(bf16)
LW_MMA_FIRST(f16)
#undef LW_MMA_FIRST
LW_ON_DEVICE uint16_t lw_f16_bits(float x)
{
    uint16_t bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
    return bits;
}
LW_ON_DEVICE float lw_f16_to_float(uint16_t bits)
{
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(bits));
    return x;
}
#else
#include <string.h>
extern int lw_emu_tid, lw_emu_threads;
extern int64_t lw_emu_bx, lw_emu_by, lw_emu_blocks;
void lw_emu_sync(void);
void lw_emu_prefetch(const void *from, int bytes);
void lw_emu_reads(const void *from, int bytes);
/* what is copied before it no kernel of a recording may have written */
void lw_emu_await_before(void);
/* lands no earlier than it must */
void lw_emu_copy(void *to, const void *from, int bytes, bool there);
void lw_emu_copy_commit(void);
void lw_emu_copy_wait(
    int but); /* for all but the newest groups; -1: for those without a group, too */
void lw_emu_fence_for_cores(void);
extern unsigned char *lw_emu_shared;
void lw_emu_mma(float sum[4], const uint32_t left[4], const uint32_t right[2],
                float (*number)(uint16_t bits));
void lw_emu_ldmatrix(uint32_t out[4], const void *row, bool transposed);
uint32_t lw_emu_shuffle_xor(uint32_t bits, int lane);
uint16_t lw_emu_f16_bits(float x);
float lw_emu_f16_to_float(uint16_t bits);
float lw_emu_bf16_to_float(uint16_t bits);
#define LW_KERNEL_BOUNDS(name, args, begin)   \
    static void lw_body_##name(const args a); \
    void lw_kernel_##name(const args a);      \
    void lw_kernel_##name(const args a)       \
    {                                         \
        begin;                                \
        lw_body_##name(a);                    \
    }                                         \
    static void lw_body_##name(const args a)
#define LW_KERNEL(name, args, threads) LW_KERNEL_BOUNDS(name, args, LW_AWAIT_BEFORE())
#define LW_KERNEL_SHARING(name, args, threads, blocks) LW_KERNEL(name, args, threads)
#define LW_KERNEL_EARLY(name, args, threads, blocks) LW_KERNEL_BOUNDS(name, args, )
#define LW_AWAIT_BEFORE() lw_emu_await_before()
#define LW_PREFETCH(from, bytes) lw_emu_prefetch(from, bytes)
#define LW_READS(from, bytes) lw_emu_reads(from, bytes)
#define LW_ON_DEVICE static inline
#define LW_SHARED \
    static __attribute__((section("lw_shared"))) /* which is no number when a block begins */
#define LW_UNROLL
#define LW_UNROLL_BY(n)
#define LW_ROLLED
#define LW_TID lw_emu_tid
#define LW_BX lw_emu_bx
#define LW_BY lw_emu_by
#define LW_THREADS ((int64_t)lw_emu_threads)
#define LW_BLOCKS lw_emu_blocks
#define LW_SYNC() lw_emu_sync()
#define LW_ALIGNED16 __attribute__((aligned(16)))
#define LW_ALIGNED8 __attribute__((aligned(8)))
#define LW_COPY_WAIT() lw_emu_copy_wait(-1)
#define LW_COPY_COMMIT() lw_emu_copy_commit()
#define lw_copy_wait_for(n) lw_emu_copy_wait(n)
#define LW_FENCE_FOR_CORES() lw_emu_fence_for_cores()
#define LW_SHARED_AT_LAUNCH(name) unsigned char *name = lw_emu_shared
LW_ON_DEVICE uint32_t lw_count_up(uint32_t *p) /* blocks run one after the other */
{
    return (*p)++;
}
LW_ON_DEVICE void lw_copy_async(void *to, const void *from, bool there)
{
    lw_emu_copy(to, from, 16, there);
}
LW_ON_DEVICE void lw_copy_async_8(void *to, const void *from, bool there)
{
    lw_emu_copy(to, from, 8, there);
}
LW_ON_DEVICE void lw_mma_bf16(float sum[4], const uint32_t left[4], const uint32_t right[2])
{
    lw_emu_mma(sum, left, right, lw_emu_bf16_to_float);
}
LW_ON_DEVICE void lw_mma_f16(float sum[4], const uint32_t left[4], const uint32_t right[2])
{
    lw_emu_mma(sum, left, right, lw_emu_f16_to_float);
}
LW_ON_DEVICE void lw_ldmatrix_x4(uint32_t out[4], const void *row)
{
    lw_emu_ldmatrix(out, row, false);
}
LW_ON_DEVICE void lw_ldmatrix_x4_trans(uint32_t out[4], const void *row)
{
    lw_emu_ldmatrix(out, row, true);
}
LW_ON_DEVICE uint32_t lw_shuffle_xor_bits(uint32_t bits, int lane)
{
    return lw_emu_shuffle_xor(bits, lane);
}
LW_ON_DEVICE int lw_same_in_warp(int x)
{
    return x;
}
LW_ON_DEVICE float lw_exp2(float x)
{
    return exp2f(x);
}
LW_ON_DEVICE void lw_put_two(void *to, uint32_t first, uint32_t second)
{
    ((uint32_t *)to)[0] = first;
    ((uint32_t *)to)[1] = second;
}
LW_ON_DEVICE float lw_over(float a, float b)
{
    return a / b;
}
LW_ON_DEVICE float lw_over_root(float x)
{
    return 1.0f / sqrtf(x);
}
LW_ON_DEVICE void lw_mma_first_bf16(float sum[4], const uint32_t left[4], const uint32_t right[2])
{
    sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
    lw_emu_mma(sum, left, right, lw_emu_bf16_to_float);
}
LW_ON_DEVICE void lw_mma_first_f16(float sum[4], const uint32_t left[4], const uint32_t right[2])
{
    sum[0] = sum[1] = sum[2] = sum[3] = 0.0f;
    lw_emu_mma(sum, left, right, lw_emu_f16_to_float);
}
LW_ON_DEVICE uint16_t lw_f16_bits(float x)
{
    return lw_emu_f16_bits(x);
}
LW_ON_DEVICE float lw_f16_to_float(uint16_t bits)
{
    return lw_emu_f16_to_float(bits);
}
LW_ON_DEVICE uint32_t lw_high_product(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}
LW_ON_DEVICE float lw_bits_to_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
LW_ON_DEVICE uint32_t lw_float_to_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}
#endif

LW_ON_DEVICE int32_t lw_divide(int32_t n, const lw_cuda_divider *d)
{
    return (int32_t)((lw_high_product((uint32_t)n, d->mul) + ((uint32_t)n & d->all)) >> d->shift);
}

/* Two neighbours, the first at an even place. */
LW_ON_DEVICE uint32_t lw_two_halves(const uint16_t *p)
{
    return *(const uint32_t *)p;
}

LW_ON_DEVICE float lw_bf16_to_float(uint16_t bits)
{
    return lw_bits_to_float((uint32_t)bits << 16);
}

/* base/bf16.h: to the nearest, even of two; NaN stays one. */
LW_ON_DEVICE uint16_t lw_bf16_bits(float x)
{
    uint32_t u = lw_float_to_bits(x);
    if ((u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

#ifndef __CUDACC__
LW_ON_DEVICE uint32_t lw_two_bf16(float low, float high)
{
    return lw_bf16_bits(low) | (uint32_t)lw_bf16_bits(high) << 16;
}
#endif

LW_ON_DEVICE float lw_shuffle_xor(float v, int lane)
{
    return lw_bits_to_float(lw_shuffle_xor_bits(lw_float_to_bits(v), lane));
}

/* Neighbours that come and go at once, from a place that their bytes divide. */
typedef struct LW_ALIGNED16 lw_four {
    float v[4];
} lw_four;
typedef struct LW_ALIGNED16 lw_quad {
    uint32_t v[4];
} lw_quad;
typedef struct LW_ALIGNED8 lw_two {
    float v[2];
} lw_two;
typedef struct LW_ALIGNED8 lw_words {
    uint32_t v[2];
} lw_words;

LW_ON_DEVICE lw_four lw_four_floats(const float *p)
{
    return *(const lw_four *)(const void *)p;
}
/* What another block wrote, from where all blocks see it. */
LW_ON_DEVICE lw_four lw_load_far(const float *p)
{
#ifdef __CUDACC__
    float4 v = __ldcg((const float4 *)p);
    return (lw_four){{v.x, v.y, v.z, v.w}};
#else
    return lw_four_floats(p);
#endif
}
LW_ON_DEVICE void lw_four_add(lw_four *v, lw_four w)
{
    LW_UNROLL
    for (int i = 0; i < 4; i++)
        v->v[i] += w.v[i];
}

/* wide: 1, 2 or 4 */
LW_ON_DEVICE void lw_read(float *v, const float *from, const int wide)
{
    if (wide == 4) {
        const lw_four f = *(const lw_four *)from;
        LW_UNROLL
        for (int i = 0; i < 4; i++)
            v[i] = f.v[i];
    } else if (wide == 2) {
        const lw_two f = *(const lw_two *)from;
        v[0] = f.v[0];
        v[1] = f.v[1];
    } else {
        v[0] = *from;
    }
}

LW_ON_DEVICE void lw_read_bf16(float *v, const uint16_t *from, const int wide)
{
    const lw_words all = wide == 4   ? *(const lw_words *)(const void *)from
                         : wide == 2 ? (lw_words){{lw_two_halves(from), 0}}
                                     : (lw_words){{*from, 0}};
    LW_UNROLL
    for (int i = 0; i < wide; i++)
        v[i] = lw_bits_to_float(i % 2 ? all.v[i / 2] & 0xffff0000u : all.v[i / 2] << 16);
}

LW_ON_DEVICE void lw_write(float *to, const float *v, const int wide)
{
    if (wide == 4)
        *(lw_four *)to = (lw_four){{v[0], v[1], v[2], v[3]}};
    else if (wide == 2)
        *(lw_two *)to = (lw_two){{v[0], v[1]}};
    else
        *to = v[0];
}

LW_ON_DEVICE void lw_write_bf16(uint16_t *to, const float *v, const int wide)
{
    if (wide == 4)
        *(lw_words *)to = (lw_words){{lw_two_bf16(v[0], v[1]), lw_two_bf16(v[2], v[3])}};
    else if (wide == 2)
        *(uint32_t *)to = lw_two_bf16(v[0], v[1]);
    else
        *to = lw_bf16_bits(v[0]);
}

/* The sum over a warp, in every lane. */
LW_ON_DEVICE float lw_warp_sum(float v)
{
    LW_UNROLL
    for (int mask = 16; mask > 0; mask /= 2)
        v += lw_shuffle_xor(v, mask);
    return v;
}

/* Every element once, whatever the number of blocks. */
#define LW_EACH(i, n) \
    for (int64_t i = LW_BX * LW_THREADS + LW_TID; i < (n); i += LW_BLOCKS * LW_THREADS)

/* The sum of v over the block, in an order that depends on the number of threads (a power of two)
 * alone. room: a double per thread, free again when all are through. */
LW_ON_DEVICE double lw_block_sum(double *room, double v)
{
    room[LW_TID] = v;
    LW_SYNC();
    for (int half = (int)LW_THREADS / 2; half > 0; half /= 2) {
        if (LW_TID < half)
            room[LW_TID] += room[LW_TID + half];
        LW_SYNC();
    }
    v = room[0];
    LW_SYNC();
    return v;
}

LW_ON_DEVICE double lw_block_max(double *room, double v)
{
    room[LW_TID] = v;
    LW_SYNC();
    for (int half = (int)LW_THREADS / 2; half > 0; half /= 2) {
        if (LW_TID < half)
            room[LW_TID] = fmax(room[LW_TID], room[LW_TID + half]);
        LW_SYNC();
    }
    v = room[0];
    LW_SYNC();
    return v;
}

/* x / (1 + e^-by): where the exponential is no number any more, 0. */
LW_ON_DEVICE float lw_gate(float x, float by)
{
    return lw_over(x, 1.0f + lw_exp2(-1.44269504f * by));
}

/* x times the share of a normal distribution that is below it: erfc to 1.5e-7 (Abramowitz, Stegun: Handbook of mathematical
 * functions, 7.1.26). */
LW_ON_DEVICE float lw_gelu(float x)
{
    float z = fabsf(x) * 0.70710678f, t = lw_over(1.0f, fmaf(0.3275911f, z, 1.0f));
    float p =
        fmaf(fmaf(fmaf(fmaf(1.061405429f, t, -1.453152027f), t, 1.421413741f), t, -0.284496736f), t,
             0.254829592f);
    float half = 0.5f * p * t * lw_exp2(-1.44269504f * z * z);
    return x * (x < 0.0f ? half : 1.0f - half);
}

/* base/kinds.h has the formulas and the order. (1 + tanh(v)) / 2 is 1 / (1 + e^-2v). */
LW_ON_DEVICE float lw_activate(float x, int act)
{
    switch (act) {
    case 1:
        return x < 0.0f ? 0.0f : x;
    case 2:
        return lw_gate(x, x);
    case 3:
        return lw_gelu(x);
    case 4:
        return lw_gate(x, x * fmaf(0.07135481f * x, x, 1.5957691f));
    case 5:
        return lw_gate(x, 1.702f * x);
    case 6:
        return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x;
    default:
        return x;
    }
}

#endif
