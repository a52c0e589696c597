/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 and what is drawn from it, one number at a time. */
#include "base/rng.h"

static uint64_t splitmix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

void lw_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)c0 * 0xd2511f53u;
        uint64_t p1 = (uint64_t)c2 * 0xcd9e8d57u;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9e3779b9u;
        k1 += 0xbb67ae85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

lw_rng_key lw_rng_key_of(uint64_t seed, uint64_t stream)
{
    uint64_t mixed = splitmix(seed ^ stream);
    return (lw_rng_key){{(uint32_t)mixed, (uint32_t)(mixed >> 32)}};
}

uint32_t lw_rng_word(lw_rng_key key, uint32_t step, uint64_t row, uint64_t e)
{
    const uint32_t counter[4] = {(uint32_t)(e / 4), step, (uint32_t)row, (uint32_t)(row >> 32)};
    uint32_t words[4];
    lw_philox4x32(counter, key.k, words);
    return words[e % 4];
}

double lw_rng_uniform(lw_rng_key key, uint32_t step, uint64_t row, uint64_t e)
{
    return (double)(lw_rng_word(key, step, row, e) >> 8) * 0x1p-24;
}

uint32_t lw_rng_below(lw_rng_key key, uint32_t step, uint64_t row, uint64_t e, uint32_t n)
{
    /* Multiply-shift: off from uniform by less than n / 2^32, and always exactly one word. */
    return (uint32_t)((uint64_t)lw_rng_word(key, step, row, e) * n >> 32);
}

/* Each round changes one half of a number by a function of the other, so it undoes itself: a bijection of [0, 2^bits). */
typedef struct feistel {
    int low_bits, high_bits;
} feistel;

enum { ROUNDS = 10, FEWEST_BITS = 4 };

static feistel feistel_of(uint64_t n)
{
    int bits = FEWEST_BITS;
    while (bits < 64 && (n - 1) >> bits)
        bits++;
    return (feistel){bits / 2, bits - bits / 2};
}

static uint32_t round_word(lw_rng_key key, uint32_t epoch, uint32_t round, uint64_t half)
{
    const uint32_t counter[4] = {round, epoch, (uint32_t)half, (uint32_t)(half >> 32)};
    uint32_t w[4];
    lw_philox4x32(counter, key.k, w);
    return w[0];
}

/* Even rounds read the high half, odd ones the low one. */
static uint64_t inputs(feistel f, uint32_t round)
{
    return (uint64_t)1 << (round % 2 ? f.low_bits : f.high_bits);
}

/* Walking along the bijection until we are below n gives one of [0, n). Words: of all rounds, or NULL: computed. */
static uint64_t permute(lw_rng_key key, uint32_t epoch, uint64_t n, uint64_t i,
                        const uint32_t *words)
{
    const feistel f = feistel_of(n);
    const uint64_t low_mask = ((uint64_t)1 << f.low_bits) - 1,
                   high_mask = ((uint64_t)1 << f.high_bits) - 1;
    do {
        uint64_t low = i & low_mask, high = i >> f.low_bits;
        const uint32_t *of = words;
        for (uint32_t round = 0; round < ROUNDS; round++) {
            uint64_t half = round % 2 ? low : high;
            uint32_t w = of ? of[half] : round_word(key, epoch, round, half);
            if (of)
                of += inputs(f, round);
            if (round % 2)
                high ^= w & high_mask;
            else
                low ^= w & low_mask;
        }
        i = high << f.low_bits | low;
    } while (i >= n);
    return i;
}

uint64_t lw_rng_permute(lw_rng_key key, uint32_t epoch, uint64_t n, uint64_t i)
{
    return permute(key, epoch, n, i, NULL);
}

size_t lw_rng_order_words(uint64_t n)
{
    const feistel f = feistel_of(n);
    return ROUNDS / 2 * (size_t)(inputs(f, 0) + inputs(f, 1));
}

void lw_rng_order_fill(uint32_t *words, lw_rng_key key, uint32_t epoch, uint64_t n)
{
    const feistel f = feistel_of(n);
    for (uint32_t round = 0; round < ROUNDS; round++)
        for (uint64_t half = 0; half < inputs(f, round); half++)
            *words++ = round_word(key, epoch, round, half);
}

uint64_t lw_rng_order_at(const uint32_t *words, uint64_t n, uint64_t i)
{
    return permute((lw_rng_key){{0, 0}}, 0, n, i, words);
}
