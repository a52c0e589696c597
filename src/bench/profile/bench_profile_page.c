/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as one HTML page. */
#include "bench/profile/bench_profile_tables.h"

enum { MOST_BARS = 16 };

/* Bytes alive while each step runs. */
static int memory_plot(const lw_profile *p, lw_str *out)
{
    LW_CLEANUP(lw_free) double *mib = lw_calloc((size_t)p->n_step + 1, sizeof *mib);
    if (!mib)
        return LW_ENOMEM;
    for (int32_t i = 0; i < p->n_step; i++)
        mib[i] = (double)p->step[i].live / (1 << 20);
    lw_plot_lines(&(lw_plot){.title = "Memory of values",
                             .x_label = "step",
                             .y_label = "MiB alive",
                             .from_zero = true},
                  &(lw_series){.name = "alive", .y = mib, .n = (size_t)p->n_step}, 1, out);
    return 0;
}

static int bars_plot(const lw_profile *p, int depth, const char *title, lw_str *out)
{
    LW_CLEANUP(lw_free) lw_profile_group *g = NULL;
    lw_bar bars[MOST_BARS];
    int32_t n = 0;
    LW_TRY(lw_profile_groups(p, depth, &g, &n));
    n = LW_MIN(n, MOST_BARS);
    for (int32_t i = 0; i < n; i++)
        bars[i] = (lw_bar){.name = g[i].name, .value = g[i].ms};
    lw_plot_bars(&(lw_plot){.title = title, .x_label = "ms", .from_zero = true}, bars, (size_t)n,
                 out);
    return 0;
}

static void add_cards(const lw_profile *p, lw_html *h)
{
    char ms[32], speed[32], live[32], weights[32], share[48];
    double flops = 0;
    for (int32_t i = 0; i < p->n_step; i++)
        flops += p->step[i].flops;
    double rate = p->method[0].ms > 0 ? 1e-6 * flops / p->method[0].ms : 0;
    snprintf(ms, sizeof ms, "%.4g ms", p->method[0].ms);
    snprintf(speed, sizeof speed, "%.0f GFLOP/s", rate);
    snprintf(share, sizeof share, "%.0f %% of the measured peak", 100 * rate / p->gflops);
    lw_html_cards(
        h,
        (lw_card[]){{.label = "One run", .value = ms, .note = p->method[0].name},
                    {.label = "Arithmetic", .value = speed, .note = share},
                    {.label = "Values alive at most", .value = lw_fmt_bytes(live, p->peak_live)},
                    {.label = "Weights", .value = lw_fmt_bytes(weights, p->weights)}},
        4);
}

static int add_plots(const lw_profile *p, const lw_profile_view *v, lw_html *h)
{
    LW_CLEANUP(lw_str_clear) lw_str memory = {0}, ops = {0}, layers = {0};
    LW_TRY(bars_plot(p, 0, "Time by kind of op", &ops));
    LW_TRY(bars_plot(p, v->depth, "Time by layer", &layers));
    LW_TRY(memory_plot(p, &memory));
    const char *svgs[] = {lw_str_c(&ops), lw_str_c(&layers), lw_str_c(&memory)};
    lw_html_plots(h, svgs, NULL, LW_COUNT(svgs));
    return memory.failed || ops.failed || layers.failed ? LW_ENOMEM : 0;
}

static int add_tables(const lw_profile *p, const lw_profile_view *v, lw_html *h)
{
    LW_CLEANUP(lw_table_clear)
    lw_table ops = {0}, layers = {0}, top = {0}, steps = {0}, methods = {0}, threads = {0};
    LW_TRY(lw_profile_method_table(p, &methods));
    LW_TRY(lw_profile_group_table(p, 0, &ops));
    LW_TRY(lw_profile_group_table(p, v->depth, &layers));
    LW_TRY(lw_profile_step_table(p, LW_MAX(v->top, 1), &top));
    LW_TRY(lw_profile_step_table(p, 0, &steps));
    lw_html_section(h, "Precisions");
    lw_html_table(h, &methods, NULL,
                  "Error: largest difference to f32 without fusion over its largest value.");
    if (p->n_model > 0) {
        LW_TRY(lw_profile_threads_table(p, &threads));
        lw_html_section(h, "More threads, as a model");
        lw_html_table(h, &threads, NULL, LW_PROFILE_THREADS_NOTE);
    }
    lw_html_section(h, "Slowest steps");
    lw_html_table(
        h, &top, NULL,
        "Times are of single steps, profiled; GFLOP/s and of peak: nominal operations, two "
        "for each multiplication with addition of a direct convolution, so Winograd's "
        "tiles pass 100 %. GB/s and MB: bytes read and written once.");
    lw_html_section(h, "By op");
    lw_html_table(h, &ops, NULL, NULL);
    lw_html_section(h, "By layer");
    lw_html_table(h, &layers, NULL, NULL);
    lw_html_section(h, "All steps, in order");
    lw_html_table(h, &steps, NULL, NULL);
    return 0;
}

int lw_profile_page(const lw_profile *p, const lw_profile_view *v, const char *path)
{
    LW_CLEANUP(lw_html_free) lw_html *h = NULL;
    const char *cpu = "", *isa = "", *commit = "";
    char threads[16], peak[64];
    int64_t n = 0;
    LW_TRY(lw_json_opt_str(p->machine, "machine", "cpu", &cpu));
    LW_TRY(lw_json_opt_str(p->machine, "machine", "isa", &isa));
    LW_TRY(lw_json_opt_str(p->machine, "machine", "commit", &commit));
    LW_TRY(lw_json_opt_i64(p->machine, "machine", "threads", &n));
    snprintf(threads, sizeof threads, "%d", (int)n);
    snprintf(peak, sizeof peak, "not measured");
    if (p->gflops > 0)
        snprintf(peak, sizeof peak, "%.0f GFLOP/s, %.0f GB/s", p->gflops, p->gbytes);
    LW_TRY(lw_html_new("Where the time goes", p->title, &h));
    lw_html_facts(h,
                  (const char *const[]){"processor", cpu, "threads", threads, "instruction set",
                                        isa, "measured limits", peak, "commit", commit},
                  5);
    add_cards(p, h);
    LW_TRY(add_plots(p, v, h));
    LW_TRY(add_tables(p, v, h));
    return lw_html_save(h, path);
}
