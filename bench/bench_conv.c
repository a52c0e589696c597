/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_conv: speed of convolutions and matrix products, forward, data gradient, weight gradient,
 * in f32, bf16 and int8 (forward only), as a share of the measured peak: f32's, twice and four
 * times that. Each line carries its error against a double-precision sample and its speed over f32.
 *   bench_conv [--threads N] [--isa LEVEL] [--filter TEXT] [--seconds S]
 *
 * Another line has the forward and data gradient with Winograd's tiles, where those apply, and how
 * many times faster than directly they are.
 * FLOPs are nominal (2 x filter size x output pixels, borders counted), so skipping borders may
 * pass 100 %. The time is the best of many runs, with one thread the CPU's own time: the machine
 * may be shared.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench_peak.h"
#include "kernels/kernels.h"

typedef struct bench_case {
    int C, H, B, O, K, stride;
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
    float *x, *y, *w, *bias, *dw, *dbias, *packed, *partials;
    int tile;               /* of Winograd's tiles, 0: direct */
    float *scratch;         /* for them, */
    int64_t scratch_floats; /* so many a worker */
    lw_num num;
    lw_bf16 *xh, *yh; /* x and y rounded */
    uint8_t *xb;
    lw_quant q;
    double seconds[PASSES]; /* of f32 */
    double peak;            /* filled by the peak job */
    double peaks[256];
} job;

static void pack_task(void *arg, int64_t i, int worker)
{
    job *j = arg;
    (void)worker;
    if (j->num == LW_NUM_S8)
        j->k.conv.pack_s8(j->packed, j->w, &j->s, LW_CONV_FORWARD, j->q.b_scale, i);
    else if (j->num == LW_NUM_BF16)
        j->k.conv.pack_bf16(j->packed, j->w, &j->s, (lw_conv_pass)j->pass, i);
    else
        j->k.conv.pack(j->packed, j->w, &j->s, (lw_conv_pass)j->pass, i);
}

static void task_low(job *j, int64_t i)
{
    lw_epilogue e = {.bias = j->bias};
    if (j->num == LW_NUM_S8)
        j->k.conv.forward_u8(j->y, j->xb, j->packed, &j->q, &j->s, &e, i);
    else if (j->pass == FORWARD)
        j->k.conv.forward_bf16(j->y, j->xh, j->packed, &j->s, &e, i);
    else if (j->pass == DATA)
        j->k.conv.data_grad_bf16(j->x, j->yh, j->packed, &j->s, NULL, i);
    else
        j->k.conv.weight_grad_bf16(j->dw, j->dbias, j->yh, j->xh, &j->s, 0, j->partials, i);
}

static void task(void *arg, int64_t i, int worker)
{
    job *j = arg;
    if (j->num != LW_NUM_F32)
        task_low(j, i);
    else if (j->tile)
        j->k.winograd.run(j->pass == FORWARD ? j->y : j->x, j->pass == FORWARD ? j->x : j->y,
                          j->packed, &j->s, (lw_conv_pass)j->pass, j->tile,
                          &(lw_epilogue){.bias = j->pass == FORWARD ? j->bias : NULL},
                          j->scratch + worker * j->scratch_floats, i);
    else if (j->pass == FORWARD)
        j->k.conv.forward(j->y, j->x, j->packed, &j->s, &(lw_epilogue){.bias = j->bias}, i);
    else if (j->pass == DATA)
        j->k.conv.data_grad(j->x, j->y, j->packed, &j->s, NULL, i);
    else
        j->k.conv.weight_grad(j->dw, j->dbias, j->y, j->x, &j->s, 0, j->partials, i);
}

static void combine(void *arg, int64_t i, int worker)
{
    job *j = arg;
    (void)worker;
    j->k.conv.weight_grad_combine(j->dw, j->dbias, &j->s, 0, j->partials, i);
}

static void run_pass(lw_pool *pool, job *j)
{
    if (j->pass == WEIGHT) {
        lw_pool_run(pool, lw_conv_weight_grad_tasks(&j->s), task, j);
        if (lw_conv_weight_grad_combine_tasks(&j->s))
            lw_pool_run(pool, lw_conv_weight_grad_combine_tasks(&j->s), combine, j);
        return;
    }
    lw_conv_pass pass = (lw_conv_pass)j->pass;
    lw_pool_run(pool,
                j->tile ? lw_winograd_tasks(&j->s, pass, j->tile) : lw_conv_tasks(&j->s, pass),
                task, j);
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
    for (int i = 0; i < 4 || (lw_now() < end && i < 20000); i++) {
        double t0 = clock_seconds(pool);
        run_pass(pool, j);
        best = fmin(best, clock_seconds(pool) - t0);
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
            ref->conv.forward(want, j->x, j->w, &s, &(lw_epilogue){.bias = j->bias}, i);
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

/* The operand of reduced precision at i, as a number: x, y or a weight of filter o. */
static double low_x(const job *j, ptrdiff_t i)
{
    return j->num == LW_NUM_S8 ? (double)j->q.a_scale * (j->xb[i] - j->q.a_zero)
                               : (double)lw_bf16_to_f32(j->xh[i]);
}
static double low_w(const job *j, ptrdiff_t i, ptrdiff_t o)
{
    if (j->num == LW_NUM_BF16)
        return (double)lw_bf16_to_f32(lw_bf16_of_f32(j->w[i]));
    return (double)j->q.b_scale[o] * rint((double)(j->w[i] / j->q.b_scale[o]));
}

/* Largest error, relative to the largest value, of a sample of the outputs of the forward pass
 * against double sums over the rounded operands. */
static double low_error(const job *j)
{
    const lw_conv_shape *s = &j->s;
    double worst = 0.0, scale = 0.0;
    for (ptrdiff_t i = 0; i < 60; i++) {
        ptrdiff_t out = i * 131 % ((ptrdiff_t)s->B * s->OH * s->OW), o = i * 61 % s->O;
        ptrdiff_t oy = out / s->OW % s->OH, ox = out % s->OW, b = out / s->OW / s->OH;
        double sum = (double)j->bias[o];
        for (ptrdiff_t tap = 0; tap < s->KH * s->KW; tap++) {
            ptrdiff_t iy = oy * s->stride - s->pad_top + tap / s->KW;
            ptrdiff_t ix = ox * s->stride - s->pad_left + tap % s->KW;
            if (iy < 0 || iy >= s->H || ix < 0 || ix >= s->W)
                continue;
            ptrdiff_t in = ((b * s->H + iy) * s->W + ix) * s->ldx;
            ptrdiff_t w = (o * s->KH * s->KW + tap) * s->C;
            for (ptrdiff_t d = 0; d < s->C; d++)
                sum += low_x(j, in + d) * low_w(j, w + d, o);
        }
        worst = fmax(worst, fabs(sum - (double)j->y[out * s->ldy + o]));
        scale = fmax(scale, fabs(sum));
    }
    return worst / scale;
}

/* One line: all passes in one type. */
static void bench_type(lw_pool *pool, job *j, const lw_kernels *ref, double budget)
{
    static const char *const names[] = {"f32", "bf16", "int8"};
    const lw_conv_shape *s = &j->s;
    double flops = 2.0 * (double)s->O * s->KH * s->KW * s->C * s->B * s->OH * s->OW;
    double peak = j->peak * (double)lw_num_per_word(j->num);
    if (!lw_num_fits(j->num, s->C, s->ldx))
        return;
    char name[64];
    snprintf(name, sizeof name, "%d->%d %dx%d k%d s%d b%d", s->C, s->O, s->H, s->W, s->KH,
             s->stride, s->B);
    printf("%-26s %4s", j->num ? "" : name, names[j->num]);
    for (j->pass = 0; j->pass < (j->num == LW_NUM_S8 ? DATA : PASSES); j->pass++) {
        if (j->pass == DATA && !lw_num_fits(j->num, s->O, s->ldy)) {
            printf(" | not in this type");
            continue;
        }
        if (j->pass != WEIGHT)
            lw_pool_run(pool, lw_conv_pack_tasks(s, (lw_conv_pass)j->pass), pack_task, j);
        double sec = best_seconds(pool, j, budget);
        int64_t tasks = j->pass == WEIGHT ? lw_conv_weight_grad_tasks(s)
                                          : lw_conv_tasks(s, (lw_conv_pass)j->pass);
        printf(" | %8.3f ms %5.0f GF %3.0f%% %3lldt", sec * 1e3, flops / sec * 1e-9,
               100 * flops / sec / peak, (long long)tasks);
        if (j->num == LW_NUM_F32)
            j->seconds[j->pass] = sec;
        else
            printf(" %4.2fx", j->seconds[j->pass] / sec);
        if (j->num != LW_NUM_F32 && j->pass == FORWARD)
            printf(" %.0e", low_error(j));
        if (j->num == LW_NUM_F32 && j->pass != WEIGHT)
            printf(" %.0e", sample_error(j, j->pass == FORWARD ? j->y : j->x, ref));
    }
    printf("\n");
    fflush(stdout);
}

/* bf16 and bytes of x and y, and the weights' scales. */
static void round_operands(job *j, int64_t nx, int64_t ny, float *scale)
{
    const lw_conv_shape *s = &j->s;
    int64_t filter = (int64_t)s->KH * s->KW * s->C;
    j->q = (lw_quant){.a_scale = 1.0f / 255, .a_zero = 128, .b_scale = scale};
    j->k.cast.f32_to_bf16(j->xh, j->x, nx);
    j->k.cast.f32_to_bf16(j->yh, j->y, ny);
    j->k.cast.f32_to_u8(j->xb, j->x, nx, j->q.a_scale, j->q.a_zero);
    for (int32_t o = 0; o < s->O; o++) {
        float lo = 0.0f, hi = 0.0f;
        j->k.cast.range(&lo, &hi, j->w + o * filter, filter);
        scale[o] = fmaxf(hi, -lo) / 127;
    }
}

/* The line of Winograd's tiles, behind those of the types. */
static void bench_tiles(lw_pool *pool, job *j, const lw_kernels *ref, double budget)
{
    const lw_conv_shape *s = &j->s;
    double flops = 18.0 * s->O * s->C * s->B * s->OH * s->OW;
    j->num = LW_NUM_F32;
    for (j->pass = FORWARD; j->pass <= DATA; j->pass++) {
        lw_conv_pass pass = (lw_conv_pass)j->pass;
        j->tile = lw_winograd_tile(&j->s, pass, j->k.isa, LW_CONV_MODE_WINOGRAD);
        if (!j->tile)
            return;
        size_t packed = sizeof(float) * (size_t)lw_winograd_packed_floats(&j->s, pass, j->tile);
        j->scratch_floats = LW_ROUND_UP(lw_winograd_scratch_floats(&j->s, pass, j->tile), 16);
        size_t scratch = sizeof(float) * (size_t)(j->scratch_floats * lw_pool_size(pool));
        float *direct_packed = j->packed;
        j->packed = lw_bulk_alloc(packed);
        j->scratch = lw_bulk_alloc(scratch);
        for (int64_t i = 0; i < lw_winograd_pack_tasks(&j->s, pass, j->tile); i++)
            j->k.winograd.pack(j->packed, j->w, &j->s, pass, j->tile, i);
        double sec = best_seconds(pool, j, budget);
        if (pass == LW_CONV_FORWARD)
            printf("%16s Winograd F(%d)", "", j->tile);
        printf(" | %8.3f ms %5.0f GF %3.0f%% x%.2f", sec * 1e3, flops / sec * 1e-9,
               100 * flops / sec / j->peak, j->seconds[j->pass] / sec);
        printf(" %.0e", sample_error(j, j->pass == FORWARD ? j->y : j->x, ref));
        lw_bulk_free(&j->packed, packed);
        lw_bulk_free(&j->scratch, scratch);
        j->packed = direct_packed;
        j->tile = 0;
    }
    printf("\n");
}

static void bench(lw_pool *pool, job *j, const lw_kernels *ref, double budget)
{
    const lw_conv_shape *s = &j->s;
    int64_t nx = (int64_t)s->B * s->H * s->W * s->C, ny = (int64_t)s->B * s->OH * s->OW * s->O;
    int64_t nw = (int64_t)s->O * s->KH * s->KW * s->C;
    int64_t np = lw_conv_weight_grad_partial_floats(s) + 16;
    int64_t npack = LW_MAX(lw_conv_packed_floats(s, LW_CONV_FORWARD),
                           lw_conv_packed_floats(s, LW_CONV_DATA_GRAD));
    size_t f = sizeof(float), h = sizeof(lw_bf16);
    float *scale = random_floats(s->O, 8);
    j->x = random_floats(nx, 1);
    j->y = random_floats(ny, 2);
    j->w = random_floats(nw, 3);
    j->dw = random_floats(nw, 4);
    j->bias = random_floats(s->O, 5);
    j->dbias = random_floats(s->O, 9);
    j->packed = random_floats(npack + s->O * s->KH * s->KW + 1024, 6);
    j->partials = random_floats(np, 7);
    j->xh = lw_bulk_alloc((size_t)nx * h);
    j->yh = lw_bulk_alloc((size_t)ny * h);
    j->xb = lw_bulk_alloc((size_t)nx);
    round_operands(j, nx, ny, scale);
    for (j->num = LW_NUM_F32; j->num < LW_NUM_COUNT; j->num++)
        bench_type(pool, j, ref, budget);
    bench_tiles(pool, j, ref, budget);
    lw_bulk_free(&scale, (size_t)s->O * f);
    lw_bulk_free(&j->x, (size_t)nx * f);
    lw_bulk_free(&j->y, (size_t)ny * f);
    lw_bulk_free(&j->w, (size_t)nw * f);
    lw_bulk_free(&j->dw, (size_t)nw * f);
    lw_bulk_free(&j->bias, (size_t)s->O * f);
    lw_bulk_free(&j->dbias, (size_t)s->O * f);
    lw_bulk_free(&j->packed, (size_t)(npack + s->O * s->KH * s->KW + 1024) * f);
    lw_bulk_free(&j->partials, (size_t)np * f);
    lw_bulk_free(&j->xh, (size_t)nx * h);
    lw_bulk_free(&j->yh, (size_t)ny * h);
    lw_bulk_free(&j->xb, (size_t)nx);
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
    const char *filter = "";
    double budget = 0.1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (lw_str_eq(argv[i], "--threads"))
            threads = atoi(argv[i + 1]);
        else if (lw_str_eq(argv[i], "--isa"))
            for (int l = LW_ISA_AVX2; l <= (int)lw_isa_best(); l++)
                isa = lw_str_eq(argv[i + 1], lw_isa_name((lw_isa)l)) ? l : isa;
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
           "over f32, error\n",
           lw_cpu_name(), lw_isa_name((lw_isa)isa), threads, j.peak * 1e-9);
    printf("%-26s | forward | data gradient | weight gradient\n", "");
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        const bench_case *c = &cases[i];
        char name[64];
        snprintf(name, sizeof name, "%d->%d %dx%d k%d s%d b%d", c->C, c->O, c->H, c->H, c->K,
                 c->stride, c->B);
        if (!strstr(name, filter))
            continue;
        j.s = (lw_conv_shape){.B = c->B,
                              .H = c->H,
                              .W = c->H,
                              .C = c->C,
                              .O = c->O,
                              .KH = c->K,
                              .KW = c->K,
                              .stride = c->stride};
        j.s.pad_top = j.s.pad_left = j.s.pad_bottom = j.s.pad_right = c->K / 2;
        if (lw_conv_shape_init(&j.s)) {
            fprintf(stderr, "bench_conv: %s\n", lw_errmsg());
            return 1;
        }
        bench(pool, &j, &ref, budget);
    }
    lw_pool_free(&pool);
    return 0;
}
