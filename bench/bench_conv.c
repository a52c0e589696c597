/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_conv: speed of convolutions and matrix products, forward, data gradient, weight gradient,
 * as a share of the measured peak. Each line carries its error against a double-precision sample.
 *   bench_conv [--threads N] [--isa LEVEL] [--filter TEXT] [--seconds S]
 * FLOPs are nominal (2 x filter size x output pixels, borders counted), so skipping borders may
 * pass 100 %. The time is the best of many runs: the machine may be shared.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_peak.h"
#include "kernels/kernels.h"

typedef struct bench_case {
    int C
    , H, B, O, K
    , stride;
} bench_case;

static const bench_case cases[] = {
    {128, 32, 1, 128, 3, 1},  {128, 32, 8, 128, 3, 1}, {128, 32, 32, 128, 3, 1},
    {256, 16, 32, 256, 3, 1}, {256, 16, 1, 256, 3, 1}, {256, 16, 8, 256, 3, 1},
    {256, 8, 1, 256, 3, 1},   {256, 8, 8, 256, 3, 1},  {256, 4, 1, 256, 3, 1},
    {256, 4, 8, 256, 3, 1},   {256, 4, 32, 256, 3, 1}, {512, 4, 32, 512, 3, 1},
    {512, 8, 8, 256, 3, 1},   {128, 32, 8, 128, 3, 2}, {256, 16, 8, 256, 1, 1},
    {128, 32, 8, 256, 1, 1},  {16, 16, 128, 16, 3, 1}, {32, 16, 128, 32, 3, 1},
    {48, 16, 128, 48, 3, 1},  {64, 16, 128, 64, 3, 1}, {16, 8, 128, 16, 3, 1},
    {32, 8, 128, 32, 3, 1},   {64, 8, 128, 64, 3, 1},  {64, 4, 128, 64, 3, 1},
    {32, 16, 128, 16, 3, 1},  {16, 16, 128, 32, 3, 2}, {3, 32, 32, 128, 3, 1},
    {128, 32, 32, 3, 3, 1},   {1, 16, 128, 16, 3, 1},  {16, 16, 128, 1, 3, 1},
    {32, 16, 128, 32, 1, 1},  {64, 8, 128, 192, 1, 1},
};

enum { FORWARD, DATA, WEIGHT, PASSES };

typedef struct job {
    lw_kernels k;
    lw_conv_shape s;
    int pass;
    float *x, *y, *w, *dw, *db, *packed, *partials;
    double peak; /* filled by the peak job */
    double peaks[256];
} job;

static void task(void *arg, int64_t i, int worker)
{
    job *j = arg;
    (void)worker;
    if (j->pass == FORWARD)
        j->k.conv.forward(j->y, j->x, j->packed, &j->s, &(lw_epilogue){.bias = j->db}, i);
    else if (j->pass == DATA)
        j->k.conv.data_grad(j->x, j->y, j->packed, &j->s, NULL, i);
    else
        j->k.conv.weight_grad(j->dw, j->db, j->y, j->x, &j->s, 0, j->partials, i);
}

static void combine(void *arg, int64_t i, int worker)
{
    job *j = arg;
    (void)worker;
    j->k.conv.weight_grad_combine(j->dw, j->db, &j->s, 0, j->partials, i);
}

static void run_pass(lw_pool *pool, job *j)
{
    if (j->pass == WEIGHT) {
        lw_pool_run(pool, lw_conv_weight_grad_tasks(&j->s), task, j);
        if (lw_conv_weight_grad_combine_tasks(&j->s))
            lw_pool_run(pool, lw_conv_weight_grad_combine_tasks(&j->s), combine, j);
        return;
    }
    lw_pool_run(pool, lw_conv_tasks(&j->s, (lw_conv_pass)j->pass), task, j);
}

static double best_seconds(lw_pool *pool, job *j, double budget)
{
    double best = 1e30, end = lw_now() + budget;
    for (int i = 0; i < 4 || (lw_now() < end && i < 20000); i++) {
        double t0 = lw_now();
        run_pass(pool, j);
        best = fmin(best, lw_now() - t0);
    }
    return best;
}

/* Largest error, relative to the largest value, of the pass's first image rows against the
 * reference level. Forward and data gradient do not depend on the other images. */
static double sample_error(const job *j, const float *result, const lw_kernels *ref)
{
    lw_conv_shape s = j->s;
    s.B = 1;
    bool forward = j->pass == FORWARD;
    int64_t rows = forward ? s.OH : s.H, row = forward ? s.OW * s.ldy : s.W * s.ldx, done = 0;
    int64_t tasks = lw_conv_tasks(&s, (lw_conv_pass)j->pass);
    float *want = lw_calloc((size_t)(rows * row), sizeof *want);
    for (int64_t i = 0; want && done < 1; i++) { /* reference tasks are shares of rows */
        if (forward)
            ref->conv.forward(want, j->x, j->w, &s, &(lw_epilogue){.bias = j->db}, i);
        else
            ref->conv.data_grad(want, j->y, j->w, &s, NULL, i);
        done = rows * (i + 1) / tasks;
    }
    double worst = 0.0, scale = 0.0;
    for (int64_t i = 0; i < done * row; i++) {
        worst = fmax(worst, fabs((double)want[i] - (double)result[i]));
        scale = fmax(scale, fabs((double)want[i]));
    }
    lw_free(&want);
    return worst / scale;
}

static float *random_floats(int64_t n, uint64_t stream)
{
    float *p = lw_bulk_alloc((size_t)n * sizeof *p);
    lw_rng_key key = lw_rng_key_of(1, stream);
    for (int64_t i = 0; p && i < n; i++)
        p[i] = (float)(lw_rng_uniform(key, 0, 0, (uint64_t)i & 0xffff) - 0.5);
    return p;
}

static void bench(lw_pool *pool, job *j, const lw_kernels *ref, double budget)
{
    const lw_conv_shape *s = &j->s;
    int64_t nx = (int64_t)s->B * s->H * s->W * s->C
    , ny = (int64_t)s->B * s->OH * s->OW * s->O;
    int64_t nw = (int64_t)s->O * s->KH * s->KW * s->C
    , np = lw_conv_weight_grad_partial_floats(s) + 16;
    int64_t npack = LW_MAX(lw_conv_packed_floats(s, LW_CONV_FORWARD),
                           lw_conv_packed_floats(s, LW_CONV_DATA_GRAD));
    j->x = random_floats(nx, 1);
    j->y = random_floats(ny, 2);
    j->w = random_floats(nw, 3);
    j->dw = random_floats(nw, 4);
    j->db = random_floats(s->O, 5);
    j->packed = random_floats(npack, 6);
    j->partials = random_floats(np, 7);
    double flops = 2.0 * (double)nw * s->B * s->OH * s->OW;
    char name[64];
    snprintf(name, sizeof name, "%d->%d %dx%d k%d s%d b%d", s->C, s->O, s->H, s->W, s->KH,
             s->stride, s->B);
    printf("%-26s", name);
    for (j->pass = 0; j->pass < PASSES; j->pass++) {
        if (j->pass != WEIGHT)
            for (int64_t i = 0; i < lw_conv_pack_tasks(s, (lw_conv_pass)j->pass); i++)
                j->k.conv.pack(j->packed, j->w, s, (lw_conv_pass)j->pass, i);
        double sec = best_seconds(pool, j, budget);
        int64_t tasks = j->pass == WEIGHT ? lw_conv_weight_grad_tasks(s)
                                          : lw_conv_tasks(s, (lw_conv_pass)j->pass);
        printf(" | %8.3f ms %5.0f GF %3.0f%% %3lldt", sec * 1e3, flops / sec * 1e-9,
               100 * flops / sec / j->peak, (long long)tasks);
        if (j->pass != WEIGHT)
            printf(" %.0e", sample_error(j, j->pass == FORWARD ? j->y : j->x, ref));
    }
    printf("\n");
    fflush(stdout);
    size_t f = sizeof(float);
    lw_bulk_free(&j->x, (size_t)nx * f);
    lw_bulk_free(&j->y, (size_t)ny * f);
    lw_bulk_free(&j->w, (size_t)nw * f);
    lw_bulk_free(&j->dw, (size_t)nw * f);
    lw_bulk_free(&j->db, (size_t)s->O * f);
    lw_bulk_free(&j->packed, (size_t)npack * f);
    lw_bulk_free(&j->partials, (size_t)np * f);
}

static void peak_task(void *arg, int64_t i, int worker)
{
    job *j = arg;
    (void)worker;
    for (int r = 0; r < 20; r++)
        j->peaks[i] = fmax(j->peaks[i], j->k.isa == LW_ISA_AVX512 ? bench_peak_flops_avx512(400000)
                                                                  : bench_peak_flops_avx2(400000));
}

int main(int argc, char **argv)
{
    int threads = 1, isa = (int)lw_isa_best();
    const char *filter = "";
    double budget = 0.1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (lw_str_eq(argv[i], "--threads"))
            threads = atoi(argv[i + 1]);
        else if (lw_str_eq(argv[i], "--isa"))
            isa = lw_str_eq(argv[i + 1], "avx2") ? LW_ISA_AVX2 : isa;
        else if (lw_str_eq(argv[i], "--filter"))
            filter = argv[i + 1];
        else if (lw_str_eq(argv[i], "--seconds"))
            budget = atof(argv[i + 1]);
    }
    lw_pool *pool = NULL;
    static job j;
    static lw_kernels ref;
    if (threads < 1 || threads > 256 || lw_pool_new(threads, &pool) || isa == LW_ISA_REF) {
        fprintf(stderr, "bench_conv: needs 1..256 threads and at least AVX2\n");
        return 1;
    }
    lw_kernels_init(&ref, LW_ISA_REF);
    lw_kernels_init(&j.k, (lw_isa)isa);
    lw_pool_run(pool, threads, peak_task, &j);
    for (int i = 0; i < threads; i++)
        j.peak += j.peaks[i] > 0 ? j.peaks[i] : j.peaks[0];
    printf("%s, %s, %d thread(s), measured peak %.0f GFLOP/s; time, speed, share of peak, tasks, "
           "error\n",
           lw_cpu_name(), lw_isa_name((lw_isa)isa), threads, j.peak * 1e-9);
    printf("%-26s | forward | data gradient | weight gradient\n", "");
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        const bench_case *c = &cases[i];
        char name[64];
        snprintf(name, sizeof name, "%d->%d %dx%d k%d s%d b%d", c->C, c->O, c->H, c->H, c->K,
                 c->stride, c->B);
        if (!strstr(name, filter))
            continue;
        j.s = (lw_conv_shape)
        {
            .B = c->B, .H = c->H, .W = c->H, .C
            = c->C
            , .O = c->O, .KH = c->K
            , .KW = c->K
            , .stride = c->stride
        };
        j.s.pad_top = j.s.pad_left = j.s.pad_bottom = j.s.pad_right = c->K
        / 2;
        if (lw_conv_shape_init(&j.s)) {
            fprintf(stderr, "bench_conv: %s\n", lw_errmsg());
            return 1;
        }
        bench(pool, &j, &ref, budget);
    }
    lw_pool_free(&pool);
    return 0;
}
