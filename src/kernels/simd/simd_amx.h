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
 * A block of sums is two by two registers, 0 to 3: `halves` of 16 rows, `vecs` of 16 columns (1 or 2, constants where
 * these are called). 4 and 5 are for rows of a, 6 and 7 for columns of b.
 *
 * The path of tile stores falls asleep after some 700 ns without one, and the next store then takes 200 to 350 ns, as
 * long as a dozen chunks, whatever it stores. So loops over chunks store one now and then:
 *
 *   amx_stay_awake(chunk, every)   register 4 to nowhere, with every so many chunks
 *
 *   amx_sums_zero()
 *   amx_sums_load(c, pitch, halves, vecs)      rows of c lie pitch bytes apart
 *   amx_sums_store(c, pitch, halves, vecs)
 *   amx_sums_add(a0, pitch0, a1, pitch1, b, pitch_b, halves, vecs, how)
 *                           a chunk of AMX_WORDS words of both halves times as many rows of b; how: AMX_U8
 *                           or AMX_BF16, and AMX_ONCE, where b is loaded by amx_load_once
 *
 *   amx_sums_add_bf16x3(a0, pitch0, step0, a1, pitch1, step1, b, pitch_b, halves, vecs)
 *                           three such chunks of a, step words apart, and of b, one behind the other: parts of numbers
 *                           (LW_NUM_BF16X3); the six products that count, small ones first, from eight loads of a
 *                           half each: multiplications are all that is waited for
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

#define AMX_WORD static inline __attribute__((always_inline, unused))

AMX_WORD void amx_sums_zero(void)
{
    amx_zero(0);
    amx_zero(1);
    amx_zero(2);
    amx_zero(3);
}

AMX_WORD void amx_sums_load(const float *c, ptrdiff_t pitch, const int halves, const int vecs)
{
    const float *lower = c + AMX_ROWS * (pitch / (ptrdiff_t)sizeof *c);
    amx_load(0, c, pitch);
    if (vecs == 2)
        amx_load(1, c + AMX_WORDS, pitch);
    if (halves == 2)
        amx_load(2, lower, pitch);
    if (halves == 2 && vecs == 2)
        amx_load(3, lower + AMX_WORDS, pitch);
}

AMX_WORD void amx_sums_store(float *c, ptrdiff_t pitch, const int halves, const int vecs)
{
    float *lower = c + AMX_ROWS * (pitch / (ptrdiff_t)sizeof *c);
    amx_store(0, c, pitch);
    if (vecs == 2)
        amx_store(1, c + AMX_WORDS, pitch);
    if (halves == 2)
        amx_store(2, lower, pitch);
    if (halves == 2 && vecs == 2)
        amx_store(3, lower + AMX_WORDS, pitch);
}

/* Chunks that take half of the time, from the second cache; of LW_NUM_BF16X3, of six products. */
enum { AMX_AWAKE = 8, AMX_AWAKE_BF16X3 = 2 };

AMX_WORD void amx_stay_awake(ptrdiff_t chunk, const ptrdiff_t every)
{
    _Alignas(64) char nowhere[AMX_BYTES]; /* all rows to one line */
    if (chunk % every == every - 1)
        amx_store(4, nowhere, 0);
}

enum { AMX_BF16 = 0, AMX_U8 = 1, AMX_ONCE = 2 };

#define AMX_MAC(how, c, a, b)      \
    do {                           \
        if ((how)&AMX_U8)          \
            amx_mac_u8(c, a, b);   \
        else                       \
            amx_mac_bf16(c, a, b); \
    } while (0)

AMX_WORD void amx_sums_add(const float *a0, ptrdiff_t pitch0, const float *a1, ptrdiff_t pitch1,
                           const float *b, ptrdiff_t pitch_b, const int halves, const int vecs,
                           const int how)
{
    amx_load(4, a0, pitch0);
    if (how & AMX_ONCE)
        amx_load_once(6, b, pitch_b);
    else
        amx_load(6, b, pitch_b);
    AMX_MAC(how, 0, 4, 6);
    if (vecs == 2) {
        if (how & AMX_ONCE)
            amx_load_once(7, b + AMX_WORDS, pitch_b);
        else
            amx_load(7, b + AMX_WORDS, pitch_b);
        AMX_MAC(how, 1, 4, 7);
    }
    if (halves == 2) {
        amx_load(5, a1, pitch1);
        AMX_MAC(how, 2, 5, 6);
    }
    if (halves == 2 && vecs == 2)
        AMX_MAC(how, 3, 5, 7);
}
#undef AMX_MAC

AMX_WORD void amx_load_a(const float *a0, ptrdiff_t pitch0, const float *a1, ptrdiff_t pitch1,
                         const int halves)
{
    amx_load(4, a0, pitch0);
    if (halves == 2)
        amx_load(5, a1, pitch1);
}

AMX_WORD void amx_load_b(const float *b, ptrdiff_t pitch_b, const int vecs)
{
    amx_load_once(6, b, pitch_b);
    if (vecs == 2)
        amx_load_once(7, b + AMX_WORDS, pitch_b);
}

AMX_WORD void amx_multiply(const int halves, const int vecs)
{
    amx_mac_bf16(0, 4, 6);
    if (vecs == 2)
        amx_mac_bf16(1, 4, 7);
    if (halves == 2)
        amx_mac_bf16(2, 5, 6);
    if (halves == 2 && vecs == 2)
        amx_mac_bf16(3, 5, 7);
}

AMX_WORD void amx_sums_add_bf16x3(const float *a0, ptrdiff_t pitch0, ptrdiff_t step0,
                                  const float *a1, ptrdiff_t pitch1, ptrdiff_t step1,
                                  const float *b, ptrdiff_t pitch_b, const int halves,
                                  const int vecs)
{
    const ptrdiff_t part = AMX_ROWS * (pitch_b / (ptrdiff_t)sizeof *b);
    amx_load_a(a0 + 2 * step0, pitch0, a1 + 2 * step1, pitch1, halves);
    amx_load_b(b, pitch_b, vecs);
    amx_multiply(halves, vecs); /* x2 y0 */
    amx_load_a(a0, pitch0, a1, pitch1, halves);
    amx_load_b(b + 2 * part, pitch_b, vecs);
    amx_multiply(halves, vecs); /* x0 y2 */
    amx_load_b(b + part, pitch_b, vecs);
    amx_multiply(halves, vecs); /* x0 y1 */
    amx_load_a(a0 + step0, pitch0, a1 + step1, pitch1, halves);
    amx_multiply(halves, vecs); /* x1 y1 */
    amx_load_b(b, pitch_b, vecs);
    amx_multiply(halves, vecs); /* x1 y0 */
    amx_load_a(a0, pitch0, a1, pitch1, halves);
    amx_multiply(halves, vecs); /* x0 y0 */
}

#endif
