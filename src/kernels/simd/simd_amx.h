/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tile registers (AMX), in files with the flags of that level: eight, each of AMX_ROWS rows of 64
 * bytes, which every kernel call sets up (amx_begin) and gives back (amx_end): a thread that sleeps
 * with live tiles costs the kernel 8 KiB of saving.
 *
 *   amx_zero(t)             all 0
 *   amx_load(t, p, pitch)   row i from p + i pitch bytes. Rows that cross a line of 64 bytes are four
 *                           times as slow, so callers copy these first
 *   amx_load_once(t, p, pitch)  as amx_load, of what comes from L2 and should not push rows that are read
 *                           again out of L1
 *   amx_store(t, p, pitch)
 *   amx_mac_bf16(c, a, b)   c[i][j] += sum over k of a[i][k] b[k][j]: words of two bf16; products are
 *                           summed over k, even and odd halves apart, then added to c; denormal
 *                           numbers and sums count as 0
 *   amx_mac_u8(c, a, b)     the same of four u8 and s8, s32 sums, exact
 *
 * Registers are numbers of the text. The compiler's own words for these do not say that they read or
 * write memory (gcc 12): here they do.
 */
#ifndef LW_KERNELS_SIMD_AMX_H
#define LW_KERNELS_SIMD_AMX_H

#include <stddef.h>
#include <stdint.h>

enum { AMX_ROWS = 16, AMX_WORDS = 16, AMX_BYTES = 64 };

typedef struct amx_shape {
    uint8_t palette, start_row, none[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} amx_shape;

static inline __attribute__((unused)) void amx_begin(void)
{
    static const amx_shape whole = {.palette = 1,
                                    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
                                    .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
    __asm__ volatile("ldtilecfg %0" : : "m"(whole) : "memory");
}
static inline __attribute__((unused)) void amx_end(void)
{
    __asm__ volatile("tilerelease" : : : "memory");
}

#define amx_zero(t) __asm__ volatile("tilezero %%tmm" #t : : : "memory")
#define amx_load(t, p, pitch)                                        \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t                 \
                     :                                               \
                     : "r"((const void *)(p)), "r"((int64_t)(pitch)) \
                     : "memory")
#define amx_load_once(t, p, pitch)                                   \
    __asm__ volatile("tileloaddt1 (%0,%1,1), %%tmm" #t               \
                     :                                               \
                     : "r"((const void *)(p)), "r"((int64_t)(pitch)) \
                     : "memory")
#define amx_store(t, p, pitch)                                 \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)"       \
                     :                                         \
                     : "r"((void *)(p)), "r"((int64_t)(pitch)) \
                     : "memory")
#define amx_mac_bf16(c, a, b) \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c : : : "memory")
#define amx_mac_u8(c, a, b) \
    __asm__ volatile("tdpbusd %%tmm" #b ", %%tmm" #a ", %%tmm" #c : : : "memory")

#endif
