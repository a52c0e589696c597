/* SPDX-License-Identifier: Apache-2.0 */
/* Oracle against optimised plans, and gradients against central differences. */
#include "ops/op_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "cpu_device.h"

static lw_val add_input(op_ctx *c, lw_type t, bool grad, float lo, float hi, int32_t below)
{
    char name[16];
    snprintf(name, sizeof name, "in%d", c->n_in);
    int i = c->n_in++;
    c->in[i].val = lw_input(c->g, name, t);
    c->in[i].name = ((const lw_attr_input *)lw_val_node(c->g, c->in[i].val)->attr)->name;
    c->in[i].grad = grad;
    c->in[i].lo = lo;
    c->in[i].hi = hi;
    c->in[i].below = below;
    return c->in[i].val;
}

lw_val op_f32(op_ctx *c, bool grad, float lo, float hi, int rank, const int32_t *dim)
{
    lw_type t = {.dtype = LW_F32, .rank = rank};
    memcpy(t.dim, dim, sizeof *dim * (size_t)rank);
    return add_input(c, t, grad, lo, hi, 0);
}
lw_val op_i32(op_ctx *c, int32_t below, int32_t n)
{
    return add_input(c, lw_type_of(LW_I32, 1, n), false, 0, 0, below);
}
lw_val op_u8(op_ctx *c, int32_t rows, int32_t n)
{
    return add_input(c, lw_type_of(LW_U8, 2, rows, n), false, 0, 0, 256);
}
lw_val op_rows(op_ctx *c, int32_t n)
{
    return add_input(c, lw_type_of(LW_I64, 1, n), false, 0, 0, 0);
}

static bool seen[LW_OP_COUNT];

bool op_seen(lw_op op)
{
    return seen[op];
}

static void mark_seen(const lw_graph *g)
{
    for (uint32_t i = 0; i < lw_graph_node_count(g); i++)
        seen[lw_graph_node(g, i)->op] = true;
}

/* ---- running --------------------------------------------------------------------------------- */

typedef struct runner {
    lw_device *dev;
    lw_graph *g;
    lw_plan *plan;
    lw_exec *exec;
    op_ctx c;
} runner;

static void fill_input(runner *r, int i)
{
    lw_type t = lw_exec_type(r->exec, r->c.in[i].name);
    void *p = lw_exec_write(r->exec, r->c.in[i].name);
    lw_rng_key key = lw_rng_key_of(7, (uint64_t)i);
    for (int64_t e = 0; e < lw_type_count(t); e++) {
        double u = lw_rng_uniform(key, 0, 0, (uint64_t)e);
        if (t.dtype == LW_F32)
            ((float *)p)[e] = r->c.in[i].lo + (r->c.in[i].hi - r->c.in[i].lo) * (float)u;
        else if (t.dtype == LW_I32)
            ((int32_t *)p)[e] = (int32_t)(u * r->c.in[i].below);
        else if (t.dtype == LW_U8)
            ((uint8_t *)p)[e] = (uint8_t)(u * r->c.in[i].below);
        else
            ((int64_t *)p)[e] = 1000 + e;
    }
}

static float direction(int i, int64_t e)
{
    return (float)(lw_rng_uniform(lw_rng_key_of(11, (uint64_t)i), 0, 0, (uint64_t)e) * 2.0 - 1.0);
}

/* Outputs: "y", and "d<k>" for each differentiated input when with_grad. Cotangent: direction(99,
 * .). */
static int start_on(runner *r, const op_case *k, int opt, bool with_grad);

static int start(runner *r, const op_case *k, int opt, lw_isa isa, int threads, bool with_grad)
{
    memset(r, 0, sizeof *r);
    LW_TRY(cpu_device(threads, isa, &r->dev));
    return start_on(r, k, opt, with_grad);
}

static int start_on(runner *r, const op_case *k, int opt, bool with_grad)
{
    LW_TRY(lw_graph_new(&r->g));
    r->c.g = r->g;
    lw_val y = k->build(&r->c);
    LW_TRY(lw_graph_error(r->g));
    lw_graph_output_add(r->g, "y", y, LW_NOVAL);
    if (with_grad) {
        lw_type t = lw_val_type(r->g, y);
        float *seed = lw_calloc((size_t)lw_type_count(t), sizeof *seed);
        for (int64_t e = 0; e < lw_type_count(t); e++)
            seed[e] = direction(99, e);
        lw_val dy = lw_const(r->g, t, seed), wrt[12], din[12];
        lw_free(&seed);
        for (int i = 0; i < r->c.n_in; i++)
            wrt[i] = r->c.in[i].val;
        lw_grad(r->g, &y, &dy, 1, wrt, din, r->c.n_in);
        LW_TRY(lw_graph_error(r->g));
        for (int i = 0; i < r->c.n_in; i++) {
            char name[16];
            snprintf(name, sizeof name, "d%d", i);
            if (r->c.in[i].grad)
                lw_graph_output_add(r->g, name, din[i], LW_NOVAL);
        }
    }
    mark_seen(r->g);
    LW_TRY(lw_compile(r->g, r->dev, &(lw_compile_opts){.opt = opt}, &r->plan));
    LW_TRY(lw_exec_new(r->plan, LW_SLAB_PARAM, &r->exec));
    for (int i = 0; i < r->c.n_in; i++)
        fill_input(r, i);
    return lw_exec_run(r->exec, &(lw_tick){5, 3});
}

static void stop(runner *r)
{
    lw_exec_free(&r->exec);
    lw_plan_free(&r->plan);
    lw_graph_free(&r->g);
    lw_backend_close(&r->dev);
}

/* The greatest difference, in tolerances' terms. */
static double difference(runner *a, runner *b, const char *name)
{
    lw_type t = lw_exec_type(a->exec, name);
    const float *x = lw_exec_read(a->exec, name), *y = lw_exec_read(b->exec, name);
    double worst = 0;
    for (int64_t e = 0; e < lw_type_count(t); e++) {
        double err = fabs((double)x[e] - (double)y[e]) / (1.0 + fabs((double)x[e]));
        if (!(err <= worst))
            worst = isnan(err) ? (double)INFINITY : err;
    }
    return worst;
}

static int compare(const op_case *k, runner *a, runner *b, const char *name, const char *what)
{
    double worst = difference(a, b, name);
    if (worst <= k->tol)
        return 0;
    printf("%s: %s of %s differs from the oracle by %.3g (tolerance %.3g)\n", k->name, name, what,
           worst, k->tol);
    return 1;
}

/* <dy, y> in double for the current inputs. */
static double project(runner *r)
{
    lw_exec_run(r->exec, &(lw_tick){5, 3});
    lw_type t = lw_exec_type(r->exec, "y");
    const float *y = lw_exec_read(r->exec, "y");
    double s = 0;
    for (int64_t e = 0; e < lw_type_count(t); e++)
        s += (double)direction(99, e) * (double)y[e];
    return s;
}

/* (f(x + h v) - f(x - h v)) / 2h along input i's direction v. */
static double central_difference(runner *r, int i, float h)
{
    int64_t n = lw_type_count(lw_exec_type(r->exec, r->c.in[i].name));
    float *x = lw_exec_write(r->exec, r->c.in[i].name);
    double side[2];
    for (int k = 0; k < 2; k++) {
        fill_input(r, i);
        for (int64_t e = 0; e < n; e++)
            x[e] += (k ? -h : h) * direction(i, e);
        side[k] = project(r);
    }
    return (side[0] - side[1]) / (2.0 * (double)h);
}

static int check_gradient(const op_case *k, runner *r, int i)
{
    char name[16];
    snprintf(name, sizeof name, "d%d", i);
    lw_type t = lw_exec_type(r->exec, r->c.in[i].name);
    const float *d = lw_exec_read(r->exec, name);
    double analytic = 0, scale = 0;
    project(r); /* the gradient at the unperturbed point */
    for (int64_t e = 0; e < lw_type_count(t); e++) {
        analytic += (double)d[e] * (double)direction(i, e);
        scale += fabs((double)d[e]);
    }
    /* Richardson: the h^2 term cancels, so h can be large enough to drown f32 rounding. */
    const float h = (k->kinks ? 1e-3f : 4e-2f) *
                    fmaxf(1e-3f, (r->c.in[i].hi - r->c.in[i].lo) * 0.5f);
    double near = central_difference(r, i, h), far = central_difference(r, i, 2.0f * h);
    double numeric = (4.0 * near - far) / 3.0;
    fill_input(r, i);
    double err = fabs(numeric - analytic) / (1e-6 + scale / sqrt((double)lw_type_count(t)));
    if (err <= k->grad_tol)
        return 0;
    printf("%s: gradient of input %d: analytic %.6g, central difference %.6g (error %.3g)\n",
           k->name, i, analytic, numeric, err);
    return 1;
}

static int fail(const op_case *k, const char *what)
{
    printf("%s: %s: %s\n", k->name, what, lw_errmsg());
    return 1;
}

int op_check(const op_case *k)
{
    bool grad = k->grad_tol > 0;
    runner ref, fast;
    int bad = 0;
    if (start(&ref, k, 0, LW_ISA_REF, 1, grad) < 0) {
        bad = fail(k, "oracle");
        stop(&ref);
        return bad;
    }
    for (lw_isa isa = LW_ISA_REF; isa < LW_ISA_COUNT; isa = lw_isa_next(isa)) {
        for (int threads = 1; threads <= 3; threads += 2) {
            if (start(&fast, k, 1, isa, threads, grad) < 0) {
                bad += fail(k, lw_isa_name(isa));
            } else {
                bad += compare(k, &ref, &fast, "y", lw_isa_name(isa));
                for (int i = 0; grad && i < ref.c.n_in; i++) {
                    char name[16];
                    snprintf(name, sizeof name, "d%d", i);
                    if (ref.c.in[i].grad)
                        bad += compare(k, &ref, &fast, name, lw_isa_name(isa));
                }
            }
            stop(&fast);
        }
    }
    for (int i = 0; grad && i < ref.c.n_in; i++)
        if (ref.c.in[i].grad)
            bad += check_gradient(k, &ref, i);
    stop(&ref);
    return bad;
}

/* The first run, and two more: a device may record them. */
static int compare_runs(const op_case *k, runner *ref, runner *other, op_result *r)
{
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            LW_TRY(lw_exec_run(other->exec, &(lw_tick){5, 3}));
        r->worst = fmax(r->worst, difference(ref, other, "y"));
    }
    r->compared = lw_type_count(lw_exec_type(ref->exec, "y"));
    return r->worst <= k->tol;
}

int op_check_on(const op_case *k, lw_device *dev, op_result *r)
{
    runner ref, other;
    *r = (op_result){.compared = 0};
    int rc = start(&ref, k, 0, LW_ISA_REF, 1, false), ok = 1;
    for (int opt = 0; opt <= 1 && rc >= 0 && ok; opt++) {
        other = (runner){.dev = dev};
        rc = start_on(&other, k, opt, false);
        r->absent = rc == LW_EDEVICE && !other.exec && !dev->failed;
        if (rc >= 0)
            rc = ok = compare_runs(k, &ref, &other, r);
        other.dev = NULL; /* the caller's */
        stop(&other);
    }
    stop(&ref);
    return rc < 0 ? rc : ok;
}
