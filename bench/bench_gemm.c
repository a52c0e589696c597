/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_gemm: speed of matrix products (packed weights), forward and weight gradient, and of
 * packing, in f32, bf16 and int8 (forward only), as a share of the measured peak: f32's, twice and
 * four times that.
 *
 *   bench_gemm [--threads N] [--isa LEVEL] [--seconds S]
 *
 * The time is the best of many runs, with one thread the CPU's own time: the machine may be shared.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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
    float *a, *c, *w, *dw, *packed, *partials, *scale;
    lw_num num;
    lw_bf16 *ah, *ch; /* a and c rounded */
    uint8_t *ab;
    lw_quant q;
    double seconds[2]; /* of f32 */
    double peaks[256];
} job;

static void task_low(job *j, int64_t i)
{
    bool s8 = j->num == LW_NUM_S8;
    if (j->what == PACK && s8)
        j->k.gemm.pack_s8(j->packed, j->w, j->N, j->K, j->K, 1, j->scale, i);
    else if (j->what == PACK)
        j->k.gemm.pack_bf16(j->packed, j->w, j->N, j->K, j->K, 1, i);
    else if (j->what == WEIGHT)
        j->k.gemm.weight_grad_bf16(j->dw, NULL, j->ch, j->N, j->ah, j->K, j->M, j->N, j->K, 0,
                                   j->partials, i);
    else if (s8)
        j->k.gemm.forward_u8(j->c, j->N, j->ab, j->K, j->packed, &j->q, j->M, j->N, j->K, NULL, i);
    else
        j->k.gemm.forward_bf16(j->c, j->N, j->ah, j->K, j->packed, j->M, j->N, j->K, NULL, i);
}

static void task(void *arg, int64_t i, int worker)
{
    job *j = arg;
    (void)worker;
    if (j->num != LW_NUM_F32)
        task_low(j, i);
    else if (j->what == FORWARD)
        j->k.gemm.forward(j->c, j->N, j->a, j->K, j->packed, j->M, j->N, j->K, NULL, i);
    else if (j->what == PACK)
        j->k.gemm.pack(j->packed, j->w, j->N, j->K, j->K, 1, i);
    else
        j->k.gemm.weight_grad(j->dw, NULL, j->c, j->N, j->a, j->K, j->M, j->N, j->K, 0, j->partials,
                              i);
}

static void combine(void *arg, int64_t i, int worker)
{
    job *j = arg;
    (void)worker;
    j->k.gemm.weight_grad_combine(j->dw, NULL, j->M, j->N, j->K, 0, j->partials, i);
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

static double clock_seconds(const lw_pool *pool)
{
    struct timespec t;
    if (lw_pool_size(pool) > 1)
        return lw_now();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double best_seconds(lw_pool *pool, job *j, double budget)
{
    double best = 1e30, end = lw_now() + budget;
    for (int i = 0; i < 3 || (lw_now() < end && i < 20000); i++) {
        double t0 = clock_seconds(pool);
        run(pool, j);
        best = fmin(best, clock_seconds(pool) - t0);
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

/* Element of a, and of w for output n, as the type at hand has them. */
static double value_a(const job *j, ptrdiff_t i)
{
    if (j->num == LW_NUM_S8)
        return (double)j->q.a_scale * (j->ab[i] - j->q.a_zero);
    return (double)(j->num == LW_NUM_BF16 ? lw_bf16_to_f32(j->ah[i]) : j->a[i]);
}
static double value_w(const job *j, ptrdiff_t i, ptrdiff_t n)
{
    if (j->num == LW_NUM_S8)
        return (double)j->scale[n] * rint((double)(j->w[i] / j->scale[n]));
    return (double)(j->num == LW_NUM_BF16 ? lw_bf16_to_f32(lw_bf16_of_f32(j->w[i])) : j->w[i]);
}

/* Largest error of a sample of outputs against double sums. */
static double sample_error(const job *j)
{
    double worst = 0.0;
    for (ptrdiff_t i = 0; i < 97; i++) {
        ptrdiff_t m = i * 131 % j->M, n = i * 61 % j->N;
        double sum = 0.0;
        for (ptrdiff_t d = 0; d < j->K; d++)
            sum += value_a(j, m * j->K + d) * value_w(j, n * j->K + d, n);
        worst = fmax(worst, fabs(sum - (double)j->c[m * j->N + n]));
    }
    return worst;
}

static void bench_type(lw_pool *pool, job *j, double peak, double budget)
{
    static const char *const names[] = {"f32", "bf16", "int8"};
    double flops = 2.0 * (double)j->M * (double)j->N * (double)j->K, worst = 0.0;
    if (!lw_num_fits(j->num, j->K, j->K))
        return;
    printf("%5td x %4td x %4td %4s", j->M, j->N, j->K, names[j->num]);
    j->what = PACK;
    double sec = best_seconds(pool, j, budget / 4);
    printf(" | pack %7.4f ms %5.1f GB/s", sec * 1e3, 8e-9 * (double)(j->N * j->K) / sec);
    for (j->what = FORWARD; j->what <= (j->num == LW_NUM_S8 ? FORWARD : WEIGHT); j->what++) {
        sec = best_seconds(pool, j, budget);
        printf(" | %8.4f ms %5.0f GF %3.0f%%", sec * 1e3, flops / sec * 1e-9,
               100 * flops / sec / peak / (double)lw_num_per_word(j->num));
        if (j->what == FORWARD)
            worst = sample_error(j);
        if (j->num == LW_NUM_F32)
            j->seconds[j->what] = sec;
        else
            printf(" %4.2fx", j->seconds[j->what] / sec);
    }
    printf("  err %.0e\n", worst);
    fflush(stdout);
}

static void bench(lw_pool *pool, job *j, double peak, double budget)
{
    int64_t packed = lw_gemm_packed_floats(j->N, j->K) + j->N + 16,
            partials = 16 + lw_gemm_weight_grad_partial_floats(j->M, j->N, j->K);
    size_t na = (size_t)(j->M * j->K), nc = (size_t)(j->M * j->N), nw = (size_t)(j->N * j->K);
    j->a = floats((int64_t)na);
    j->c = floats((int64_t)nc);
    j->w = floats((int64_t)nw);
    j->dw = floats((int64_t)nw);
    j->scale = floats(j->N);
    j->packed = floats(packed);
    j->partials = floats(partials);
    j->ah = lw_bulk_alloc(na * sizeof *j->ah);
    j->ch = lw_bulk_alloc(nc * sizeof *j->ch);
    j->ab = lw_bulk_alloc(na);
    j->q = (lw_quant){.a_scale = 1.0f / 255, .a_zero = 128, .b_scale = j->scale};
    j->k.cast.f32_to_bf16(j->ah, j->a, (ptrdiff_t)na);
    j->k.cast.f32_to_bf16(j->ch, j->c, (ptrdiff_t)nc);
    j->k.cast.f32_to_u8(j->ab, j->a, (ptrdiff_t)na, j->q.a_scale, j->q.a_zero);
    for (ptrdiff_t n = 0; n < j->N; n++)
        j->scale[n] = 0.5f / 127;
    for (j->num = LW_NUM_F32; j->num < LW_NUM_COUNT; j->num++)
        bench_type(pool, j, peak, budget);
    lw_bulk_free(&j->a, na * sizeof(float));
    lw_bulk_free(&j->c, nc * sizeof(float));
    lw_bulk_free(&j->w, nw * sizeof(float));
    lw_bulk_free(&j->dw, nw * sizeof(float));
    lw_bulk_free(&j->scale, (size_t)j->N * sizeof(float));
    lw_bulk_free(&j->packed, (size_t)packed * sizeof(float));
    lw_bulk_free(&j->partials, (size_t)partials * sizeof(float));
    lw_bulk_free(&j->ah, na * sizeof(lw_bf16));
    lw_bulk_free(&j->ch, nc * sizeof(lw_bf16));
    lw_bulk_free(&j->ab, na);
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
            for (int l = LW_ISA_AVX2; l <= (int)lw_isa_best(); l++)
                isa = lw_str_eq(argv[i + 1], lw_isa_name((lw_isa)l)) ? l : isa;
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
        j.K = cases[i][2];
        bench(pool, &j, peak, budget);
    }
    lw_pool_free(&pool);
    return 0;
}
