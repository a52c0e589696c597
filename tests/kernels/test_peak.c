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

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"reads_sum_everything", reads_sum_everything},
                                       {"operations_are_counted", operations_are_counted}};
    return check_main(argc, argv, "peak", cases, LW_COUNT(cases));
}
