/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drift field of a device against the oracle in double: every variant, sizes at the edges of a GPU's tiles, and vectors
 * that are hard for products: far, collapsed, repeated, with a common offset, not a number. The case `large`, which takes
 * minutes where the device is emulated, is computed where the filter names it.
 */
#include "ops/on_device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "base/base.h"
#include "ir/ir.h"
#include "kernels/kernels.h"

/* What the vectors are like. */
typedef enum kind {
    NORMAL,
    OFFSET,    /* 1000 in all channels */
    COLLAPSED, /* all samples within 1e-3 of one point */
    REPEATED,  /* every other sample stands among the positives, too, and some samples twice */
    TWINS,     /* pairs of samples 1e-2 apart */
    FAR,       /* of 1e12 */
    UNEVEN,    /* one time in three 300 times as long, one time in three 1 / 300 */
    HEAVY,     /* unconditional ones of weight 100 */
    BEYOND,    /* of 1e18, where nothing is a number */
    NO_NUMBER  /* one is not */
} kind;

typedef struct field_case {
    const char *name;
    int g, n, np, nu, t, c, k;
    lw_drift_variant variant;
    bool rows_only, own_scale;
    kind kind;
    double tol; /* of F and dX, of their root mean square; of the statistics, relative */
    lw_drift_products products;
} field_case;

static const field_case cases[] = {
    {"one", 1, 1, 1, 0, 1, 1, 1, .tol = 3e-5},
    {"one_of_many", 1, 1, 130, 3, 2, 17, 3, .tol = 3e-5},
    {"few_channels", 2, 15, 17, 0, 1, 15, 2, .tol = 3e-5},
    {"tile", 1, 128, 112, 16, 1, 16, 1, .tol = 3e-5},
    {"tile_less_one", 1, 127, 50, 78, 1, 129, 2, .tol = 3e-5},
    {"tile_and_one", 1, 129, 131, 0, 1, 17, 3, .tol = 3e-5},
    {"warp_and_one", 1, 65, 130, 33, 1, 33, 2, .tol = 3e-5},
    {"parts", 1, 300, 90, 10, 1, 1, 2, .tol = 3e-5},
    {"wide", 1, 40, 70, 0, 1, 261, 3, .tol = 3e-5},
    {"groups_slots", 3, 21, 37, 5, 4, 18, 3, .tol = 3e-5},
    {"eight", 1, 9, 20, 4, 2, 24, 8, .tol = 3e-5},
    {"plain", 2, 40, 33, 7, 1, 20, 2, LW_DRIFT_PLAIN, .tol = 3e-5},
    {"tau_times_dim", 1, 40, 33, 7, 2, 20, 3, LW_DRIFT_TAU_TIMES_DIM, .tol = 3e-5},
    {"plain_one", 1, 1, 20, 0, 1, 20, 2, LW_DRIFT_PLAIN, .tol = 3e-5}, /* no negatives: 0 */
    {"rows_only", 1, 140, 33, 7, 2, 20, 3, .rows_only = true, .tol = 3e-5},
    {"plain_rows_only", 1, 30, 33, 0, 1, 20, 2, LW_DRIFT_PLAIN, .rows_only = true, .tol = 3e-5},
    {"own_scale", 2, 30, 40, 6, 3, 20, 3, .own_scale = true, .tol = 3e-5},
    {"offset", 1, 70, 80, 9, 2, 40, 3, .kind = OFFSET, .tol = 3e-5},
    {"collapsed", 1, 70, 80, 9, 1, 40, 3, .kind = COLLAPSED, .tol = 3e-5},
    {"repeated", 1, 150, 140, 0, 1, 40, 3, .kind = REPEATED, .tol = 3e-5},
    {"twins", 1, 150, 140, 0, 1, 40, 3, .kind = TWINS, .tol = 3e-5},
    {"far", 1, 40, 50, 5, 1, 30, 3, .kind = FAR, .tol = 3e-5},
    {"uneven", 1, 140, 150, 5, 1, 30, 3, .kind = UNEVEN, .tol = 3e-5},
    {"heavy", 1, 40, 50, 9, 1, 30, 3, .kind = HEAVY, .tol = 3e-5},
    {"beyond", 1, 40, 50, 5, 1, 30, 3, .kind = BEYOND},
    {"no_number", 1, 40, 50, 5, 2, 30, 3, .kind = NO_NUMBER},
    {"no_number_slot", 1, 40, 50, 5, 2, 30, 3, .own_scale = true, .kind = NO_NUMBER},
    {"plain_no_number", 1, 40, 50, 5, 2, 30, 3, LW_DRIFT_PLAIN, .own_scale = true,
     .kind = NO_NUMBER},
    {"bf16", 1, 70, 80, 9, 2, 40, 2, .products = LW_DRIFT_BF16, .tol = 6e-2},
    {"slots16", 1, 64, 128, 96, 16, 192, 3, .tol = 3e-5},
    {"large", 1, 512, 512, 0, 1, 768, 3, .tol = 3e-5},
};

static const double temperatures[2][LW_DRIFT_MAX_TAU] = {
    {0.02, 0.05, 0.2, 0.1, 0.3, 0.5, 1.0, 0.04},
    {2.0, 5.0, 1.0, 0.5, 3.0, 4.0, 6.0, 7.0}, /* of raw distances */
};

enum { X, POS, UNC, W, ARRAYS };
enum { F, DX, LOSS, STATS, RESULTS };

/* Operands in f32 and double, and what came out. */
typedef struct field_data {
    int64_t count[ARRAYS], results[RESULTS];
    float *in[ARRAYS];
    double *wide[ARRAYS], *want[RESULTS];
    float *got[RESULTS];
} field_data;

static void *numbers(int64_t n, size_t size)
{
    void *p = lw_calloc((size_t)n + 1, size);
    LW_ASSERT(p, "%s", lw_errmsg());
    return p;
}

static float normal(int stream, int64_t e)
{
    lw_rng_key key = lw_rng_key_of(5, (uint64_t)stream);
    double u = lw_rng_uniform(key, 0, 0, (uint64_t)e), v = lw_rng_uniform(key, 1, 0, (uint64_t)e);
    return (float)(sqrt(-2.0 * log(1.0 - u)) * cos(6.283185307179586 * v));
}

static void harden(const field_case *k, field_data *d)
{
    int64_t row = (int64_t)k->t * k->c;
    for (int i = 0; i < W; i++)
        for (int64_t e = 0; e < d->count[i]; e++) {
            float *v = &d->in[i][e];
            if (k->kind == OFFSET)
                *v += 1000.0f;
            if (k->kind == FAR)
                *v *= 1e12f;
            if (k->kind == UNEVEN)
                *v *= e / row % 3 == 2 ? 300.0f : e / row % 3 ? 1.0f : 1.0f / 300.0f;
            if (k->kind == BEYOND)
                *v *= 1e18f;
            if (k->kind == COLLAPSED && i == X)
                *v = normal(9, e % row) + 1e-3f * *v;
            if (k->kind == TWINS && i == X && e / row % 2)
                *v = d->in[X][e - row] + 1e-2f * *v;
            if (k->kind == REPEATED && i == POS && e / row % 2 && e < d->count[X])
                *v = d->in[X][e];
            if (k->kind == REPEATED && i == X && e / row % 5 == 4)
                *v = d->in[X][e - 3 * row];
        }
    for (int64_t g = 0; k->kind == HEAVY && g < d->count[W]; g++)
        d->in[W][g] = 100.0f;
    if (k->kind == NO_NUMBER)
        d->in[X][7] = NAN;
}

static void make(const field_case *k, field_data *d)
{
    int64_t row = (int64_t)k->g * k->t * k->c;
    const int64_t count[ARRAYS] = {k->n * row, k->np * row, k->nu * row, k->nu ? k->g : 0};
    const int64_t results[RESULTS] = {count[X], count[X], 1, LW_DRIFT_STATS(k->k)};
    for (int i = 0; i < ARRAYS; i++) {
        d->count[i] = count[i];
        d->in[i] = numbers(count[i], sizeof(float));
        d->wide[i] = numbers(count[i], sizeof(double));
        for (int64_t e = 0; e < count[i]; e++)
            d->in[i][e] = i == W ? 0.5f + (float)e : normal(i, e) * 0.7f + (i == POS ? 0.3f : 0.0f);
    }
    for (int i = 0; i < RESULTS; i++) {
        d->results[i] = results[i];
        d->got[i] = numbers(results[i], sizeof(float));
        d->want[i] = numbers(results[i], sizeof(double));
    }
    harden(k, d);
    for (int i = 0; i < ARRAYS; i++)
        for (int64_t e = 0; e < count[i]; e++)
            d->wide[i][e] = (double)d->in[i][e];
}

static void clear(field_data *d)
{
    for (int i = 0; i < ARRAYS; i++) {
        lw_free(&d->in[i]);
        lw_free(&d->wide[i]);
    }
    for (int i = 0; i < RESULTS; i++) {
        lw_free(&d->got[i]);
        lw_free(&d->want[i]);
    }
}

static const double *tau_of(const field_case *k)
{
    return temperatures[k->variant == LW_DRIFT_PLAIN];
}

static void oracle(const field_case *k, field_data *d)
{
    lw_drift_shape s = {.g = k->g,
                        .n = k->n,
                        .np = k->np,
                        .nu = k->nu,
                        .t = k->t,
                        .c = k->c,
                        .k = k->k,
                        .rows_only = k->rows_only,
                        .own_scale = k->own_scale,
                        .variant = k->variant};
    lw_drift_dense(&s);
    memcpy(s.tau, tau_of(k), sizeof s.tau);
    lw_drift_io_f64 io = {.f = d->want[F],
                          .dx = d->want[DX],
                          .stats = d->want[STATS],
                          .x = d->wide[X],
                          .pos = d->wide[POS],
                          .unc = d->wide[UNC],
                          .w_u = d->wide[W]};
    char *work = numbers((int64_t)lw_drift_work_f64(&s), 1);
    lw_drift_run_f64(&io, &s, work);
    lw_free(&work);
    d->want[LOSS][0] = d->want[STATS][2];
}

/* ---- on a device ----------------------------------------------------------------------------- */

static const char *const in_name[ARRAYS] = {"x", "pos", "unc", "w"};
static const char *const out_name[RESULTS] = {"f", "dx", "loss", "stats"};

static int build(const field_case *k, lw_graph **out)
{
    lw_attr_drift a = {.groups = k->g,
                       .n = k->n,
                       .np = k->np,
                       .nu = k->nu,
                       .slots = k->t,
                       .c = k->c,
                       .n_tau = k->k,
                       .normalize_over_x = !k->rows_only,
                       .own_scale = k->own_scale,
                       .products = (int32_t)k->products,
                       .variant = (int32_t)k->variant};
    const int32_t each[] = {k->n, k->np, k->nu};
    lw_val in[ARRAYS] = {LW_NOVAL, LW_NOVAL, LW_NOVAL, LW_NOVAL};
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    memcpy(a.tau, tau_of(k), sizeof a.tau);
    LW_TRY(lw_graph_new(&g));
    for (int i = 0; i < ARRAYS; i++)
        if (i < UNC || k->nu)
            in[i] = lw_input(g, in_name[i],
                             i == W ? lw_type_of(LW_F32, 1, k->g)
                                    : lw_type_of(LW_F32, 3, k->g * each[i], k->t, k->c));
    lw_drift_out o = lw_drift_field(g, in[X], in[POS], in[UNC], in[W], &a);
    lw_graph_output_add(g, "f", o.field, LW_NOVAL);
    lw_graph_output_add(g, "dx", o.dx, LW_NOVAL);
    lw_graph_output_add(g, "loss", o.loss, LW_NOVAL);
    lw_graph_output_add(g, "stats", o.stats, LW_NOVAL);
    *out = lw_steal(&g);
    return 0;
}

/* Three runs, of which a device may record the later ones: 1 with the same bits in all, else 0. */
static int compute(const field_case *k, field_data *d, lw_device *dev)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_plan_free) lw_plan *plan = NULL;
    LW_CLEANUP(lw_exec_free) lw_exec *exec = NULL;
    LW_TRY(build(k, &g));
    LW_TRY(lw_compile(g, dev, &(lw_compile_opts){.opt = 1}, &plan));
    LW_TRY(lw_exec_new(plan, LW_SLAB_PARAM, &exec));
    for (int i = 0; i < ARRAYS; i++)
        if (d->count[i])
            memcpy(lw_exec_write(exec, in_name[i]), d->in[i], sizeof(float) * (size_t)d->count[i]);
    for (int run = 0; run < (d->count[X] > 100000 ? 1 : 3); run++) {
        LW_TRY(lw_exec_run(exec, &(lw_tick){0}));
        for (int i = 0; i < RESULTS; i++) {
            const float *y = lw_exec_read(exec, out_name[i]);
            size_t bytes = sizeof(float) * (size_t)d->results[i];
            if (run > 0 && memcmp(y, d->got[i], bytes) != 0)
                return 0;
            memcpy(d->got[i], y, bytes);
        }
    }
    LW_TRY(lw_backend_failed_on(dev));
    return 1;
}

/* The greatest error and the root mean square of what is right. */
typedef struct error {
    double most, rms;
} error;

static error error_of(const field_data *d, int i)
{
    error e = {0, 0};
    for (int64_t at = 0; at < d->results[i]; at++) {
        double off = fabs((double)d->got[i][at] - d->want[i][at]);
        e.rms += d->want[i][at] * d->want[i][at];
        if (!(off <= e.most))
            e.most = isnan(off) ? (double)INFINITY : off;
    }
    e.rms = fmax(sqrt(e.rms / (double)d->results[i]), 1e-20); /* a field may be 0 */
    return e;
}

/* Some are not numbers where all have to be none. */
static bool none_is_number(const field_data *d)
{
    for (int i = 0; i < RESULTS; i++)
        for (int64_t e = 0; e < d->results[i]; e++)
            if (!isnan(d->got[i][e]) && (i != STATS || e == 0)) /* S: the others are bounded */
                return false;
    return true;
}

static double relative(double got, double want)
{
    double off = fabs(got - want) / fmax(fabs(want), 1e-20);
    return isnan(off) ? (double)INFINITY : off;
}

/* The greatest error of all results: of F and dX over their root mean square, of statistics relative. */
static double worst_of(const field_data *d)
{
    error f = error_of(d, F), dx = error_of(d, DX);
    double worst = fmax(f.most / f.rms, dx.most / dx.rms);
    worst = fmax(worst, relative((double)d->got[LOSS][0], d->want[LOSS][0]));
    for (int i = 0; i < d->results[STATS]; i++)
        worst = fmax(worst, relative((double)d->got[STATS][i], d->want[STATS][i]));
    return worst;
}

static void check(const field_case *k, on_device *o, lw_device *dev)
{
    char name[64];
    field_data d;
    snprintf(name, sizeof name, "drift.%s", k->name);
    make(k, &d);
    oracle(k, &d);
    int rc = compute(k, &d, dev);
    if (rc <= 0) {
        on_device_failed(o, name, rc < 0 ? lw_errmsg() : "runs differ");
    } else if (k->kind == BEYOND || k->kind == NO_NUMBER) {
        on_device_compared(o, name, d.results[F], none_is_number(&d) ? 0.0 : (double)INFINITY, 0.0);
    } else {
        on_device_compared(o, name, d.results[F], worst_of(&d), k->tol);
    }
    clear(&d);
}

void drift_on_device(on_device *o, lw_device *dev)
{
    bool cpu = lw_str_eq(dev->name, "cpu");
    for (size_t i = 0; i < LW_COUNT(cases); i++) {
        const field_case *k = &cases[i];
        if (cpu && k->kind == BEYOND) /* the CPU's reference goes on in double */
            continue;
        if (lw_str_eq(k->name, "large") && !strstr(o->filter, k->name))
            continue;
        if (on_device_chosen(o, "drift", k->name))
            check(k, o, dev);
    }
}
