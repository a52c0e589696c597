/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/peak: the sums are sums, and the operations counted are those done. */
#include "kernels/check.h"
#include "kernels/kernels.h"

static void reads_sum_everything(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    for (int64_t n = 0; n <= 1024; n += 64) {
        const float *x = check_in(t, n, 0, -1, 1);
        double *want = check_doubles(t, 1);
        float *got = check_out(t, 1, 0);
        for (int64_t i = 0; i < n; i++)
            want[0] += (double)x[i];
        k.peak.read(got, x, n);
        check_close(t, got, want, 1, (check_tol){.abs = 1e-4}, "n=%lld", (long long)n);
        check_next(t);
    }
}

/* Every chain tends to 1 whatever it began with, so their sum is the number of chains. */
static void operations_are_counted(check *t)
{
    enum { ROUNDS = 20000 };
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    double flops = 0.0, *want = check_doubles(t, 1);
    float *chains = check_out(t, 1, 0);
    k.peak.fma(&flops, chains, ROUNDS);
    want[0] = flops / (2.0 * ROUNDS);
    check_close(t, chains, want, 1, (check_tol){.rel = 1e-3}, "chains");
}

/* 12 chains of 16 lanes (8 of bytes at avxvnni), begun with 0 .. 11, or 4 tiles of 16 x 16, begun with 0; a step adds 2^-10
 * (bf16) or 1 (int8) to every lane, of 1 or 16 words multiplied. */
static void narrow_operations_are_counted(check *t)
{
    enum { ROUNDS = 1024 };
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    double ops = 0.0, *want = check_doubles(t, 2);
    float *sums = check_out(t, 2, 0);
    const bool tiles = t->isa >= LW_ISA_AMX;
    const double lanes = tiles ? 4 * 256 : 12 * 16, words = tiles ? 16 : 1, begun = tiles ? 0 : 5.5,
                 of_bytes = t->isa == LW_ISA_AVXVNNI ? lanes / 2 : lanes;
    want[0] = lanes * (begun + ROUNDS / 1024);
    want[1] = of_bytes * (begun + ROUNDS);
    sums[0] = (float)want[0]; /* what a level without the instructions is compared with */
    sums[1] = (float)want[1];
    if (k.peak.bf16) {
        k.peak.bf16(&ops, &sums[0], ROUNDS);
        check_same(t, &ops, &(double){2.0 * 2 * words * lanes * ROUNDS}, sizeof ops,
                   "bf16 operations");
    }
    if (k.peak.int8) {
        k.peak.int8(&ops, &sums[1], ROUNDS);
        check_same(t, &ops, &(double){2.0 * 4 * words * of_bytes * ROUNDS}, sizeof ops,
                   "int8 operations");
    }
    check_close(t, sums, want, 2, (check_tol){0}, "sums");
}

/* A copy is a copy. */
static void copies_are_equal(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    for (int64_t n = 0; n <= 1024; n += 64) {
        const float *x = check_in(t, n, n & 64 ? 1 : 0, -1, 1);
        float *got = check_out(t, n, 1);
        k.peak.copy(got, x, n);
        check_same(t, got, x, (size_t)n * sizeof *x, "n=%lld", (long long)n);
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"reads_sum_everything", reads_sum_everything},
        {"operations_are_counted", operations_are_counted},
        {"narrow_operations_are_counted", narrow_operations_are_counted},
        {"copies_are_equal", copies_are_equal}};
    return check_main(argc, argv, "peak", cases, LW_COUNT(cases));
}
