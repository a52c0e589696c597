/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC 2011). Never stateful: every draw is a pure function of (seed, stream, step, row,
 * element).
 *
 *   key     = low and high half of splitmix(seed ^ stream hash)         (lw_rng_key)
 *   counter = { element block (4 numbers each), step, low row, high row }
 *
 * Word w of block b is element 4 b + w of the row. Uniform: (word >> 8) * 2^-24, in [0, 1).
 * The vector versions in kernels/random/ give the same bits.
 */
#ifndef LW_BASE_RNG_H
#define LW_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

typedef struct lw_rng_key {
    uint32_t k[2];
} lw_rng_key;

void lw_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
/* `stream` is lw_hash_name of the stream's dotted name. */
lw_rng_key lw_rng_key_of(uint64_t seed, uint64_t stream);
/* Element `e` of row `row` at `step`. */
uint32_t lw_rng_word(lw_rng_key key, uint32_t step, uint64_t row, uint64_t e);
double lw_rng_uniform(lw_rng_key key, uint32_t step, uint64_t row, uint64_t e); /* 24 bits, [0,1) */
uint32_t lw_rng_below(lw_rng_key key, uint32_t step, uint64_t row, uint64_t e,
                      uint32_t n); /* 0..n-1 */

/* A pseudo-random permutation of 0..n-1 evaluated at i, keyed by (key, epoch): Feistel network with
 * cycle walking, so that shuffles need no memory and resume needs no state. */
uint64_t lw_rng_permute(lw_rng_key key, uint32_t epoch, uint64_t n, uint64_t i);

/* The same for who goes through a whole epoch, some eight times as fast: a round of the network knows only about
 * sqrt(n) inputs, so their words are kept, and looked up instead of computed. */
size_t lw_rng_order_words(uint64_t n); /* about 10 sqrt(n) */
void lw_rng_order_fill(uint32_t *words, lw_rng_key key, uint32_t epoch, uint64_t n);
uint64_t lw_rng_order_at(const uint32_t *words, uint64_t n, uint64_t i);

#endif
