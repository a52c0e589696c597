/* SPDX-License-Identifier: Apache-2.0 */
/* Sums at odd sizes and pitches; the same bits for any order of tasks. */
#include "kernels/check.h"
#include "kernels/kernels.h"

static lw_kernels table(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k;
}

static const check_tol close_to = {.abs = 2e-5, .rel = 1e-6};

static void all_elements(check *t)
{
    static const int64_t sizes[] = {1,    2,    15,   16,   17,   63,    65,
                                    1000, 1025, 4095, 4096, 4097, 12289, 40000};
    lw_kernels k = table(t);
    for (size_t i = 0; i < LW_COUNT(sizes); i++) {
        int64_t n = sizes[i], chunks = lw_reduce_chunks(n);
        float *x = check_in(t, n, i & 1, -1, 1), got[2];
        double *part = check_doubles(t, chunks), want[2] = {0, 0};
        for (int64_t e = 0; e < n; e++) {
            want[0] += (double)x[e] / (double)n;
            want[1] += (double)x[e] * (double)x[e] / (double)n;
        }
        for (int64_t c = chunks - 1; c >= 0; c--)
            k.reduce.chunk_sum(part, x, n, c, c + 1);
        k.reduce.combine(&got[0], part, chunks, 1.0 / (double)n);
        k.reduce.chunk_sumsq(part, x, n, 0, chunks);
        k.reduce.combine(&got[1], part, chunks, 1.0 / (double)n);
        check_close(t, got, want, 2, (check_tol){.abs = 1e-7, .rel = 1e-6}, "n=%lld", (long long)n);
        check_next(t);
    }
}

static void rows(check *t)
{
    lw_kernels k = table(t);
    for (int64_t c = 1; c < 5000; c += 1 + c / 3) {
        int64_t r = 1 + (int64_t)check_below(t, 9), pitch = c + (int64_t)check_below(t, 5);
        float *x = check_in(t, (r - 1) * pitch + c, 1, -1, 1);
        float *got = check_out(t, r, 1), *want = check_out(t, r, 0), *whole = check_out(t, r, 0);
        lw_reduce_row_sum_ref(want, x, pitch, c, 0.5, 0, r);
        k.reduce.row_sum(whole, x, pitch, c, 0.5, 0, r);
        for (int64_t i = r - 1; i >= 0; i--)
            k.reduce.row_sum(got, x, pitch, c, 0.5, i, i + 1);
        check_close_f(t, got, want, r, close_to, "sum c=%lld", (long long)c);
        check_same(t, got, whole, (size_t)r * 4, "row by row, c=%lld", (long long)c);
        lw_reduce_row_sumsq_ref(want, x, pitch, c, 0.5, 0, r);
        k.reduce.row_sumsq(got, x, pitch, c, 0.5, 0, r);
        check_close_f(t, got, want, r, close_to, "sumsq c=%lld", (long long)c);
        check_next(t);
    }
}

static void columns(check *t)
{
    static const int64_t rows_of[] = {1, 2, 127, 128, 129, 300, 1000};
    lw_kernels k = table(t);
    for (size_t i = 0; i < LW_COUNT(rows_of); i++) {
        for (int64_t c = 1; c < 300; c += 1 + c / 4) {
            int64_t m = rows_of[i], pitch = c + (int64_t)check_below(t, 3),
                    n = lw_reduce_row_chunks(m);
            float *x = check_in(t, (m - 1) * pitch + c, 1, -1, 1), *part = check_out(t, n * c, 1);
            float *got = check_in(t, c, 0, -1, 1);
            double *want = check_doubles(t, c);
            int accumulate = (int)check_below(t, 2);
            for (int64_t j = 0; j < c; j++) {
                for (int64_t r = 0; r < m; r++)
                    want[j] += 0.25 * (double)x[r * pitch + j];
                want[j] += accumulate ? (double)got[j] : 0.0;
            }
            for (int64_t q = n - 1; q >= 0; q--)
                k.reduce.col_partial(part, x, pitch, m, c, q, q + 1);
            int64_t cut = (int64_t)check_below(t, (uint32_t)c);
            k.reduce.col_combine(got, part, n, c, 0.25, accumulate, cut, c);
            k.reduce.col_combine(got, part, n, c, 0.25, accumulate, 0, cut);
            check_close(t, got, want, c, close_to, "m=%lld c=%lld", (long long)m, (long long)c);
            check_next(t);
        }
    }
}

static void middle(check *t)
{
    static const int64_t spaces[] = {1, 4, 49, 128, 129, 1024};
    lw_kernels k = table(t);
    for (size_t i = 0; i < LW_COUNT(spaces); i++) {
        for (int64_t c = 1; c < 200; c += 1 + c / 3) {
            int64_t s = spaces[i], b = 3, pitch = c + (int64_t)check_below(t, 2);
            float *x = check_in(t, (b * s - 1) * pitch + c, 1, -1, 1);
            float *got = check_out(t, b * c, 1), *want = check_out(t, b * c, 0),
                  *whole = check_out(t, b * c, 0);
            lw_reduce_mid_sum_ref(want, x, pitch, s, c, 1.0 / (double)s, 0, b);
            k.reduce.mid_sum(whole, x, pitch, s, c, 1.0 / (double)s, 0, b);
            for (int64_t q = b - 1; q >= 0; q--)
                k.reduce.mid_sum(got, x, pitch, s, c, 1.0 / (double)s, q, q + 1);
            check_close_f(t, got, want, b * c, (check_tol){.abs = 1e-6, .rel = 1e-6},
                          "s=%lld c=%lld", (long long)s, (long long)c);
            check_same(t, got, whole, (size_t)(b * c) * 4, "sample by sample");
            check_next(t);
        }
    }
}

static void chosen_rows(check *t)
{
    enum { TABLE = 23 };
    lw_kernels k = table(t);
    for (int64_t c = 1; c < 700; c += 1 + c / 3) {
        int32_t row[40];
        int64_t n = 1 + (int64_t)check_below(t, 40);
        for (int64_t i = 0; i < n; i++)
            row[i] = (int32_t)check_below(t, TABLE);
        float *q = check_in(t, c, 1, -1, 1), *x = check_in(t, TABLE * c, 1, -1, 1);
        float *got = check_out(t, n, 1), *want = check_out(t, n, 0), *one = check_out(t, 1, 1);
        lw_reduce_dots_ref(want, q, x, row, n, c);
        k.reduce.dots(got, q, x, row, n, c);
        check_close_f(t, got, want, n, close_to, "n=%lld c=%lld", (long long)n, (long long)c);
        k.reduce.dots(one, q, x, row + n - 1, 1, c);
        check_same(t, got + n - 1, one, sizeof *one, "alone, c=%lld", (long long)c);
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"all_elements", all_elements},
                                       {"rows", rows},
                                       {"columns", columns},
                                       {"middle", middle},
                                       {"chosen_rows", chosen_rows}};
    return check_main(argc, argv, "reduce", cases, LW_COUNT(cases));
}
