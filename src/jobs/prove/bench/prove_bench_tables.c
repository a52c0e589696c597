/* SPDX-License-Identifier: Apache-2.0 */
/* A bench of walks as tables, text, CSV and JSON. */
#include <math.h>

#include "base/base.h"
#include "jobs/prove/bench/prove_bench_job.h"
#include "report/report.h"

/* The parts of a run: C(field of lw_walks_counts, name). */
#define PARTS(C)                    \
    C(engine_seconds, "successors") \
    C(lookup_seconds, "look-up")    \
    C(network_seconds, "network")   \
    C(choice_seconds, "choosing")

static double hit_share(const lw_walks_counts *n)
{
    return n->states_wanted > 0 ? (double)n->cache_hits / (double)n->states_wanted : (double)NAN;
}

static double gflops(const lw_prove_bench_case *k)
{
    return k->flops > 0 ? 1e-6 * k->flops / k->run.p50 : (double)NAN;
}

/* ---- tables ---------------------------------------------------------------------------------- */

int lw_prove_bench_times(const lw_prove_bench *b, lw_table *t)
{
    static const char *const names[] = {"Mode",         "Compile(s)", "Runtime(s)", "ms/query",
                                        "ms/candidate", "Total(s)",   NULL};
    lw_table_columns(t, names, 1);
    for (int32_t i = 0; i < b->n_cases; i++) {
        const lw_prove_bench_case *k = &b->cases[i];
        lw_table_cell(t, "%s", k->name);
        lw_table_cell(t, "%.3f", 1e-3 * k->set_up.p50);
        lw_table_cell(t, "%.3f", 1e-3 * k->run.p50);
        lw_table_cell(t, "%.3f", k->run.p50 / b->queries);
        lw_table_cell(t, "%.4f", k->run.p50 / (double)b->candidates);
        lw_table_cell(t, "%.3f", 1e-3 * (k->set_up.p50 + k->run.p50));
    }
    return lw_table_ok(t);
}

int lw_prove_bench_cases(const lw_prove_bench *b, lw_table *t)
{
    static const char *const names[] = {
        "case",     "ms",       "min",  "std",         "n",       "CPU ms",  "choices",
        "states/s", "computed", "kept", "rows filled", "GFLOP/s", "of peak", "network of peak",
        "memory",   NULL};
    lw_table_columns(t, names, 1);
    for (int32_t i = 0; i < b->n_cases; i++) {
        const lw_prove_bench_case *k = &b->cases[i];
        char memory[32];
        lw_table_cell(t, "%s", k->name);
        lw_table_number(t, k->run.p50, 4);
        lw_table_number(t, k->run.min, 4);
        lw_table_number(t, k->run.std, 2);
        lw_table_cell(t, "%d", (int)k->run.n);
        lw_table_number(t, k->cpu_ms, 4);
        lw_table_cell(t, "%lld", (long long)k->counts.query_steps);
        lw_table_cell(t, "%.3g", 1e3 * (double)k->counts.states_offered / k->run.p50);
        lw_table_cell(t, "%lld", (long long)k->counts.states_scored);
        lw_table_percent(t, hit_share(&k->counts), 1);
        lw_table_percent(t, k->fill, 1);
        lw_table_number(t, gflops(k), 4);
        lw_table_percent(t, k->share, 1);
        lw_table_percent(t, k->network_share, 1);
        lw_table_cell(t, "%s", lw_fmt_bytes(memory, k->bytes));
    }
    return lw_table_ok(t);
}

int lw_prove_bench_parts(const lw_prove_bench *b, lw_table *t)
{
    lw_table_column(t, "case", LW_LEFT);
#define C(field, name) lw_table_column(t, name, LW_RIGHT);
    PARTS(C)
#undef C
    lw_table_column(t, "rest", LW_RIGHT);
    for (int32_t i = 0; i < b->n_cases; i++) {
        const lw_prove_bench_case *k = &b->cases[i];
        double sum = 0, all = 1e-3 * k->counts_ms;
        lw_table_cell(t, "%s", k->name);
#define C(field, name)                             \
    lw_table_percent(t, k->counts.field / all, 1); \
    sum += k->counts.field;
        PARTS(C)
#undef C
        lw_table_percent(t, fmax(1 - sum / all, 0), 1);
    }
    return lw_table_ok(t);
}

int lw_prove_bench_steps(const lw_prove_bench *b, lw_table *t)
{
    static const char *const names[] = {
        "step", "done before it", "ms", "all so far: fastest", "median", "std", NULL};
    lw_table_columns(t, names, 1);
    for (int32_t i = 0; i < b->n_steps; i++) {
        const lw_prove_bench_step *s = &b->steps[i];
        lw_table_cell(t, "%d", (int)i);
        lw_table_cell(t, "%.0f/%d", s->done * b->step_batch, (int)b->step_batch);
        lw_table_cell(t, "%.2f", s->ms);
        lw_table_cell(t, "%.2f", s->all.min);
        lw_table_cell(t, "%.2f", s->all.p50);
        lw_table_number(t, s->all.std, 2);
    }
    return lw_table_ok(t);
}

/* ---- text ------------------------------------------------------------------------------------ */

void lw_prove_bench_remarks(const lw_prove_bench *b, lw_str *out)
{
    const lw_walks_counts *n = &b->cases[1].counts;
    double padded = b->padded_steps * b->padded_states;
    double real = (double)n->states_offered + (double)n->query_steps;
    lw_str_addf(out,
                "%lld choices, %.2f a candidate, among %.1f successors each; %lld of %lld "
                "candidates proved. ",
                (long long)b->query_steps, (double)b->query_steps / (double)b->candidates,
                (double)n->states_offered / (double)LW_MAX(n->query_steps, 1), (long long)b->proved,
                (long long)b->candidates);
    lw_str_addf(out,
                "Batches of %d that end together, padded to %d states, would compute %.3g states: "
                "%.1f times those there are, %.1f times those computed here. ",
                (int)b->cases[1].batch, (int)b->padded_states, padded, padded / real,
                padded / (double)LW_MAX(n->states_scored, 1));
    lw_str_add(out, "All f32 cases gave equal results, bit for bit. ");
    const lw_walks_counts *two = &b->cases[b->n_cases - 1].counts;
    lw_str_addf(
        out,
        "Ranking in two stages gave the ranks of f32, with %lld rows of bf16 and %lld of f32 "
        "instead of %lld.",
        (long long)two->first_scored, (long long)(two->states_scored - two->first_scored),
        (long long)b->cases[b->n_cases - 2].counts.states_scored);
}

static int add_table(int (*make)(const lw_prove_bench *b, lw_table *t), const lw_prove_bench *b,
                     const char *title, lw_str *out)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    LW_TRY(make(b, &t));
    lw_str_addf(out, "\n%s\n", title);
    lw_table_text(&t, out);
    return 0;
}

int lw_prove_bench_text(const lw_prove_bench_context *c, const lw_prove_bench *b, lw_str *out)
{
    lw_str_addf(out, "%s by %s: %d queries, %lld candidates; %s, %d thread%s\n", c->dataset,
                c->policy, (int)b->queries, (long long)b->candidates, lw_machine_name(), b->threads,
                b->threads == 1 ? "" : "s");
    LW_TRY(add_table(lw_prove_bench_times, b, "Times", out));
    LW_TRY(add_table(lw_prove_bench_cases, b, "Cases", out));
    LW_TRY(add_table(lw_prove_bench_parts, b, "Where the time goes", out));
    if (b->n_steps > 0)
        LW_TRY(add_table(lw_prove_bench_steps, b, "Steps of one batch that is not refilled", out));
    lw_str_add(out, "\n");
    lw_prove_bench_remarks(b, out);
    lw_str_add(out, "\n");
    return out->failed ? LW_ENOMEM : 0;
}

/* ---- CSV ------------------------------------------------------------------------------------- */

int lw_prove_bench_csv(const lw_prove_bench *b, lw_str *out)
{
    static const char *const names[] = {"method",           "batch_size",
                                        "samples",          "mean_ms",
                                        "p50_ms",           "min_ms",
                                        "std_ms",           "cpu_ms",
                                        "set_up_ms",        "ms_per_query",
                                        "ms_per_candidate", "query_steps",
                                        "states_offered",   "states_wanted",
                                        "cache_hits",       "states_scored",
                                        "engine_seconds",   "lookup_seconds",
                                        "network_seconds",

                                        "choice_seconds",   "gflops",
                                        "peak_share",       "network_peak_share",
                                        "memory_bytes",     NULL};
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    lw_table_columns(&t, names, 1);
    for (int32_t i = 0; i < b->n_cases; i++) {
        const lw_prove_bench_case *k = &b->cases[i];
        const lw_walks_counts *n = &k->counts;
        const double v[] = {k->run.n,
                            k->run.mean,
                            k->run.p50,
                            k->run.min,
                            k->run.std,
                            k->cpu_ms,
                            k->set_up.p50,
                            k->run.p50 / b->queries,
                            k->run.p50 / (double)b->candidates,
                            (double)n->query_steps,
                            (double)n->states_offered,
                            (double)n->states_wanted,
                            (double)n->cache_hits,
                            (double)n->states_scored,
                            n->engine_seconds,
                            n->lookup_seconds,
                            n->network_seconds,
                            n->choice_seconds,
                            gflops(k),
                            k->share,
                            k->network_share,
                            (double)k->bytes};
        lw_table_cell(&t, "%s", k->method);
        lw_table_cell(&t, "%d", (int)k->batch);
        for (size_t j = 0; j < LW_COUNT(v); j++)
            lw_table_plain(&t, v[j], 9);
    }
    lw_table_csv(&t, out);
    return lw_table_ok(&t);
}

int lw_prove_bench_steps_csv(const lw_prove_bench *b, lw_str *out)
{
    static const char *const names[] = {"step",       "done_share", "ms",
                                        "all_min_ms", "all_p50_ms", NULL};
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    lw_table_columns(&t, names, 1);
    for (int32_t i = 0; i < b->n_steps; i++) {
        const lw_prove_bench_step *s = &b->steps[i];
        lw_table_cell(&t, "%d", (int)i);
        lw_table_plain(&t, s->done, 9);
        lw_table_plain(&t, s->ms, 9);
        lw_table_plain(&t, s->all.min, 9);
        lw_table_plain(&t, s->all.p50, 9);
    }
    lw_table_csv(&t, out);
    return lw_table_ok(&t);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *case_json(const lw_prove_bench *b, const lw_prove_bench_case *k)
{
    json_t *j = json_pack("{s:s, s:s, s:i, s:i}", "name", k->name, "method", k->method,
                          "batch_size", k->batch, "samples", k->run.n);
    json_object_set_new(j, "p50_ms", lw_json_real(k->run.p50));
    json_object_set_new(j, "min_ms", lw_json_real(k->run.min));
    json_object_set_new(j, "mean_ms", lw_json_real(k->run.mean));
    json_object_set_new(j, "std_ms", lw_json_real(k->run.std));
    json_object_set_new(j, "cpu_ms", lw_json_real(k->cpu_ms));
    json_object_set_new(j, "set_up_ms", lw_json_real(k->set_up.p50));
    json_object_set_new(j, "ms_per_query", lw_json_real(k->run.p50 / b->queries));
    json_object_set_new(j, "ms_per_candidate", lw_json_real(k->run.p50 / (double)b->candidates));
#define C(field, what) json_object_set_new(j, #field, json_integer((json_int_t)k->counts.field));
    LW_WALKS_COUNTS(C)
#undef C
#define C(field, name) json_object_set_new(j, #field, lw_json_real(k->counts.field));
    PARTS(C)
#undef C
    json_object_set_new(j, "gflops", lw_json_real(gflops(k)));
    json_object_set_new(j, "rows_filled", lw_json_real(k->fill));
    json_object_set_new(j, "peak_share", lw_json_real(k->share));
    json_object_set_new(j, "network_peak_share", lw_json_real(k->network_share));
    json_object_set_new(j, "memory_bytes", json_integer((json_int_t)k->bytes));
    return j;
}

static json_t *steps_json(const lw_prove_bench *b)
{
    json_t *a = json_array();
    for (int32_t i = 0; i < b->n_steps; i++) {
        const lw_prove_bench_step *s = &b->steps[i];
        json_array_append_new(a, json_pack("{s:i, s:o, s:o, s:o, s:o}", "step", i, "done_share",
                                           lw_json_real(s->done), "ms", lw_json_real(s->ms),
                                           "all_min_ms", lw_json_real(s->all.min), "all_p50_ms",
                                           lw_json_real(s->all.p50)));
    }
    return a;
}

json_t *lw_prove_bench_json(const lw_prove_bench_context *c, const lw_prove_bench *b)
{
    json_t *j = json_pack("{s:o, s:o, s:i, s:I, s:I, s:I}", "dataset", lw_json_name(c->dataset),
                          "policy", lw_json_name(c->policy), "queries", b->queries, "candidates",
                          (json_int_t)b->candidates, "query_steps", (json_int_t)b->query_steps,
                          "proved", (json_int_t)b->proved);
    json_t *cases = json_array(), *active = json_array();
    for (int32_t i = 0; i < b->n_cases; i++)
        json_array_append_new(cases, case_json(b, &b->cases[i]));
    for (int32_t i = 0; i < b->max_depth; i++)
        json_array_append_new(active, lw_json_real(b->active[i]));
    json_object_set_new(j, "padded_query_steps", lw_json_real(b->padded_steps));
    json_object_set_new(j, "padded_states", lw_json_real(b->padded_steps * b->padded_states));
    json_object_set_new(j, "cases", cases);
    json_object_set_new(j, "active", active);
    json_object_set_new(j, "step_batch", json_integer(b->step_batch));
    json_object_set_new(j, "steps", steps_json(b));
    json_object_set_new(j, "machine", json_incref(b->machine));
    json_object_set_new(j, "peak", lw_machine_peak_json(&b->peak));
    return j;
}
