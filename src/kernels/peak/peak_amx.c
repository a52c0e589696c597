/* SPDX-License-Identifier: Apache-2.0 */
/* Peaks of tile registers: four tiles of sums, as in products, whose operands stay where they are. Sums
 * begin with 0; a step adds 2^-10, or 1, to each. */
#include <string.h>

#include "kernels/peak/peak.h"
#include "kernels/simd/simd_amx.h"

enum { CHAINS = 4, SUMS = AMX_ROWS * AMX_WORDS };

/* a, b: words of the rows' operand, and of the panel's in its first row and the others. */
#define PEAK(mac, word_a, word_b, word_others)                  \
    _Alignas(64) uint32_t a[SUMS], b[SUMS], sums[CHAINS][SUMS]; \
    for (int i = 0; i < SUMS; i++) {                            \
        a[i] = word_a;                                          \
        b[i] = i < AMX_WORDS ? word_b : word_others;            \
    }                                                           \
    amx_begin();                                                \
    amx_load(4, a, AMX_BYTES);                                  \
    amx_load(5, a, AMX_BYTES);                                  \
    amx_load(6, b, AMX_BYTES);                                  \
    amx_load(7, b, AMX_BYTES);                                  \
    for (ptrdiff_t r = 0; r < rounds; r++) {                    \
        mac(0, 4, 6);                                           \
        mac(1, 4, 7);                                           \
        mac(2, 5, 6);                                           \
        mac(3, 5, 7);                                           \
    }                                                           \
    amx_store(0, sums[0], AMX_BYTES);                           \
    amx_store(1, sums[1], AMX_BYTES);                           \
    amx_store(2, sums[2], AMX_BYTES);                           \
    amx_store(3, sums[3], AMX_BYTES);                           \
    amx_end();

/* 32 products of 1/2 and 2^-14. */
void lw_peak_bf16_amx(double *ops, float *sink, ptrdiff_t rounds)
{
    PEAK(amx_mac_bf16, 0x3f003f00u, 0x38803880u, 0x38803880u)
    float sum = 0.0f, one;
    for (int i = 0; i < CHAINS * SUMS; i++) {
        memcpy(&one, &sums[i / SUMS][i % SUMS], sizeof one);
        sum += one;
    }
    *sink = sum;
    *ops = 64.0 * CHAINS * SUMS * (double)rounds;
}

/* 64 products, of 1 and one 1. */
void lw_peak_int8_amx(double *ops, float *sink, ptrdiff_t rounds)
{
    PEAK(amx_mac_u8, 0x01010101u, 0x01ff0001u, 0u)
    uint32_t sum = 0;
    for (int i = 0; i < CHAINS * SUMS; i++)
        sum += sums[i / SUMS][i % SUMS];
    *sink = (float)sum;
    *ops = 128.0 * CHAINS * SUMS * (double)rounds;
}
