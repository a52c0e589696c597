/* SPDX-License-Identifier: Apache-2.0 */
/* Philox4x32-10 as in base/rng.h, for kernels. */
#ifndef LW_CUDA_PHILOX_H
#define LW_CUDA_PHILOX_H

#include "backend/cuda/kernels/cuda_port.h"

/* lw_rng_key_of */
LW_ON_DEVICE void lw_philox_key(uint32_t key[2], uint64_t seed, uint64_t stream)
{
    uint64_t x = (seed ^ stream) + 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    key[0] = (uint32_t)x;
    key[1] = (uint32_t)(x >> 32);
}

LW_ON_DEVICE void lw_philox_block(uint32_t w[4], const uint32_t key[2], uint32_t step, uint64_t row,
                                  uint32_t block)
{
    uint32_t c0 = block, c1 = step, c2 = (uint32_t)row, c3 = (uint32_t)(row >> 32);
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)c0 * 0xD2511F53u, p1 = (uint64_t)c2 * 0xCD9E8D57u;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)p1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    w[0] = c0;
    w[1] = c1;
    w[2] = c2;
    w[3] = c3;
}

LW_ON_DEVICE uint32_t lw_philox_word(const uint32_t key[2], uint32_t step, uint64_t row, int64_t e)
{
    uint32_t w[4];
    lw_philox_block(w, key, step, row, (uint32_t)(e / 4));
    return e % 4 == 0 ? w[0] : e % 4 == 1 ? w[1] : e % 4 == 2 ? w[2] : w[3];
}

#endif
