/* SPDX-License-Identifier: Apache-2.0 */
/* The page and the files of a bench of walks. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "jobs/prove/bench/prove_bench_job.h"
#include "report/report.h"

/* ---- plots ----------------------------------------------------------------------------------- */

/* Share of proofs that have ended before each step: all of them, and those of the timed batch. */
static int done_plot(const lw_prove_bench *b, lw_str *out)
{
    const size_t n = (size_t)b->max_depth;
    LW_CLEANUP(lw_free) double *y = lw_calloc(2 * n + 1, sizeof *y);
    if (!y)
        return LW_ENOMEM;
    for (size_t d = 0; d < n; d++)
        y[d] = 100 * (1 - b->active[d]);
    for (int32_t d = 0; d < b->n_steps; d++)
        y[n + (size_t)d] = 100 * b->steps[d].done;
    const lw_series s[] = {{.name = "all candidates", .y = y, .n = n},
                           {.name = "the timed batch", .y = y + n, .n = (size_t)b->n_steps}};
    lw_plot_lines(&(lw_plot){.title = "Proofs done before each step",
                             .x_label = "step",
                             .y_label = "% of proofs",
                             .from_zero = true},
                  s, b->n_steps > 0 ? 2 : 1, out);
    return out->failed ? LW_ENOMEM : 0;
}

static int step_plot(const lw_prove_bench *b, lw_str *out)
{
    const size_t n = (size_t)b->n_steps;
    LW_CLEANUP(lw_free) double *y = lw_calloc(2 * n + 1, sizeof *y);
    if (!y)
        return LW_ENOMEM;
    for (size_t d = 0; d < n; d++) {
        y[d] = b->steps[d].ms;
        y[n + d] = (1 - b->steps[d].done) * b->steps[0].ms;
    }
    const lw_series s[] = {
        {.name = "measured", .y = y, .n = n, .dots = true},
        {.name = "first step times proofs alive", .y = y + n, .n = n, .dashed = true}};
    lw_plot_lines(&(lw_plot){.title = "Time of each step of one batch",
                             .x_label = "step",
                             .y_label = "ms",
                             .from_zero = true},
                  s, 2, out);
    return out->failed ? LW_ENOMEM : 0;
}

static int by_batch(const void *va, const void *vb)
{
    const lw_prove_bench_case *a = *(const lw_prove_bench_case *const *)va;
    const lw_prove_bench_case *b = *(const lw_prove_bench_case *const *)vb;
    return (a->batch > b->batch) - (a->batch < b->batch);
}

/* The f32 cases that differ in their batch only; returns how many. */
static size_t batches_of(const lw_prove_bench *b, const lw_prove_bench_case **out)
{
    size_t n = 0;
    for (int32_t i = 1; i < b->n_cases; i++)
        if (lw_str_eq(b->cases[i].method, "f32") && !strstr(b->cases[i].name, "nothing kept"))
            out[n++] = &b->cases[i];
    qsort(out, n, sizeof *out, by_batch);
    return n;
}

static int batch_plot(const lw_prove_bench *b, lw_str *out)
{
    const size_t most = (size_t)b->n_cases;
    LW_CLEANUP(lw_free) const lw_prove_bench_case **k = lw_calloc(most, sizeof *k);
    LW_CLEANUP(lw_free) double *v = lw_calloc(3 * most, sizeof *v);
    if (!k || !v)
        return LW_ENOMEM;
    size_t n = batches_of(b, k);
    for (size_t i = 0; i < n; i++) {
        v[i] = k[i]->batch;
        v[most + i] = k[i]->run.p50 / (double)b->candidates;
        v[2 * most + i] = k[i]->run.min / (double)b->candidates;
    }
    const lw_series s[] = {{.name = "median", .x = v, .y = v + most, .n = n, .dots = true},
                           {.name = "fastest", .x = v, .y = v + 2 * most, .n = n, .dashed = true}};
    lw_plot_lines(&(lw_plot){.title = "Time of a candidate by proofs alive together, f32",
                             .x_label = "fixed batch size",
                             .y_label = "ms",
                             .log_x = true,
                             .from_zero = true},
                  s, 2, out);
    return out->failed ? LW_ENOMEM : 0;
}

/* Uniform, f32 and bf16: milliseconds of a candidate, part by part. */
static int parts_plot(const lw_prove_bench *b, lw_str *out)
{
    const int32_t shown[] = {0, 1, b->n_cases - 1};
    static const char *const names[] = {"successors", "look-up", "network", "choosing", "rest"};
    enum { PARTS = 5 };
    lw_bar bars[LW_COUNT(shown) * PARTS];
    for (size_t i = 0; i < LW_COUNT(shown); i++) {
        const lw_prove_bench_case *k = &b->cases[shown[i]];
        const lw_walks_counts *n = &k->counts;
        double v[PARTS] = {n->engine_seconds, n->lookup_seconds, n->network_seconds,
                           n->choice_seconds, 1e-3 * k->counts_ms};
        for (int p = 0; p < PARTS - 1; p++)
            v[PARTS - 1] -= v[p];
        for (int p = 0; p < PARTS; p++)
            bars[i * PARTS + (size_t)p] =
                (lw_bar){.group = k->name,
                         .name = names[p],
                         .value = fmax(1e3 * v[p], 0) / (double)b->candidates,
                         .color = p + 1};
    }
    lw_plot_bars(&(lw_plot){.title = "Where the time of a candidate goes",
                            .x_label = "ms",
                            .from_zero = true},
                 bars, LW_COUNT(bars), out);
    return out->failed ? LW_ENOMEM : 0;
}

/* ---- page ------------------------------------------------------------------------------------ */

static void add_cards(const lw_prove_bench *b, lw_html *h)
{
    const lw_prove_bench_case *f32 = &b->cases[1], *bf16 = &b->cases[b->n_cases - 1];
    char all[32], each[2][32], share[32], padded[32], note[3][80];
    snprintf(all, sizeof all, "%.3g s", 1e-3 * f32->run.p50);
    snprintf(note[0], sizeof note[0], "%lld candidates, f32, batch %d", (long long)b->candidates,
             (int)f32->batch);
    snprintf(each[0], sizeof each[0], "%.3g ms", f32->run.p50 / (double)b->candidates);
    snprintf(note[1], sizeof note[1], "bf16: %.3g ms", bf16->run.p50 / (double)b->candidates);
    if (isfinite(f32->share))
        snprintf(share, sizeof share, "%.0f %%", 100 * f32->share);
    else
        snprintf(share, sizeof share, "-");
    snprintf(each[1], sizeof each[1], "%.2f", (double)b->query_steps / (double)b->candidates);
    snprintf(padded, sizeof padded, "%.1fx",
             b->padded_steps * b->padded_states / (double)LW_MAX(f32->counts.states_scored, 1));
    snprintf(note[2], sizeof note[2], "states of padded batches of %d over states computed",
             (int)f32->batch);
    const lw_card cards[] = {
        {"Evaluation", all, note[0], LW_MARK_STRONG},
        {"A candidate", each[0], note[1], LW_MARK_NONE},
        {"Of the measured peak", share, "arithmetic that was needed, over the whole run",
         LW_MARK_NONE},
        {"Choices of a candidate", each[1], NULL, LW_MARK_NONE},
        {"Padding avoided", padded, note[2], LW_MARK_NONE},
    };
    lw_html_cards(h, cards, LW_COUNT(cards));
}

static int add_plots(const lw_prove_bench *b, lw_html *h)
{
    LW_CLEANUP(lw_str_clear) lw_str done = {0}, step = {0}, batch = {0}, parts = {0};
    LW_TRY(done_plot(b, &done));
    LW_TRY(batch_plot(b, &batch));
    LW_TRY(parts_plot(b, &parts));
    if (b->n_steps > 0)
        LW_TRY(step_plot(b, &step));
    const char *svgs[4] = {lw_str_c(&done), lw_str_c(&batch), lw_str_c(&parts), lw_str_c(&step)};
    lw_html_plots(h, svgs, NULL, b->n_steps > 0 ? 4 : 3);
    return 0;
}

static int add_table(lw_html *h, int (*make)(const lw_prove_bench *b, lw_table *t),
                     const lw_prove_bench *b, const char *title, const char *caption)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    LW_TRY(make(b, &t));
    lw_html_section(h, title);
    lw_html_table(h, &t, NULL, caption);
    return 0;
}

static int add_tables(const lw_prove_bench *b, lw_html *h)
{
    LW_TRY(add_table(h, lw_prove_bench_times, b, "Times",
                     "Compile: plans, memory, tables projected, one candidate. Medians."));
    LW_TRY(add_table(h, lw_prove_bench_cases, b, "Cases",
                     "computed: states that went through the network. kept: looked up and there. "
                     "rows filled: states of a run of the network, over its rows. "
                     "of peak: products that were needed, against the measured peak of all "
                     "threads."));
    LW_TRY(add_table(h, lw_prove_bench_parts, b, "Where the time goes", NULL));
    if (b->n_steps > 0)
        LW_TRY(add_table(h, lw_prove_bench_steps, b, "Steps of one batch that is not refilled",
                         "ms: what walks that may take one step more take longer, by the "
                         "fastest samples."));
    return 0;
}

static int save_page(const lw_prove_bench_context *c, const lw_prove_bench *b, const char *path)
{
    LW_CLEANUP(lw_html_free) lw_html *h = NULL;
    LW_CLEANUP(lw_str_clear) lw_str remarks = {0};
    char threads[16], rate[48];
    snprintf(threads, sizeof threads, "%d", b->threads);
    snprintf(rate, sizeof rate, "%.0f GFLOP/s f32, %.0f bf16",
             lw_machine_rate(&b->peak, LW_NUM_F32), lw_machine_rate(&b->peak, LW_NUM_BF16));
    LW_TRY(lw_html_new("Walking proofs: where the time goes", c->dataset, &h));
    const char *const facts[] = {"Policy",  c->policy,         "Processor",     lw_machine_name(),
                                 "Threads", threads,           "Measured peak", rate,
                                 "Leeway",  lw_build_version()};
    lw_html_facts(h, facts, LW_COUNT(facts) / 2);
    add_cards(b, h);
    lw_prove_bench_remarks(b, &remarks);
    lw_html_text(h, lw_str_c(&remarks));
    LW_TRY(add_plots(b, h));
    LW_TRY(add_tables(b, h));
    if (c->command)
        lw_html_fold(h, "Command", c->command);
    return lw_html_save(h, path);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int save_text(int (*make)(const lw_prove_bench *b, lw_str *out), const lw_prove_bench *b,
                     const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    LW_TRY(make(b, &s));
    return s.failed ? LW_ENOMEM : lw_file_write(path, lw_str_c(&s), s.len);
}

int lw_prove_bench_save(const lw_prove_bench_context *c, const lw_prove_bench *b, const char *dir)
{
    LW_CLEANUP(lw_new_dir_drop) lw_new_dir d = {0};
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *summary = lw_prove_bench_json(c, b);
    LW_TRY(lw_new_dir_begin(&d, dir, false));
    dir = lw_str_c(&d.tmp);
    LW_TRY(lw_json_save(lw_path_join(&path, dir, "summary.json"), summary));
    LW_TRY(save_text(lw_prove_bench_csv, b, lw_path_join(&path, dir, "cases.csv")));
    if (b->n_steps > 0)
        LW_TRY(save_text(lw_prove_bench_steps_csv, b, lw_path_join(&path, dir, "steps.csv")));
    LW_TRY(save_page(c, b, lw_path_join(&path, dir, "report.html")));
    return lw_new_dir_finish(&d);
}
