/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which elements dropout keeps, in vector words: for the kernel of that name, and for products that
 * drop their own results. Element e of a row survives when its word is at least lw_keep_limit(p),
 * which is the same as uniform >= p (random.h).
 */
#ifndef LW_KERNELS_RANDOM_KEEP_H
#define LW_KERNELS_RANDOM_KEEP_H

#include "kernels/random/random.h"
#include "kernels/simd/simd.h"

/* 0 <= p < 1 */
LW_WORD uint32_t lw_keep_limit(float p)
{
    return (uint32_t)ceil((double)p * 0x1p24) << 8;
}

#if VL > 1
enum { LW_KEEP_ROUNDS = 10 };
/* Keys of the rounds, which an instruction reads from memory for every lane. */
typedef struct lw_keep_keys {
    uint32_t round[LW_KEEP_ROUNDS][2];
} lw_keep_keys;

LW_WORD void lw_keep_keys_init(lw_keep_keys *keys, lw_rng_key key)
{
    for (uint32_t i = 0; i < LW_KEEP_ROUNDS; i++) {
        keys->round[i][0] = key.k[0] + i * 0x9E3779B9u;
        keys->round[i][1] = key.k[1] + i * 0xBB67AE85u;
    }
}

/* Chains of rounds that are computed beside one another: each round waits for the one before. */
enum { LW_KEEP_CHAINS = VL / 4 };

/* What a chain draws: elements 4 block .. 4 block + 2 VL - 1 of a row. */
typedef struct lw_keep_place {
    uint64_t row;
    uint32_t block;
} lw_keep_place;

/*
 * keep[2 i], keep[2 i + 1]: lanes of ones where the elements of at[i] survive, else 0; i < n <= LW_KEEP_CHAINS.
 *
 * Ten rounds of Philox with a block in every lane of 64 bits: a product of 32 bits comes out whole
 * there, its lower half where the next round reads it, so that nothing is moved between lanes, and what
 * is left in upper halves is never read.
 */
LW_WORD void lw_keep_words(vi *keep, int n, const lw_keep_place *at, const lw_keep_keys *keys,
                           uint32_t step, vi limit)
{
    const vi m0 = vi_set1(0xD2511F53u), m1 = vi_set1(0xCD9E8D57u);
    vi c[LW_KEEP_CHAINS][4];
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) {
        c[i][0] = vi_add(vi_set1(at[i].block), vi_even_block_iota());
        c[i][1] = vi_set1(step);
        c[i][2] = vi_set1((uint32_t)at[i].row);
        c[i][3] = vi_set1((uint32_t)(at[i].row >> 32));
    }
    for (int round = 0; round < LW_KEEP_ROUNDS; round++) {
#pragma GCC unroll 4
        for (int i = 0; i < n; i++) {
            vi p0 = v_mul_even_u32(c[i][0], m0), p1 = v_mul_even_u32(c[i][2], m1);
            c[i][0] = vi_xor3(vi_high(p1), c[i][1], vi_set1(keys->round[round][0]));
            c[i][2] = vi_xor3(vi_high(p0), c[i][3], vi_set1(keys->round[round][1]));
            c[i][1] = p1;
            c[i][3] = p0;
        }
    }
#pragma GCC unroll 4
    for (int i = 0; i < n; i++)
        vi_interleave_even4(c[i], keep + 2 * i);
#pragma GCC unroll 8
    for (int i = 0; i < 2 * n; i++)
        keep[i] = vi_sel(vi_ltu(keep[i], limit), vi_set1(0), vi_set1(~0u));
}
#endif

#endif
