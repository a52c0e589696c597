/* SPDX-License-Identifier: Apache-2.0 */
/* Timing one case. */
#include <math.h>

#include "bench/bench_case.h"

enum { LEAST_SAMPLES = 3, BASE_SAMPLES = 5 };

/* A sample is at least this long: short work is repeated inside it. */
static const double least_seconds = 2e-3;

int lw_bench_add_sample(lw_bench_case *c, double ms)
{
    size_t cap = (size_t)c->cap;
    LW_TRY(lw_grow(&c->ms, &cap, (size_t)c->n + 1, sizeof *c->ms));
    c->cap = (int32_t)cap;
    c->ms[c->n++] = ms;
    return 0;
}

/* Warms up and says how often a sample repeats the work. One run is enough of work that
 * takes long. */
static int warm_up(const lw_bench_run *r, const lw_bench_work *w, int *repeat)
{
    const lw_bench_config *c = r->config;
    double began = lw_now(), last = 0;
    int least = lw_device_warm_runs(r->dev, true);
    if (least == 1 && c->seconds > 0 && w->warm > fmax(c->seconds / 5, least_seconds))
        return 0;
    for (int i = 0; i < LW_MAX(c->warm_up, least); i++) {
        LW_TRY(lw_device_time(r->dev, 1, w->call, w->self, &last));
        if (lw_observe_stop(r->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
        bool again = i + 1 < least || (i == 0 && last < c->seconds);
        if (c->seconds > 0 && !again && lw_now() - began > c->seconds / 5)
            break;
    }
    *repeat = last < least_seconds ? (int)ceil(least_seconds / fmax(last, 1e-7)) : 1;
    return 0;
}

static bool enough(const lw_bench_config *c, int32_t n, double spent)
{
    return n >= c->samples ||
           (c->seconds > 0 && spent >= c->seconds && n >= LW_MIN(LEAST_SAMPLES, c->samples));
}

static int take_samples(lw_bench_run *r, const lw_bench_work *w, lw_bench_case *c, int repeat)
{
    char note[96];
    double cpu = lw_process_seconds();
    for (double began = lw_now(); !enough(r->config, c->n, lw_now() - began);) {
        double t;
        LW_TRY(lw_device_time(r->dev, repeat, w->call, w->self, &t));
        LW_TRY(lw_bench_add_sample(c, 1e3 * t / repeat));
        snprintf(note, sizeof note, "%s.%s %d/%d", c->suite, c->name, (int)c->n,
                 (int)r->config->samples);
        lw_observe_progress(r->obs, "bench", r->out->n - 1, r->total, note);
        if (lw_observe_stop(r->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
    }
    c->cpu_ms = 1e3 * (lw_process_seconds() - cpu) / c->n / repeat;
    return 0;
}

void lw_bench_set_share(const lw_bench_run *r, lw_num num, lw_bench_case *c)
{
    if (r->dev->mark) /* the peaks are the host's */
        return;
    lw_summary s = lw_summarize(c->ms, c->n);
    double arithmetic = 1e-6 * c->flops / lw_machine_rate(&r->peak, num),
           memory = 1e-6 * c->bytes / lw_machine_read_gb(&r->peak, c->memory);
    c->memory_bound = memory > arithmetic;
    if (c->flops > 0 || c->bytes > 0)
        c->peak_share = fmax(arithmetic, memory) / s.p50;
}

int lw_bench_measure(lw_bench_run *r, const lw_bench_work *w, lw_bench_case **out)
{
    lw_bench_case *c;
    int repeat = 1;
    LW_TRY(lw_bench_new_case(r, w->name, w->method, w->batch, &c));
    c->flops = w->flops;
    c->bytes = w->bytes;
    c->memory = w->memory;
    c->error = w->error;
    snprintf(c->against, sizeof c->against, "%s", w->against ? w->against : "");
    LW_TRY(warm_up(r, w, &repeat));
    LW_TRY(take_samples(r, w, c, repeat));
    lw_bench_set_share(r, w->num, c);
    if (out)
        *out = c;
    return r->config->profile && w->exec ? lw_bench_profile(c, w) : 0;
}

int lw_bench_measure_base(lw_bench_run *r, lw_bench_case *c, const char *base,
                          int (*call)(void *self), void *self)
{
    double ms[BASE_SAMPLES];
    int n = LW_MIN(BASE_SAMPLES, r->config->samples);
    if (n > 1)
        LW_TRY(call(self));
    for (int i = 0; i < n; i++) {
        double t;
        LW_TRY(lw_device_time(r->dev, 1, call, self, &t));
        ms[i] = 1e3 * t;
        if (lw_observe_stop(r->obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
    }
    c->base_ms = lw_summarize(ms, n).p50;
    snprintf(c->base, sizeof c->base, "%s", base);
    return 0;
}
