/* SPDX-License-Identifier: Apache-2.0 */
/* Timing of cases, and what is said about the samples. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "recipes/recipe_bench_case.h"
#include "recipes/recipe_device.h"

enum { WARM_UP = 2, MAX_SAMPLES = 100000 };

/* ---- samples --------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *v, int32_t n, double p)
{
    if (n == 0)
        return (double)NAN;
    double *s = malloc((size_t)n * sizeof *s);
    if (!s)
        return (double)NAN;
    memcpy(s, v, (size_t)n * sizeof *s);
    qsort(s, (size_t)n, sizeof *s, by_value);
    double at = p * (n - 1);
    int32_t i = LW_MIN((int32_t)at, n - 1), j = LW_MIN(i + 1, n - 1);
    double q = s[i] + (at - i) * (s[j] - s[i]);
    free(s);
    return q;
}

double lw_bench_quantile(const lw_bench_case *c, double p)
{
    return quantile(c->ms, c->n, p);
}

double lw_bench_mad(const lw_bench_case *c)
{
    double median = lw_bench_quantile(c, 0.5), mad = (double)NAN;
    double *d = malloc((size_t)LW_MAX(c->n, 1) * sizeof *d);
    if (d) {
        for (int32_t i = 0; i < c->n; i++)
            d[i] = fabs(c->ms[i] - median);
        mad = quantile(d, c->n, 0.5);
    }
    free(d);
    return mad;
}

static int add_sample(lw_bench_case *c, double ms)
{
    size_t cap = (size_t)c->cap;
    LW_TRY(lw_grow(&c->ms, &cap, (size_t)c->n + 1, sizeof *c->ms));
    c->cap = (int32_t)cap;
    c->ms[c->n++] = ms;
    return 0;
}

/* ---- measuring ------------------------------------------------------------------------------- */

bool lw_bench_wants(const lw_bench_run *r, const char *name)
{
    return !r->config->filter || strstr(name, r->config->filter);
}

static int new_case(lw_bench *b, const lw_bench_work *w, lw_bench_case **out)
{
    size_t cap = (size_t)b->n;
    LW_TRY(lw_grow(&b->cases, &cap, (size_t)b->n + 1, sizeof *b->cases));
    lw_bench_case *c = &b->cases[b->n];
    *c = (lw_bench_case){.flops = w->flops, .memory = w->memory};
    snprintf(c->name, sizeof c->name, "%s", w->name);
    b->n++;
    *out = c;
    return 0;
}

int lw_bench_measure(lw_bench_run *r, const lw_bench_work *w)
{
    lw_bench_case *c;
    LW_TRY(new_case(r->out, w, &c));
    for (int i = 0; i < WARM_UP; i++)
        LW_TRY(w->call(w->self));
    clock_t cpu = clock();
    for (double begin = lw_now(); c->n < MAX_SAMPLES;) {
        double t = lw_now();
        LW_TRY(w->call(w->self));
        LW_TRY(add_sample(c, 1e3 * (lw_now() - t)));
        double spent = lw_now() - begin, each = spent / c->n;
        int64_t total = LW_MAX((int64_t)r->config->min_samples,
                               (int64_t)ceil(r->config->seconds / each));
        lw_observe_progress(r->obs, w->name, c->n, LW_MAX(total, (int64_t)c->n), NULL);
        if (lw_observe_stop(r->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
        c->cpu_ms = 1e3 * (double)(clock() - cpu) / CLOCKS_PER_SEC / c->n;
        if (c->n >= r->config->min_samples && spent >= r->config->seconds)
            break;
    }
    return r->config->profile && w->exec ? lw_bench_profile(c, w) : 0;
}

static int run_suite(lw_bench_run *r)
{
    LW_TRY(r->config->suite == LW_BENCH_FIELD ? lw_bench_suite_field(r) : lw_bench_suite_unet(r));
    if (r->out->n == 0)
        return lw_fail(LW_EUSAGE, "--filter %s: no case of this suite has such a name",
                       r->config->filter);
    return 0;
}

int lw_recipe_bench(const lw_bench_config *config, const lw_observer *obs, lw_bench *out)
{
    lw_isa isa;
    LW_CLEANUP(lw_cpu_close) lw_device *dev = NULL;
    lw_bench b = {0};
    LW_TRY(lw_isa_chosen(&isa));
    LW_TRY(lw_recipe_device(config->threads, &dev));
    b.threads = dev->workers(dev->self);
    b.isa = lw_isa_name(isa);
    int rc = run_suite(&(lw_bench_run){.config = config, .obs = obs, .dev = dev, .out = &b});
    if (rc < 0)
        lw_bench_clear(&b);
    else
        *out = b;
    return rc;
}

void lw_bench_clear(lw_bench *b)
{
    for (int32_t i = 0; i < b->n; i++) {
        lw_free(&b->cases[i].ms);
        lw_free(&b->cases[i].part);
    }
    lw_free(&b->cases);
    b->n = 0;
}
