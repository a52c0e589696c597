/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What live video asks of a frame: rates and latencies that mirage-hello names (the last two are those
 * of MirageLSD, now and next), the arithmetic a second that they need of a network, and what was
 * reached. A frame is a sample of the suite stream, whatever number of evaluations it has.
 */
#include <math.h>

#include "bench/bench_targets.h"
#include "report/report.h"

static const struct {
    double fps, ms;
} targets[] = {{35, 28}, {70, 14}, {100, 10}, {120, 8}, {25, 40}, {62.5, 16}};

/* On time at its p95: a late frame in twenty is seen. */
static bool met(const lw_summary *s, size_t i)
{
    return 1e3 / s->mean >= targets[i].fps && s->p95 <= targets[i].ms;
}

static bool is_frame(const lw_bench_case *c)
{
    return lw_str_eq(c->suite, "stream") && c->n > 0;
}

int lw_bench_targets_text(const lw_bench *b, lw_str *out)
{
    static const char *const names[] = {"case",        "target FPS", "within ms", "needs TFLOP/s",
                                        "reached FPS", "p50 ms",     "p95 ms",    "",
                                        NULL};
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    bool any = false;
    lw_table_columns(&t, names, 1);
    for (int32_t i = 0; i < b->n; i++) {
        const lw_bench_case *c = &b->cases[i];
        if (!is_frame(c))
            continue;
        lw_summary s = lw_summarize(c->ms, c->n);
        any = true;
        for (size_t k = 0; k < LW_COUNT(targets); k++) {
            lw_table_cell(&t, "%s", c->name);
            lw_table_number(&t, targets[k].fps, 4);
            lw_table_number(&t, targets[k].ms, 4);
            lw_table_number(&t, 1e-12 * c->flops * targets[k].fps, 3);
            lw_table_number(&t, 1e3 / s.mean, 4);
            lw_table_number(&t, s.p50, 4);
            lw_table_number(&t, s.p95, 4);
            lw_table_cell(&t, "%s", met(&s, k) ? "pass" : "fail");
        }
    }
    if (!any)
        return 0;
    lw_str_add(out, "\n");
    lw_table_text(&t, out);
    return lw_table_ok(&t);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *rows_json(const lw_bench_case *c, const lw_summary *s)
{
    json_t *rows = json_array();
    for (size_t k = 0; k < LW_COUNT(targets); k++)
        json_array_append_new(
            rows, json_pack("{s:f, s:f, s:f, s:b}", "fps", targets[k].fps, "ms", targets[k].ms,
                            "tflops", 1e-12 * c->flops * targets[k].fps, "pass", met(s, k)));
    return rows;
}

/* Seconds and megabytes, as mirage-hello's own files have them. */
void lw_bench_targets_json(const lw_bench_case *c, json_t *o)
{
    if (!is_frame(c))
        return;
    lw_summary s = lw_summarize(c->ms, c->n);
    double total = 0, longest = 0, ms = s.mean;
    for (int32_t i = 0; i < c->n; i++) {
        total += c->ms[i];
        longest = fmax(longest, c->ms[i]);
    }
    json_object_set_new(o, "model_config",
                        json_pack("{s:s, s:i, s:i}", "name", c->name, "batch_size", (int)c->batch,
                                  "resolution", (int)c->side));
    json_object_set_new(o, "model_stats",
                        json_pack("{s:I, s:f}", "parameters", (json_int_t)c->parameters,
                                  "model_size_mb", (double)c->parameters * 4 / (1 << 20)));
    json_object_set_new(o, "performance",
                        json_pack("{s:f, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total_duration",
                                  1e-3 * total, "frames_generated", (int)c->n, "avg_fps", 1e3 / ms,
                                  "avg_frame_time", 1e-3 * ms, "min_frame_time", 1e-3 * s.min,
                                  "max_frame_time", 1e-3 * longest, "frame_time_std",
                                  isfinite(s.std) ? 1e-3 * s.std : 0.0, "frame_time_p95",
                                  1e-3 * s.p95, "frame_time_p99", 1e-3 * s.p99));
    json_object_set_new(o, "targets",
                        json_pack("{s:i, s:i, s:f, s:f, s:f, s:o}", "mirage_current_ms", 40,
                                  "mirage_next_gen_ms", 16, "current_ms", ms, "vs_mirage_current",
                                  ms / 40, "vs_mirage_next_gen", ms / 16, "rows",
                                  rows_json(c, &s)));
}
