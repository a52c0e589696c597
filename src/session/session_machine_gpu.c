/* SPDX-License-Identifier: Apache-2.0 */
/* Timing a GPU's products, copies and launches through plans, as networks have them. */
#include "session/session_machine_gpu.h"

#include "formats/formats.h"
#include "models/models.h"
#include "session/session_machine.h"
#include "session/session_quantization.h"

enum { LEAST_RUNS = 5, MOST_RUNS = 30, CHAIN = 100, COLUMNS = 1024 };
static const double long_enough = 5e-3; /* a run: nothing larger need be tried */
static const double spent_enough =
    0.25; /* all runs of one size; clocks rise in the first of them */

/* One plan, ready to run: x has the rank of what networks compute in bf16. */
typedef struct trial {
    lw_device *dev;
    lw_store *store;
    lw_graph *graph;
    lw_plan *plan;
    lw_exec *exec;
} trial;

static void close_trial(trial *t)
{
    lw_exec_free(&t->exec);
    lw_plan_free(&t->plan);
    lw_graph_free(&t->graph);
    lw_store_free(&t->store);
}

static int finish_trial(trial *t, lw_val y, const lw_compile_opts *o)
{
    lw_graph_output_add(t->graph, "y", y, (lw_val){0});
    LW_TRY(lw_compile(t->graph, t->dev, o, &t->plan));
    LW_TRY(lw_store_fix(t->store));
    return lw_exec_new(t->plan, LW_SLAB_PARAM, &t->exec);
}

static int begin_trial(trial *t, int32_t rows, int32_t columns, lw_val *x)
{
    LW_TRY(lw_graph_new(&t->graph));
    LW_TRY(lw_store_new(true, &t->store));
    *x = lw_input(t->graph, "x", lw_type_of(LW_F32, 3, 1, rows, columns));
    return 0;
}

/* In [-1, 1), of all bits: products of zeros take less power, and clocks rise. */
static void fill(float *v, int64_t n)
{
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525u + 1013904223u;
        v[i] = (float)(int32_t)state * 0x1p-31f;
    }
}

/* y = x W of `side` rows and columns. */
static int open_product(trial *t, int32_t side, lw_num num)
{
    lw_val x;
    LW_TRY(begin_trial(t, side, side, &x));
    lw_builder b = {.g = t->graph, .params = lw_store_params(t->store)};
    lw_val y = lw_linear(&b, "product", x, side, false);
    LW_TRY(finish_trial(t, y, &(lw_compile_opts){.opt = 1, .precision = num}));
    fill(lw_store_edit(t->store, 0, LW_SLAB_PARAM), (int64_t)side * side);
    lw_store_touch(t->store, LW_SLAB_PARAM);
    fill(lw_exec_write(t->exec, "x"), (int64_t)side * side);
    return 0;
}

/* y = x + 1, which reads and writes it once. */
static int open_pass(trial *t, int32_t rows, lw_num num)
{
    lw_val x;
    (void)num;
    LW_TRY(begin_trial(t, rows, COLUMNS, &x));
    return finish_trial(t, lw_add_f32(t->graph, x, 1.0f), &(lw_compile_opts){.opt = 1});
}

/* Of one number each, and none fused with the next. */
static int open_chain(trial *t)
{
    lw_val x;
    LW_TRY(begin_trial(t, 1, 1, &x));
    for (int i = 0; i < CHAIN; i++)
        x = lw_add_f32(t->graph, x, 1.0f);
    return finish_trial(t, x, &(lw_compile_opts){.opt = 0});
}

/* One run's seconds in its steps of this op: what brings operands into another type is not counted. */
static int time_op(trial *t, const char *op, double *seconds)
{
    *seconds = 0.0;
    lw_exec_profile(t->exec, true);
    LW_TRY(lw_exec_run(t->exec, NULL));
    for (int i = lw_exec_prepare_count(t->exec); i < lw_exec_step_count(t->exec); i++) {
        const lw_step_time s = lw_exec_step_time(t->exec, i);
        *seconds += lw_str_eq(s.op, op) ? s.seconds : 0.0;
    }
    return 0;
}

static int median_op(trial *t, const char *op, double *seconds)
{
    double run[MOST_RUNS], spent = 0.0;
    int32_t n = 0;
    LW_TRY(time_op(t, op, seconds)); /* the first, that prepares weights, too */
    while (n < MOST_RUNS && (n < LEAST_RUNS || spent < spent_enough)) {
        LW_TRY(time_op(t, op, &run[n]));
        spent += run[n++];
    }
    *seconds = lw_summarize(run, n).p50;
    return 0;
}

/* Plans of 2^k rows that grow, up to what takes long enough or has no room. *rows, *seconds: of the last. */
typedef struct ladder {
    int (*open)(trial *t, int32_t rows, lw_num num);
    const char *op;
    lw_num num;
    int32_t least, most, factor;
} ladder;

static int climb(lw_device *dev, const ladder *l, int32_t *rows, double *seconds)
{
    *seconds = 0.0;
    for (int32_t n = l->least; n <= l->most && *seconds < long_enough; n *= l->factor) {
        double s = 0.0;
        trial t = {.dev = dev};
        int rc = l->open(&t, n, l->num);
        if (rc == 0)
            rc = median_op(&t, l->op, &s);
        close_trial(&t);
        if (rc == LW_ENOMEM && *seconds > 0.0)
            return 0;
        LW_TRY(rc);
        if (!(s > 0.0))
            return lw_fail(LW_EDEVICE, "%s: its clock stands still", dev->name);
        *rows = n;
        *seconds = s;
    }
    return 0;
}

static int measure_products(lw_device *dev, lw_gpu_peak *m)
{
    static const ladder ladders[] = {
        {open_product, "matmul", LW_NUM_F32, .least = 64, .most = 4096, .factor = 4},
        {open_product, "matmul", LW_NUM_BF16, .least = 128, .most = 8192, .factor = 4}};
    for (size_t i = 0; i < LW_COUNT(ladders); i++) {
        double seconds;
        int32_t *side = &m->side[ladders[i].num];
        LW_TRY(climb(dev, &ladders[i], side, &seconds));
        m->rate[ladders[i].num] = 2e-9 * (double)*side * *side * *side / seconds;
    }
    return 0;
}

static int measure_copy(lw_device *dev, lw_gpu_peak *m)
{
    static const ladder l = {open_pass,       "ew",       LW_NUM_F32, .least = 32,
                             .most = 1 << 17, .factor = 8};
    double seconds;
    int32_t rows = 0;
    LW_TRY(climb(dev, &l, &rows, &seconds));
    m->copy_bytes = (size_t)rows * COLUMNS * sizeof(float) * 2;
    m->copy = 1e-9 * (double)m->copy_bytes / seconds;
    return 0;
}

static int run_chain(void *self)
{
    return lw_exec_run(((trial *)self)->exec, NULL);
}

static int measure_launch(lw_device *dev, lw_gpu_peak *m)
{
    double run[MOST_RUNS], seconds = 0.0;
    trial t = {.dev = dev};
    int rc = open_chain(&t);
    if (rc == 0)
        rc = lw_device_time(dev, 3, run_chain, &t, &seconds); /* recorded in the second */
    for (int i = 0; rc == 0 && i < MOST_RUNS; i++)
        rc = lw_device_time(dev, 1, run_chain, &t, &run[i]);
    close_trial(&t);
    if (rc == 0)
        m->launch_us = 1e6 * lw_summarize(run, MOST_RUNS).p50 / CHAIN;
    return rc;
}

int lw_gpu_measure(lw_device *dev, lw_gpu_peak *out)
{
    lw_gpu_peak m = {0};
    LW_TRY(measure_products(dev, &m));
    LW_TRY(measure_copy(dev, &m));
    LW_TRY(measure_launch(dev, &m));
    *out = m;
    return 0;
}

json_t *lw_gpu_peak_json(const char *device, const lw_gpu_peak *m)
{
    json_t *rate = json_object(), *side = json_object();
    for (int i = 0; i < LW_NUM_COUNT; i++) {
        const bool there = m->rate[i] > 0.0;
        json_object_set_new(rate, lw_precision_name(i),
                            there ? lw_json_real(m->rate[i]) : json_null());
        json_object_set_new(side, lw_precision_name(i),
                            there ? json_integer(m->side[i]) : json_null());
    }
    return json_pack("{s:s, s:o, s:o, s:[{s:s, s:I, s:o}], s:o}", "device", device, "gflops", rate,
                     "product_side", side, "memory", "level", "GPU", "bytes",
                     (json_int_t)m->copy_bytes, "copy_gb_per_second", lw_json_real(m->copy),
                     "dispatch_us", lw_json_real(m->launch_us));
}
