/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_gemm: speed of matrix products (packed weights), forward and weight gradient, and of
 * packing, as a share of the measured peak.   bench_gemm [--threads N] [--isa avx2|avx512]
 * [--seconds S] The time is the best of many runs: the machine may be shared.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench_peak.h"
#include "kernels/kernels.h"

static const int cases[][3] = {
    /* M, N, K */
    {256, 256, 256},   {1024, 1024, 1024}, {2048, 2048, 2048}, {1024, 128, 128}, {1024, 256, 256},
    {1024, 768, 256},  {4096, 128, 128},   {4096, 256, 256},   {1024, 768, 768}, {1024, 3072, 768},
    {1024, 768, 3072}, {4096, 3072, 768},  {128, 512, 128},    {8, 512, 512},    {1, 512, 512},
    {64, 1000, 512},   {32768, 32, 32},    {8192, 48, 16},     {256, 10, 784},
};

enum { FORWARD, WEIGHT, PACK };

typedef struct job {
    lw_kernels k;
    ptrdiff_t M, N, K;
    int what;
    float *a, *c, *w, *packed, *partials;
    double peaks[256];
} job;

static void task(void *arg, int64_t i, int worker)
{
    job *j = arg;
    (void)worker;
    if (j->what == FORWARD)
        j->k.gemm.forward(j->c, j->N, j->a, j->K, j->packed, j->M, j->N, j->K, NULL, i);
    else if (j->what == PACK)
        j->k.gemm.pack(j->packed, j->w, j->N, j->K, j->K, 1, i);
    else
        j->k.gemm.weight_grad(j->w, NULL, j->c, j->N, j->a, j->K, j->M, j->N, j->K, 0, j->partials,
                              i);
}

static void combine(void *arg, int64_t i, int worker)
{
    job *j = arg;
    (void)worker;
    j->k.gemm.weight_grad_combine(j->w, NULL, j->M, j->N, j->K, 0, j->partials, i);
}

static void run(lw_pool *pool, job *j)
{
    if (j->what == FORWARD) {
        lw_pool_run(pool, lw_gemm_tasks(j->M, j->N, j->K), task, j);
    } else if (j->what == PACK) {
        lw_pool_run(pool, lw_gemm_pack_tasks(j->N, j->K), task, j);
    } else {
        lw_pool_run(pool, lw_gemm_weight_grad_tasks(j->M, j->N, j->K), task, j);
        if (lw_gemm_weight_grad_combine_tasks(j->M, j->N, j->K))
            lw_pool_run(pool, lw_gemm_weight_grad_combine_tasks(j->M, j->N, j->K), combine, j);
    }
}

static double best_seconds(lw_pool *pool, job *j, double budget)
{
    double best = 1e30, end = lw_now() + budget;
    for (int i = 0; i < 3 || (lw_now() < end && i < 20000); i++) {
        double t0 = lw_now();
        run(pool, j);
        best = fmin(best, lw_now() - t0);
    }
    return best;
}

static float *floats(int64_t n)
{
    float *p = lw_bulk_alloc((size_t)n * sizeof *p);
    for (int64_t i = 0; p && i < n; i++)
        p[i] = (float)(i % 17) * 0.0611f - 0.5f;
    return p;
}

static void bench(lw_pool *pool, job *j, double peak, double budget)
{
    int64_t packed = lw_gemm_packed_floats(j->N, j->K),
            partials = 16 + lw_gemm_weight_grad_partial_floats(j->M, j->N, j->K);
    j->a = floats(j->M * j->K);
    j->c = floats(j->M * j->N);
    j->w = floats(j->N * j->K);
    j->packed = floats(packed);
    j->partials = floats(partials);
    double flops = 2.0 * (double)j->M * (double)j->N * (double)j->K;
    printf("%5td x %4td x %4td", j->M, j->N, j->K);
    j->what = PACK;
    double sec = best_seconds(pool, j, budget / 4);
    printf(" | pack %7.4f ms %5.1f GB/s", sec * 1e3, 8e-9 * (double)(j->N * j->K) / sec);
    double worst = 0.0;
    for (j->what = FORWARD; j->what <= WEIGHT; j->what++) {
        sec = best_seconds(pool, j, budget);
        printf(" | %8.4f ms %5.0f GF %3.0f%%", sec * 1e3, flops / sec * 1e-9,
               100 * flops / sec / peak);
        for (ptrdiff_t i = 0; j->what == FORWARD && i < 97;
             i++) { /* a sample of outputs in double */
            ptrdiff_t m = i * 131 % j->M, n = i * 61 % j->N;
            double sum = 0.0;
            for (ptrdiff_t k = 0; k < j->K; k++)
                sum += (double)j->a[m * j->K + k] * (double)j->w[n * j->K + k];
            worst = fmax(worst, fabs(sum - (double)j->c[m * j->N + n]));
        }
    }
    printf("  err %.0e\n", worst);
    fflush(stdout);
    lw_bulk_free(&j->a, (size_t)(j->M * j->K) * sizeof(float));
    lw_bulk_free(&j->c, (size_t)(j->M * j->N) * sizeof(float));
    lw_bulk_free(&j->w, (size_t)(j->N * j->K) * sizeof(float));
    lw_bulk_free(&j->packed, (size_t)packed * sizeof(float));
    lw_bulk_free(&j->partials, (size_t)partials * sizeof(float));
}

static void peak_task(void *arg, int64_t i, int worker)
{
    job *j = arg;
    (void)worker;
    for (int r = 0; r < 20; r++)
        j->peaks[i] = fmax(j->peaks[i], j->k.isa >= LW_ISA_AVX512 ? bench_peak_flops_avx512(400000)
                                                                  : bench_peak_flops_avx2(400000));
}

int main(int argc, char **argv)
{
    int threads = 1, isa = (int)lw_isa_best();
    double budget = 0.1, peak = 0.0;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (lw_str_eq(argv[i], "--threads"))
            threads = atoi(argv[i + 1]);
        else if (lw_str_eq(argv[i], "--isa"))
            isa = lw_str_eq(argv[i + 1], "avx2") ? LW_ISA_AVX2 : isa;
        else if (lw_str_eq(argv[i], "--seconds"))
            budget = atof(argv[i + 1]);
    }
    lw_pool *pool = NULL;
    static job j;
    if (threads < 1 || threads > 256 || isa == LW_ISA_REF || lw_pool_new(threads, &pool)) {
        fprintf(stderr, "bench_gemm: needs 1..256 threads and at least AVX2\n");
        return 1;
    }
    lw_kernels_init(&j.k, (lw_isa)isa);
    lw_pool_run(pool, threads, peak_task, &j);
    for (int i = 0; i < threads; i++)
        peak += j.peaks[i] > 0 ? j.peaks[i] : j.peaks[0];
    printf("%s, %s, %d thread(s), measured peak %.0f GFLOP/s\n    M x    N x    K | pack | forward "
           "| weight gradient\n",
           lw_cpu_name(), lw_isa_name((lw_isa)isa), threads, peak * 1e-9);
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        j.M = cases[i][0];
        j.N = cases[i][1];
        j.K
        = cases[i][2];
        bench(pool, &j, peak, budget);
    }
    lw_pool_free(&pool);
    return 0;
}
