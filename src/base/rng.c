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

uint64_t lw_rng_permute(lw_rng_key key, uint32_t epoch, uint64_t n, uint64_t i)
{
    enum { ROUNDS = 10, FEWEST_BITS = 4 };
    int bits = FEWEST_BITS;
    while (bits < 64 && (n - 1) >> bits)
        bits++;
    int low_bits = bits / 2;
    uint64_t low_mask = ((uint64_t)1 << low_bits) - 1;
    uint64_t high_mask = ((uint64_t)1 << (bits - low_bits)) - 1;
    /* Each round changes one half by a function of the other, so it undoes itself: a bijection of
     * [0, 2^bits). Walking along it until we are below n gives one of [0, n). */
    do {
        uint64_t low = i & low_mask, high = i >> low_bits;
        for (uint32_t round = 0; round < ROUNDS; round++) {
            uint64_t half = round % 2 ? low : high;
            const uint32_t counter[4] = {round, epoch, (uint32_t)half, (uint32_t)(half >> 32)};
            uint32_t w[4];
            lw_philox4x32(counter, key.k, w);
            if (round % 2)
                high ^= w[0] & high_mask;
            else
                low ^= w[0] & low_mask;
        }
        i = high << low_bits | low;
    } while (i >= n);
    return i;
}
