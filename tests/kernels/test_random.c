/* SPDX-License-Identifier: Apache-2.0 */
/* Random rows: known answers, the words of base/rng, equal bits on every level and split,
 * distributions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

static lw_kernels table(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k;
}

/* Random123's kat_vectors for philox4x32 with 10 rounds. */
static void known_answers(check *t)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } kat[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    uint32_t got[4];
    for (size_t i = 0; i < LW_COUNT(kat); i++) {
        lw_philox4x32(kat[i].counter, kat[i].key, got);
        check_same(t, got, kat[i].want, sizeof got, "philox vector %zu", i);
    }
    lw_kernels k = table(t);
    const int64_t row = 0;
    k.random.below((int32_t *)got, 4, &row, (lw_rng_key){{0, 0}}, 0, ~0u, 4, 0, 1); /* word - 1 */
    for (int i = 0; i < 4; i++)
        got[i]++;
    check_same(t, got, kat[0].want, sizeof got, "philox vector 0 by the kernel");
}

/* Every function against base/rng.h, at odd lengths, pitches and row ids. */
static void words(check *t)
{
    lw_kernels k = table(t);
    const int64_t rows[] = {0, 5, 7, 0x123456789abcLL, -1};
    enum { R = LW_COUNT(rows) };
    for (int64_t n = 1; n < 300; n += 1 + n / 4) {
        lw_rng_key key = lw_rng_key_of(t->seed, 99 + (uint64_t)n);
        uint32_t step = check_below(t, 1000000), limit = 1 + check_below(t, 5000);
        int64_t pitch = n + (int64_t)check_below(t, 3);
        float *u = check_out(t, R * pitch, 1), p = 0.3f;
        int32_t *w = check_bytes(t, (size_t)(R * pitch) * 4, 1);
        float *x = check_in(t, R * n, 1, -1, 1), *y = check_out(t, R * n, 1);
        k.random.uniform(u, pitch, rows, key, step, n, 0, R);
        k.random.below(w, pitch, rows, key, step, limit, n, 0, R);
        k.random.dropout(y, x, p, rows, key, step, n, 0, R);
        for (int64_t r = 0; r < R; r++) {
            for (int64_t e = 0; e < n; e++) {
                uint64_t id = (uint64_t)rows[r];
                float real = (float)lw_rng_uniform(key, step, id, (uint64_t)e);
                uint32_t whole = lw_rng_below(key, step, id, (uint64_t)e, limit);
                float kept = real >= p ? x[r * n + e] * (1.0f / (1.0f - p)) : 0.0f;
                check_same(t, u + r * pitch + e, &real, 4, "uniform n=%lld", (long long)n);
                check_same(t, w + r * pitch + e, &whole, 4, "below n=%lld", (long long)n);
                check_same(t, y + r * n + e, &kept, 4, "dropout n=%lld", (long long)n);
            }
            if (r + 1 < R)
                check_poisoned(t, u + r * pitch + n, pitch - n, "between rows");
        }
        for (int64_t r = R - 1; r >= 0; r--)
            k.random.dropout(x, x, p, rows, key, step, n, r, r + 1);
        check_same(t, x, y, (size_t)(R * n) * 4, "dropout in place");
        check_next(t);
    }
}

/* Normals: the documented formula in double, and the bits of the plain C version. */
static void normal_formula(check *t)
{
    lw_kernels k = table(t);
    const int64_t rows[] = {3, 1LL << 40, 12};
    for (int64_t n = 1; n < 2000; n += 1 + n / 2) {
        lw_rng_key key = lw_rng_key_of(t->seed, (uint64_t)n);
        float *got = check_out(t, 3 * n, 1), *plain = check_out(t, 3 * n, 0),
              *split = check_out(t, 3 * n, 0);
        double *want = check_doubles(t, 3 * n);
        for (int64_t i = 0; i < 3 * n; i++) {
            uint64_t id = (uint64_t)rows[i / n], pair = (uint64_t)(i % n / 2 * 2);
            uint32_t u = lw_rng_word(key, 4, id, pair), v = lw_rng_word(key, 4, id, pair + 1);
            double radius = sqrt(-2.0 * log((double)((float)(u >> 1 | 1) * 0x1p-31f)));
            double angle = (double)v * 6.283185307179586 * 0x1p-32;
            want[i] = radius * (i % n % 2 ? sin(angle) : cos(angle));
        }
        k.random.normal(got, n, rows, key, 4, n, 0, 3);
        lw_random_normal_ref(plain, n, rows, key, 4, n, 0, 3);
        for (int r = 2; r >= 0; r--)
            k.random.normal(split, n, rows, key, 4, n, r, r + 1);
        check_close(t, got, want, 3 * n, (check_tol){.abs = 1e-6, .rel = 1e-6}, "n=%lld",
                    (long long)n);
        check_same(t, got, plain, (size_t)(3 * n) * 4, "bits of plain C, n=%lld", (long long)n);
        check_same(t, got, split, (size_t)(3 * n) * 4, "row by row, n=%lld", (long long)n);
        check_next(t);
    }
}

/* Rows of several blocks, and blocks in any order: what rows as a whole have. */
static void blocks(check *t)
{
    lw_kernels k = table(t);
    const int64_t rows[] = {8, 1LL << 33};
    for (int64_t n = LW_RANDOM_BLOCK - 1; n < 3 * LW_RANDOM_BLOCK; n += LW_RANDOM_BLOCK / 2 + 3) {
        const lw_rng_key key = lw_rng_key_of(t->seed, (uint64_t)n);
        const ptrdiff_t all = 2 * lw_random_blocks(n);
        float *x = check_in(t, 2 * n, 1, -1, 1), *y = check_out(t, 2 * n, 1),
              *u = check_out(t, 2 * n, 1), *z = check_out(t, 2 * n, 1),
              *plain = check_out(t, 2 * n, 0);
        int32_t *w = check_bytes(t, (size_t)(2 * n) * 4, 1);
        for (ptrdiff_t i = all - 1; i >= 0; i--) {
            k.random.uniform(u, n, rows, key, 3, n, i, i + 1);
            k.random.normal(z, n, rows, key, 3, n, i, i + 1);
            k.random.below(w, n, rows, key, 3, 1000, n, i, i + 1);
            k.random.dropout(y, x, 0.3f, rows, key, 3, n, i, i + 1);
        }
        lw_random_normal_ref(plain, n, rows, key, 3, n, 0, all);
        check_same(t, z, plain, (size_t)(2 * n) * 4, "normal, n=%lld", (long long)n);
        for (int64_t i = 0; i < 2 * n; i++) {
            const uint64_t id = (uint64_t)rows[i / n], e = (uint64_t)(i % n);
            const float real = (float)lw_rng_uniform(key, 3, id, e),
                        kept = real >= 0.3f ? x[i] * (1.0f / (1.0f - 0.3f)) : 0.0f;
            const uint32_t whole = lw_rng_below(key, 3, id, e, 1000);
            check_same(t, u + i, &real, 4, "uniform, n=%lld", (long long)n);
            check_same(t, w + i, &whole, 4, "below, n=%lld", (long long)n);
            check_same(t, y + i, &kept, 4, "dropout, n=%lld", (long long)n);
        }
        check_next(t);
    }
}

static int ascending(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

/* Kolmogorov-Smirnov distance times sqrt(n); 2.2 is exceeded once in 8000 draws of a true
 * distribution. */
static double ks(float *x, int64_t n, int normal)
{
    double worst = 0.0;
    qsort(x, (size_t)n, sizeof *x, ascending);
    for (int64_t i = 0; i < n; i++) {
        double f = normal ? 0.5 * erfc(-(double)x[i] * M_SQRT1_2) : (double)x[i];
        worst = fmax(worst,
                     fmax(fabs(f - (double)i / (double)n), fabs(f - (double)(i + 1) / (double)n)));
    }
    return worst * sqrt((double)n);
}

/* First four moments, KS distance, correlation of neighbours, of a fixed key: a statement about
 * this stream. */
static void distributions(check *t)
{
    enum { ROWS = 64, LENGTH = 2048, N = ROWS * LENGTH };
    lw_kernels k = table(t);
    int64_t rows[ROWS];
    for (int r = 0; r < ROWS; r++)
        rows[r] = r;
    lw_rng_key key = lw_rng_key_of(7, 11);
    float *x = check_out(t, N, 0), *y = check_out(t, N, 0);
    k.random.normal(x, LENGTH, rows, key, 0, LENGTH, 0, ROWS);
    k.random.uniform(y, LENGTH, rows, key, 1, LENGTH, 0, ROWS);
    double m[5] = {0}, u[3] = {0}, pair = 0, cross = 0, root = sqrt((double)N);
    for (int i = 0; i < N; i++) {
        double z = (double)x[i];
        m[1] += z / N, m[2] += z * z / N, m[3] += z * z * z / N, m[4] += z * z * z * z / N;
        u[1] += (double)y[i] / N, u[2] += (double)y[i] * (double)y[i] / N;
        pair += i % 2 ? (double)x[i] * (double)x[i - 1] / (N / 2) : 0.0;
        cross += i >= LENGTH ? (double)x[i] * (double)x[i - LENGTH] / (N - LENGTH) : 0.0;
    }
    /* in units of the standard error; all within 4 */
    float got[] = {(float)(m[1] * root),
                   (float)((m[2] - 1) * root / sqrt(2.0)),
                   (float)(m[3] * root / sqrt(15.0)),
                   (float)((m[4] - 3) * root / sqrt(96.0)),
                   (float)((u[1] - 0.5) * root * sqrt(12.0)),
                   (float)((u[2] - 1.0 / 3.0) * root * sqrt(45.0 / 4.0)),
                   (float)(pair * root / sqrt(2.0)),
                   (float)(cross * root)};
    const double zero[LW_COUNT(got)] = {0};
    check_close(t, got, zero, LW_COUNT(got), (check_tol){.abs = 4.0}, "moments");
    float far[] = {(float)ks(x, N, 1), (float)ks(y, N, 0)};
    check_close(t, far, zero, 2, (check_tol){.abs = 2.2}, "KS");
}

static void dropout_rate(check *t)
{
    enum { N = 100000 };
    lw_kernels k = table(t);
    const int64_t row = 1;
    static const float p[] = {0.0f, 0.1f, 0.5f, 0.9f};
    float *x = check_in(t, N, 0, 1, 1), *y = check_out(t, N, 0);
    x[3] = INFINITY; /* a dropped infinity is 0, not NaN */
    for (size_t i = 0; i < LW_COUNT(p); i++) {
        k.random.dropout(y, x, p[i], &row, lw_rng_key_of(1, 2), 3, N, 0, lw_random_blocks(N));
        double kept = 0, sum = 0;
        for (int e = 0; e < N; e++) {
            kept += y[e] != 0.0f;
            sum += e == 3 ? 0.0 : (double)y[e];
        }
        float got[] = {(float)(kept / N), (float)(sum / N)};
        const double want[] = {1.0 - (double)p[i], 1.0};
        check_close(t, got, want, 2, (check_tol){.abs = p[i] > 0.8f ? 0.04 : 0.01}, "p=%g",
                    (double)p[i]);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"known_answers", known_answers},   {"words", words},
        {"normal_formula", normal_formula}, {"blocks", blocks},
        {"distributions", distributions},   {"dropout_rate", dropout_rate}};
    return check_main(argc, argv, "random", cases, LW_COUNT(cases));
}
