/* SPDX-License-Identifier: Apache-2.0 */
/* base/rng: Random123's known answers, uniformity, permutations. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* philox4x32 10 rows of Random123's kat_vectors. */
static void philox_gives_the_known_answers(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < LW_COUNT(known); i++) {
        uint32_t out[4];
        lw_philox4x32(known[i].counter, known[i].key, out);
        for (int w = 0; w < 4; w++)
            assert_int_equal(out[w], known[i].out[w]);
    }
}

static void words_follow_the_documented_counter(void **state)
{
    (void)state;
    lw_rng_key key = lw_rng_key_of(42, lw_hash_name("train.noise"));
    uint64_t row = 0x1234567890u;
    const uint32_t counter[4] = {5, 9, 0x34567890u, 0x12u};
    uint32_t out[4];
    lw_philox4x32(counter, key.k, out);
    for (uint32_t w = 0; w < 4; w++) {
        assert_int_equal(lw_rng_word(key, 9, row, 20 + w), out[w]);
        double u = lw_rng_uniform(key, 9, row, 20 + w);
        assert_true(u == (double)(out[w] >> 8) / 16777216.0);
    }
}

static void keys_differ_by_seed_and_stream(void **state)
{
    (void)state;
    uint64_t a = lw_hash_name("a"), b = lw_hash_name("b");
    lw_rng_key keys[] = {lw_rng_key_of(0, a), lw_rng_key_of(1, a), lw_rng_key_of(0, b),
                         lw_rng_key_of(1, b)};
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(&keys[i], &keys[j], sizeof keys[i]);
}

static void uniforms_are_uniform(void **state)
{
    (void)state;
    enum { N = 200000, BINS = 64 };
    lw_rng_key key = lw_rng_key_of(7, lw_hash_name("test"));
    int bins[BINS] = {0};
    double sum = 0.0, square = 0.0;
    for (uint64_t i = 0; i < N; i++) {
        double u = lw_rng_uniform(key, 0, i / 1000, i % 1000);
        assert_true(u >= 0.0 && u < 1.0);
        sum += u;
        square += u * u;
        bins[(int)(u * BINS)]++;
    }
    /* Six standard errors: this fails by chance once in 5e8 choices of seed, and the seed
     * is fixed. */
    assert_true(fabs(sum / N - 0.5) < 6.0 * sqrt(1.0 / 12.0 / N));
    assert_true(fabs(square / N - 1.0 / 3.0) < 6.0 * sqrt(4.0 / 45.0 / N));
    double chi2 = 0.0, expected = (double)N / BINS;
    for (int b = 0; b < BINS; b++)
        chi2 += (bins[b] - expected) * (bins[b] - expected) / expected;
    assert_true(chi2 < (BINS - 1) + 6.0 * sqrt(2.0 * (BINS - 1)));
}

static void below_covers_its_range(void **state)
{
    (void)state;
    lw_rng_key key = lw_rng_key_of(3, lw_hash_name("test"));
    int seen[10] = {0};
    for (uint64_t i = 0; i < 10000; i++) {
        uint32_t v = lw_rng_below(key, 0, 0, i, 10);
        assert_in_range(v, 0, 9);
        seen[v]++;
    }
    for (int v = 0; v < 10; v++)
        assert_in_range(seen[v], 800, 1200);
    assert_int_equal(lw_rng_below(key, 0, 0, 0, 1), 0);
}

static void permute_is_a_bijection(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 5, 7, 15, 16, 17, 100, 1023, 1025, 10007, 50000};
    lw_rng_key key = lw_rng_key_of(11, lw_hash_name("shuffle"));
    for (size_t s = 0; s < LW_COUNT(sizes); s++) {
        uint64_t n = sizes[s], fixed = 0, differs = 0;
        unsigned char *seen = lw_calloc(n, 1);
        uint32_t *words = lw_calloc(lw_rng_order_words(n), sizeof *words);
        assert_true(seen && words);
        lw_rng_order_fill(words, key, 3, n);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t p = lw_rng_permute(key, 3, n, i);
            assert_true(p < n);
            assert_int_equal(seen[p], 0);
            seen[p] = 1;
            fixed += p == i;
            differs += p != lw_rng_permute(key, 4, n, i);
            assert_int_equal(p, lw_rng_order_at(words, n, i));
        }
        lw_free(&seen);
        lw_free(&words);
        if (n >= 100) { /* a random permutation has one fixed point on average */
            assert_true(fixed < 12);
            assert_true(differs > n - 12);
        }
    }
}

/* Computed apart from this code, from what rng.h says: runs go on where others stopped. */
static void orders_stay_what_they_are(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, at[6];
    } rows[] = {{6, {4, 0, 1, 3, 5, 2}},
                {64, {46, 61, 4, 50, 0, 59}},
                {(uint64_t)1 << 33,
                 {1506277272, 953270378, 4904846689, 290379117, 8182605725, 8258350696}}};
    lw_rng_key key = lw_rng_key_of(7, 5);
    assert_true(key.k[0] == 0x1c9756ce && key.k[1] == 0x975835de);
    for (size_t r = 0; r < LW_COUNT(rows); r++)
        for (uint64_t i = 0; i < 6; i++)
            assert_int_equal(lw_rng_permute(key, 3, rows[r].n, i), rows[r].at[i]);
}

/* Position 0 of 5 over many epochs: each value about equally often. */
static void permutations_of_few_are_fair(void **state)
{
    (void)state;
    lw_rng_key key = lw_rng_key_of(1, lw_hash_name("shuffle"));
    int seen[5] = {0};
    for (uint32_t epoch = 0; epoch < 5000; epoch++)
        seen[lw_rng_permute(key, epoch, 5, 0)]++;
    for (int v = 0; v < 5; v++)
        assert_in_range(seen[v], 850, 1150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_the_known_answers),
        cmocka_unit_test(words_follow_the_documented_counter),
        cmocka_unit_test(keys_differ_by_seed_and_stream),
        cmocka_unit_test(uniforms_are_uniform),
        cmocka_unit_test(below_covers_its_range),
        cmocka_unit_test(permute_is_a_bijection),
        cmocka_unit_test(orders_stay_what_they_are),
        cmocka_unit_test(permutations_of_few_are_fair),
    };
    return cmocka_run_group_tests_name("base_rng", tests, NULL, NULL);
}
