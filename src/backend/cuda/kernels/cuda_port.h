/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The words that kernels for GPUs are written in: nvcc compiles them for the device, a C compiler
 * for the emulating driver of the tests, from the same source. A kernel takes one struct by value,
 * allocates nothing and calls nothing but what stands here and <math.h>.
 */
#ifndef LW_CUDA_PORT_H
#define LW_CUDA_PORT_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/cuda/kernels/cuda_args.h"

#ifdef __CUDACC__
#define LW_KERNEL(name, args, threads)                    \
    extern "C" __global__ void __launch_bounds__(threads) \
        lw_kernel_##name(const __grid_constant__ args a)
/* so many blocks at once on a multiprocessor, which bounds registers */
#define LW_KERNEL_SHARING(name, args, threads, blocks)            \
    extern "C" __global__ void __launch_bounds__(threads, blocks) \
        lw_kernel_##name(const __grid_constant__ args a)
#define LW_ON_DEVICE static __device__ __forceinline__
#define LW_SHARED __shared__
#define LW_UNROLL _Pragma("unroll")
#define LW_ROLLED _Pragma("unroll 1") /* copies of the body would spill registers */
#define LW_TID ((int)threadIdx.x)
#define LW_BX ((int64_t)blockIdx.x)
#define LW_BY ((int64_t)blockIdx.y)
#define LW_THREADS ((int64_t)blockDim.x)
#define LW_BLOCKS ((int64_t)gridDim.x)
#define LW_SYNC() __syncthreads()
LW_ON_DEVICE float lw_bits_to_float(uint32_t u)
{
    return __uint_as_float(u);
}
LW_ON_DEVICE uint32_t lw_float_to_bits(float f)
{
    return __float_as_uint(f);
}
#define LW_ALIGNED16 __align__(16)
/* 16 bytes to shared memory, zeros where there is nothing to copy, by themselves; LW_COPY_WAIT: this thread's have come */
LW_ON_DEVICE void lw_copy_async(void *to, const void *from, bool there)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                     (unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 16 : 0)
                 : "memory");
}
#define LW_COPY_WAIT() asm volatile("cp.async.wait_all;" ::: "memory")
/* What this thread copies goes in groups: ends one; waits for all but the last n of them. */
#define LW_COPY_COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define LW_COPY_WAIT_BUT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
/* Four matrices of 8 rows of 16 bytes from shared memory: lane 8 i + r says where row r of matrix i is; lane 4 g + t gets
 * bytes 4 t to 4 t + 3 of row g of each. */
LW_ON_DEVICE void lw_ldmatrix_x4(uint32_t out[4], const void *row_of_this_lane)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])
                 : "r"((unsigned)__cvta_generic_to_shared(row_of_this_lane))
                 : "memory");
}
/* sum += left right, 16 x 16 by 16 x 8 over a warp (PTX ISA, mma.m16n8k16): lane 4 g + t has rows g and g + 8 of left and
 * sum, column g of right, and of those the numbers 2 t, 2 t + 1 and 8 behind. */
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
void lw_emu_copy(void *to, const void *from, bool there); /* lands no earlier than it must */
void lw_emu_copy_wait(void);
void lw_emu_copy_commit(void);
void lw_emu_copy_wait_but(int groups);
void lw_emu_ldmatrix_x4(uint32_t out[4], const void *row);
void lw_emu_mma(float sum[4], const uint32_t left[4], const uint32_t right[2],
                float (*number)(uint16_t bits));
uint16_t lw_emu_f16_bits(float x);
float lw_emu_f16_to_float(uint16_t bits);
float lw_emu_bf16_to_float(uint16_t bits);
#define LW_KERNEL(name, args, threads)   \
    void lw_kernel_##name(const args a); \
    void lw_kernel_##name(const args a)
#define LW_KERNEL_SHARING(name, args, threads, blocks) LW_KERNEL(name, args, threads)
#define LW_ON_DEVICE static inline
#define LW_SHARED static
#define LW_UNROLL
#define LW_ROLLED
#define LW_TID lw_emu_tid
#define LW_BX lw_emu_bx
#define LW_BY lw_emu_by
#define LW_THREADS ((int64_t)lw_emu_threads)
#define LW_BLOCKS lw_emu_blocks
#define LW_SYNC() lw_emu_sync()
#define LW_ALIGNED16 __attribute__((aligned(16)))
#define LW_COPY_WAIT() lw_emu_copy_wait()
#define LW_COPY_COMMIT() lw_emu_copy_commit()
#define LW_COPY_WAIT_BUT(n) lw_emu_copy_wait_but(n)
LW_ON_DEVICE void lw_copy_async(void *to, const void *from, bool there)
{
    lw_emu_copy(to, from, there);
}
LW_ON_DEVICE void lw_mma_bf16(float sum[4], const uint32_t left[4], const uint32_t right[2])
{
    lw_emu_mma(sum, left, right, lw_emu_bf16_to_float);
}
LW_ON_DEVICE void lw_mma_f16(float sum[4], const uint32_t left[4], const uint32_t right[2])
{
    lw_emu_mma(sum, left, right, lw_emu_f16_to_float);
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
LW_ON_DEVICE void lw_ldmatrix_x4(uint32_t out[4], const void *row_of_this_lane)
{
    lw_emu_ldmatrix_x4(out, row_of_this_lane);
}
LW_ON_DEVICE uint16_t lw_f16_bits(float x)
{
    return lw_emu_f16_bits(x);
}
LW_ON_DEVICE float lw_f16_to_float(uint16_t bits)
{
    return lw_emu_f16_to_float(bits);
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

/* base/kinds.h has the formulas and the order. */
LW_ON_DEVICE float lw_activate(float x, int act)
{
    double v = (double)x;
    switch (act) {
    case 1:
        return x < 0.0f ? 0.0f : x;
    case 2:
        return (float)(v / (1.0 + exp(-v)));
    case 3:
        return (float)(0.5 * v * (1.0 + erf(v * 0.70710678118654752440)));
    case 4:
        return (float)(0.5 * v * (1.0 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))));
    case 5:
        return (float)(v / (1.0 + exp(-1.702 * v)));
    case 6:
        return x < 0.0f ? 0.0f : x > 6.0f ? 6.0f : x;
    default:
        return x;
    }
}

#endif
