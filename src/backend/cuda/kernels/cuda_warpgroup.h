/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of a warpgroup, four warps, on tensor cores of compute capability 9.0 (PTX ISA,
 * wgmma.mma_async): both operands lie in shared memory, and the product is asynchronous. Rows of
 * either operand are 64 bf16 values (128 bytes), swizzled against bank conflicts: piece q of 16
 * bytes of row r lies at q xor r % 8 (the 128-byte swizzle):
 *
 *     row 0   0 1 2 3 4 5 6 7
 *     row 1   1 0 3 2 5 4 7 6
 *     row 2   2 3 0 1 6 7 4 5   ..
 *
 * Of sum, lane l of warp w has in [4 j + 2 h + e] the element of row 16 w + l / 4 + 8 h and column
 * 8 j + l % 4 * 2 + e.
 */
#ifndef LW_CUDA_WARPGROUP_H
#define LW_CUDA_WARPGROUP_H

#include "backend/cuda/kernels/cuda_port.h"

#ifdef __CUDACC__
/* Barriers in shared memory that asynchronous copies count down (PTX ISA, mbarrier). One thread
 * says how many bytes are to come and starts the copies; whoever waits goes on when all have come,
 * which is visible to tensor cores, too. A barrier is used phase after phase; `odd` is the parity
 * of the phase that is waited for. */
LW_ON_DEVICE uint32_t lw_shared_at(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}
LW_ON_DEVICE void lw_barrier_make(uint64_t *b)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(lw_shared_at(b)) : "memory");
}
/* Behind the last that is made, and before the first copy. */
#define LW_BARRIERS_MADE() asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory")
LW_ON_DEVICE void lw_barrier_expect(uint64_t *b, uint32_t bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(lw_shared_at(b)),
                 "r"(bytes)
                 : "memory");
}
/* bytes, to and from: multiples of 16 */
LW_ON_DEVICE void lw_copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *b)
{
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
        "[%3];" ::"r"(lw_shared_at(to)),
        "l"(from), "r"(bytes), "r"(lw_shared_at(b))
        : "memory");
}
LW_ON_DEVICE void lw_barrier_wait(uint64_t *b, uint32_t odd)
{
    uint32_t done = 0;
    while (!done)
        asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
                     "selp.u32 %0, 1, 0, p;}"
                     : "=r"(done)
                     : "r"(lw_shared_at(b)), "r"(odd)
                     : "memory");
}

/* The barrier of a thread-block cluster: all threads of all its blocks arrive, then wait until all
 * have; what was written before it is visible after it. The other blocks can read a block's shared
 * memory (distributed shared memory) until that block ends. */
#define LW_CLUSTER_ARRIVE() asm volatile("barrier.cluster.arrive.release;" ::: "memory")
/* The same where it is the block's own shared memory that was written: a release of that alone is a
 * fence of the block, one of all memory a fence of the whole GPU (PTX ISA 8.6, fence,
 * .sync_restrict). */
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1208
#define LW_CLUSTER_ARRIVE_SHARED()                                     \
    asm volatile("fence.release.sync_restrict::shared::cta.cluster;\n" \
                 "barrier.cluster.arrive.relaxed;" ::                  \
                     : "memory")
#else
#define LW_CLUSTER_ARRIVE_SHARED() LW_CLUSTER_ARRIVE()
#endif
#define LW_CLUSTER_WAIT() asm volatile("barrier.cluster.wait.acquire;" ::: "memory")
/* Four elements where block `block` of the cluster has what this one has at `own`. */
LW_ON_DEVICE lw_four lw_load_cluster(const float *own, int block)
{
    uint32_t at;
    lw_four v;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(at)
                 : "r"(lw_shared_at(own)), "r"(block));
    asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(v.v[0]), "=f"(v.v[1]), "=f"(v.v[2]), "=f"(v.v[3])
                 : "r"(at)
                 : "memory");
    return v;
}

/* Before products of sums that were touched. */
#define LW_GROUP_BEGIN() asm volatile("wgmma.fence.sync.aligned;" ::: "memory")
/* The products begun since the last of these are a group; all groups but the newest n are done. */
#define LW_GROUP_COMMIT() asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")
#define LW_GROUP_WAIT_FOR(n) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(n) : "memory")

/* Where rows begin: address / 16, eight rows every 1,024 bytes, pieces swizzled over 128 bytes by what their address is; and
 * some bytes behind. */
typedef uint64_t lw_rows;
LW_ON_DEVICE lw_rows lw_group_rows(const void *from)
{
    return (uint64_t)((lw_shared_at(from) & 0x3ffffu) >> 4) | (uint64_t)1 << 16 |
           (uint64_t)64 << 32 | (uint64_t)1 << 62;
}
LW_ON_DEVICE lw_rows lw_rows_behind(lw_rows r, int bytes)
{
    return r + (uint64_t)(uint32_t)(bytes / 16);
}

#define SUMS_4(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define SUMS_16(i) SUMS_4(i), SUMS_4(i + 4), SUMS_4(i + 8), SUMS_4(i + 12)
#define NAMES_32                                                                            \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, " \
    "%19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
/* sum [64 x 128] += left [64 x 16] right^T [128 x 16] */
LW_ON_DEVICE void lw_group_product_128(float sum[64], lw_rows left, lw_rows right)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" NAMES_32
                 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, "
                 "%47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, "
                 "%63}, %64, %65, 1, 1, 1, 0, 0;"
                 : SUMS_16(0), SUMS_16(16), SUMS_16(32), SUMS_16(48)
                 : "l"(left), "l"(right));
}
/* sum [64 x 64] += left [64 x 16] right^T [64 x 16] */
LW_ON_DEVICE void lw_group_product_64(float sum[32], lw_rows left, lw_rows right)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" NAMES_32
                 "}, %32, %33, 1, 1, 1, 0, 0;"
                 : SUMS_16(0), SUMS_16(16)
                 : "l"(left), "l"(right));
}
#undef SUMS_4
#undef SUMS_16
#undef NAMES_32
#else
void lw_emu_group_product(float *sum, const void *left, const void *right, int columns);
void lw_emu_group_commit(void);
void lw_emu_group_wait(int but); /* products are made no earlier than here */
void lw_emu_barrier_make(uint64_t *b);
void lw_emu_barrier_expect(uint64_t *b, uint32_t bytes);
void lw_emu_copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *b);
void lw_emu_barrier_wait(uint64_t *b, uint32_t odd); /* copies land no earlier than here */
void lw_emu_cluster_arrive(void);
void lw_emu_cluster_wait(void);
const void *lw_emu_in_cluster(const void *own, int block);
#define LW_CLUSTER_ARRIVE() lw_emu_cluster_arrive()
#define LW_CLUSTER_ARRIVE_SHARED() lw_emu_cluster_arrive()
#define LW_CLUSTER_WAIT() lw_emu_cluster_wait()
#define lw_load_cluster(own, block) lw_four_floats((const float *)lw_emu_in_cluster(own, block))
#define LW_BARRIERS_MADE() ((void)0)
#define lw_barrier_make(b) lw_emu_barrier_make(b)
#define lw_barrier_expect(b, bytes) lw_emu_barrier_expect(b, bytes)
#define lw_copy_bulk(to, from, bytes, b) lw_emu_copy_bulk(to, from, bytes, b)
#define lw_barrier_wait(b, odd) lw_emu_barrier_wait(b, odd)
#define LW_GROUP_BEGIN() ((void)0)
#define LW_GROUP_COMMIT() lw_emu_group_commit()
#define LW_GROUP_WAIT_FOR(n) lw_emu_group_wait(n)
typedef const unsigned char *lw_rows;
LW_ON_DEVICE lw_rows lw_group_rows(const void *from)
{
    return (lw_rows)from;
}
LW_ON_DEVICE lw_rows lw_rows_behind(lw_rows r, int bytes)
{
    return r + bytes;
}
LW_ON_DEVICE void lw_group_product_128(float sum[64], lw_rows left, lw_rows right)
{
    lw_emu_group_product(sum, left, right, 128);
}
LW_ON_DEVICE void lw_group_product_64(float sum[32], lw_rows left, lw_rows right)
{
    lw_emu_group_product(sum, left, right, 64);
}
#endif

#endif
