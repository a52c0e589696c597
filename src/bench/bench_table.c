/* SPDX-License-Identifier: Apache-2.0 */
/* Benches and comparisons as tables. */
#include <math.h>

#include "base/base.h"
#include "bench/bench_targets.h"
#include "report/report.h"

static void error_cell(lw_table *t, double error)
{
    if (isfinite(error))
        lw_table_cell(t, "%.1e", error);
    else
        lw_table_cell(t, isnan(error) ? "-" : "inf");
}

/* ---- one suite ------------------------------------------------------------------------------- */

static bool any_base(const lw_bench *b, const char *suite)
{
    bool any = false;
    for (int32_t i = 0; i < b->n; i++)
        any |= lw_str_eq(b->cases[i].suite, suite) && !isnan(b->cases[i].base_ms) &&
               b->cases[i].evaluations == 0;
    return any;
}

static void skipped_row(lw_table *t, const lw_bench_case *c, int cells)
{
    char memory[32];
    lw_table_cell(t, "%s", c->name);
    for (int i = 0; i < cells; i++)
        lw_table_cell(t, "-");
    lw_table_cell(t, "%s", lw_fmt_bytes(memory, c->memory));
    lw_table_cell(t, "%s", c->skipped);
}

static void time_row(lw_table *t, const lw_bench_case *c)
{
    char memory[32];
    lw_summary s = lw_summarize(c->ms, c->n);
    lw_table_cell(t, "%s", c->name);
    lw_table_number(t, s.mean, 4);
    lw_table_number(t, s.p50, 4);
    lw_table_number(t, s.p95, 4);
    lw_table_number(t, s.p99, 4);
    lw_table_number(t, s.std, 2);
    lw_table_cell(t, "%d", (int)c->n);
    lw_table_number(t, c->cpu_ms > 0 ? c->cpu_ms : (double)NAN, 4);
    lw_table_number(t, c->batch > 0 ? s.mean / c->batch : (double)NAN, 4);
    lw_table_number(t, c->batch > 0 ? 1e3 * c->batch / s.mean : (double)NAN, 4);
    if (c->flops > 0)
        lw_table_cell(t, "%.1f", 1e-6 * c->flops / s.p50);
    else
        lw_table_cell(t, "-");
    lw_table_percent(t, c->peak_share, 0);
    lw_table_cell(t, !isfinite(c->peak_share) ? "-" : c->memory_bound ? "memory" : "arithmetic");
    error_cell(t, c->error);
    lw_table_cell(t, "%s", lw_fmt_bytes(memory, c->memory));
    lw_table_cell(t, "%s", c->against[0] ? c->against : "-");
}

static int suite_table(const lw_bench *b, const char *suite, lw_str *out)
{
    static const char *const names[] = {"case",    "mean ms", "p50",    "p95",      "p99",
                                        "std",     "n",       "CPU ms", "ms/image", "images/s",
                                        "GFLOP/s", "of peak", "bound",  "error",    "memory",
                                        "against", NULL};
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    lw_table_columns(&t, names, 1);
    for (int32_t i = 0; i < b->n; i++) {
        const lw_bench_case *c = &b->cases[i];
        if (!lw_str_eq(c->suite, suite))
            continue;
        if (c->n > 0)
            time_row(&t, c);
        else
            skipped_row(&t, c, 13);
    }
    lw_str_addf(out, "\n%s\n", suite);
    lw_table_text(&t, out);
    return lw_table_ok(&t);
}

/* Two ways to the same result, beside each other. */
static int base_table(const lw_bench *b, const char *suite, lw_str *out)
{
    static const char *const names[] = {
        "case", "ms", "against", "its ms", "speed-up", "max abs difference", NULL};
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    lw_table_columns(&t, names, 1);
    for (int32_t i = 0; i < b->n; i++) {
        const lw_bench_case *c = &b->cases[i];
        if (!lw_str_eq(c->suite, suite) || isnan(c->base_ms) || c->evaluations > 0)
            continue;
        double ms = lw_summarize(c->ms, c->n).p50;
        lw_table_cell(&t, "%s", c->name);
        lw_table_number(&t, ms, 4);
        lw_table_cell(&t, "%s", c->base);
        lw_table_number(&t, c->base_ms, 4);
        lw_table_cell(&t, "%.2fx", c->base_ms / ms);
        if (isnan(c->difference)) /* what it computes has no numbers */
            lw_table_cell(&t, "-");
        else
            lw_table_cell(&t, "%.2e", c->difference);
    }
    lw_str_add(out, "\n");
    lw_table_text(&t, out);
    return lw_table_ok(&t);
}

static bool any_evaluations(const lw_bench *b, const char *suite)
{
    bool any = false;
    for (int32_t i = 0; i < b->n; i++)
        any |= lw_str_eq(b->cases[i].suite, suite) && b->cases[i].evaluations > 0;
    return any;
}

static void ratio_cells(lw_table *t, double ratio, int32_t evaluations)
{
    lw_table_number(t, ratio, 4);
    if (isfinite(ratio))
        lw_table_cell(t, "%+.1f %%", 100 * (ratio / evaluations - 1));
    else
        lw_table_cell(t, "-");
}

/* Samplers: is it the number of evaluations that a picture costs, and nothing else? */
static int evaluations_table(const lw_bench *b, const char *suite, lw_str *out)
{
    static const char *const names[] = {"case",          "evaluations", "ms",    "ms/evaluation",
                                        "ms outside it", "against",     "ratio", "off",
                                        "CPU ratio",     "off",         NULL};
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    lw_table_columns(&t, names, 1);
    for (int32_t i = 0; i < b->n; i++) {
        const lw_bench_case *c = &b->cases[i];
        if (!lw_str_eq(c->suite, suite) || c->evaluations == 0)
            continue;
        double ms = lw_summarize(c->ms, c->n).p50;
        lw_table_cell(&t, "%s", c->name);
        lw_table_cell(&t, "%d", (int)c->evaluations);
        lw_table_number(&t, ms, 4);
        lw_table_number(&t, ms / c->evaluations, 4);
        lw_table_number(&t, c->outside_ms / c->evaluations, 2);
        lw_table_cell(&t, "%s", c->base[0] ? c->base : "-");
        ratio_cells(&t, ms / c->base_ms, c->evaluations);
        ratio_cells(&t, c->cpu_ms / c->base_cpu_ms, c->evaluations);
    }
    lw_str_add(out, "\n");
    lw_table_text(&t, out);
    return lw_table_ok(&t);
}

/* Where the time of each profiled case goes. */
static int profile_tables(const lw_bench *b, const char *suite, lw_str *out)
{
    static const char *const names[] = {"op", "steps", "ms", "share", "GFLOP/s", "GB/s", NULL};
    for (int32_t i = 0; i < b->n; i++) {
        const lw_bench_case *c = &b->cases[i];
        double total = 0;
        if (!lw_str_eq(c->suite, suite) || c->n_part == 0)
            continue;
        LW_CLEANUP(lw_table_clear) lw_table t = {0};
        lw_table_columns(&t, names, 1);
        for (int32_t k = 0; k < c->n_part; k++)
            total += c->part[k].ms;
        for (int32_t k = 0; k < c->n_part; k++) {
            const lw_bench_part *p = &c->part[k];
            if (p->ms < 1e-5 * total)
                continue; /* did not run: prepared once */
            lw_table_cell(&t, "%s", p->what);
            lw_table_cell(&t, "%d", (int)p->steps);
            lw_table_number(&t, p->ms, 4);
            lw_table_percent(&t, p->ms / total, 1);
            lw_table_cell(&t, "%.1f", 1e-6 * p->flops / p->ms);
            lw_table_cell(&t, "%.1f", 1e-6 * p->bytes / p->ms);
        }
        lw_str_addf(out, "\n%s, where the time goes\n", c->name);
        lw_table_text(&t, out);
        LW_TRY(lw_table_ok(&t));
    }
    return 0;
}

static void head_line(const lw_bench *b, lw_str *out)
{
    const char *cpu = "", *isa = "", *commit = "";
    int64_t threads = 0;
    const json_t *peak = json_object_get(
        json_object_get(json_object_get(json_object_get(b->machine, "peak"), "gflops"), "f32"),
        "all_threads");
    if (lw_json_opt_str(b->machine, "machine", "cpu", &cpu) < 0 ||
        lw_json_opt_str(b->machine, "machine", "isa", &isa) < 0 ||
        lw_json_opt_str(b->machine, "machine", "commit", &commit) < 0 ||
        lw_json_opt_i64(b->machine, "machine", "threads", &threads) < 0)
        lw_errclear(); /* a file of someone else's making: say what there is */
    lw_str_addf(out, "%s, %d threads, %s, commit %s; ", cpu, (int)threads, isa, commit);
    if (peak)
        lw_str_addf(out, "measured peak %.0f GFLOP/s f32\n", json_number_value(peak));
    else
        lw_str_addf(out, "computed on %s\n", lw_bench_device(b));
}

int lw_bench_text(const lw_bench *b, lw_str *out)
{
    const char *suite = "";
    head_line(b, out);
    for (int32_t i = 0; i < b->n; i++) {
        if (lw_str_eq(b->cases[i].suite, suite))
            continue;
        suite = b->cases[i].suite;
        LW_TRY(suite_table(b, suite, out));
        if (any_base(b, suite))
            LW_TRY(base_table(b, suite, out));
        if (any_evaluations(b, suite))
            LW_TRY(evaluations_table(b, suite, out));
        if (lw_str_eq(suite, "stream"))
            LW_TRY(lw_bench_targets_text(b, out));
        LW_TRY(profile_tables(b, suite, out));
    }
    return out->failed ? lw_fail(LW_ENOMEM, "no memory for the table") : 0;
}

/* ---- two benches ----------------------------------------------------------------------------- */

int lw_bench_changes_text(const lw_bench_change *c, int32_t n, lw_str *out)
{
    static const char *const names[] = {"case",   "base ms", "new ms",  "base min", "new min",
                                        "change", "3 MAD",   "verdict", NULL};
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    lw_table_columns(&t, names, 1);
    for (int32_t i = 0; i < n; i++) {
        bool both = c[i].base.n > 0 && c[i].now.n > 0;
        lw_table_cell(&t, "%s%s%s", c[i].suite, c[i].suite[0] ? "." : "", c[i].name);
        lw_table_number(&t, c[i].base.p50, 4);
        lw_table_number(&t, c[i].now.p50, 4);
        lw_table_number(&t, c[i].base.min, 4);
        lw_table_number(&t, c[i].now.min, 4);
        if (both)
            lw_table_cell(&t, "%+.1f %%", 100 * (c[i].now.p50 / c[i].base.p50 - 1));
        else
            lw_table_cell(&t, "-");
        lw_table_number(&t, both ? 3 * fmax(c[i].base.mad, c[i].now.mad) : (double)NAN, 2);
        lw_table_cell(&t, "%s", lw_bench_verdict_name(c[i].verdict));
    }
    lw_table_text(&t, out);
    return lw_table_ok(&t);
}

/* ---- CSV ------------------------------------------------------------------------------------- */

int lw_bench_csv(const lw_bench *b, lw_str *out)
{
    static const char *const names[] = {
        "method",          "batch_size",   "mean_ms", "p50_ms",
        "p95_ms",          "p99_ms",       "std_ms",  "per_image_ms",
        "throughput_imgs", "suite",        "case",    "n",
        "min_ms",          "cpu_ms",       "gflops",  "peak_share",
        "error",           "memory_bytes", "base_ms", "max_abs_difference",
        "skipped",         "device",       NULL};
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    lw_table_columns(&t, names, 1);
    for (int32_t i = 0; i < b->n; i++) {
        const lw_bench_case *c = &b->cases[i];
        lw_summary s = lw_summarize(c->ms, c->n);
        double images = c->batch > 0 ? c->batch : (double)NAN;
        lw_table_cell(&t, "%s", c->method);
        lw_table_cell(&t, "%d", (int)c->batch);
        const double times[] = {
            s.mean, s.p50, s.p95, s.p99, s.std, s.mean / images, 1e3 * images / s.mean};
        for (size_t k = 0; k < LW_COUNT(times); k++)
            lw_table_plain(&t, times[k], 6);
        lw_table_cell(&t, "%s", c->suite);
        lw_table_cell(&t, "%s", c->name);
        lw_table_cell(&t, "%d", (int)c->n);
        const double merits[] = {s.min, c->cpu_ms, 1e-6 * c->flops / s.p50, c->peak_share,
                                 c->error};
        for (size_t k = 0; k < LW_COUNT(merits); k++)
            lw_table_plain(&t, merits[k], 6);
        lw_table_cell(&t, "%zu", c->memory);
        lw_table_plain(&t, c->base_ms, 6);
        lw_table_plain(&t, c->difference, 6);
        lw_table_cell(&t, "%s", c->skipped);
        lw_table_cell(&t, "%s", lw_bench_device(b));
    }
    lw_table_csv(&t, out);
    return lw_table_ok(&t);
}
