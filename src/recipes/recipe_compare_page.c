/* SPDX-License-Identifier: Apache-2.0 */
/* The page: what was found, the pictures, how it was measured, what it does not prove. */
#include <stdio.h>

#include "base/base.h"
#include "backend/cpu/cpu.h"
#include "recipes/recipe_compare_parts.h"

static const char *times_text(char buf[32], double v)
{
    if (v >= 10)
        snprintf(buf, 32, "%.0fx", v);
    else
        lw_compare_times(buf, v);
    return buf;
}

static const char *milliseconds(char buf[32], double seconds)
{
    snprintf(buf, 32, seconds < 0.1 ? "%.2g ms" : "%.0f ms", 1e3 * seconds);
    return buf;
}

static lw_mark mark_of(int failed)
{
    return failed ? LW_MARK_BAD : LW_MARK_GOOD;
}

/* ---- the top ---------------------------------------------------------------------------- */

static void add_facts(const comparing *w, lw_html *page)
{
    char params[48], threads[64], seed[32], rows[64];
    int32_t blocks = w->drift->net.blocks;
    snprintf(params, sizeof params, "%lld parameters, %d block%s a level",
             (long long)lw_store_param_count(w->drift->store), blocks, blocks == 1 ? "" : "s");
    snprintf(threads, sizeof threads, "%d thread%s, %s", w->dev->workers(w->dev->self),
             w->dev->workers(w->dev->self) == 1 ? "" : "s",
             lw_isa_name(lw_cpu_kernels(w->dev)->isa));
    snprintf(seed, sizeof seed, "%lld", (long long)w->c->seed);
    if (w->limit)
        snprintf(rows, sizeof rows, "%s, first %lld pictures", w->data, (long long)w->limit);
    else
        snprintf(rows, sizeof rows, "%s", w->data);
    const char *const facts[] = {
        "Data",  rows,   "Network", params,   "Machine",          lw_cpu_name(), "Running on",
        threads, "Seed", seed,      "Leeway", lw_build_version(), "Commit",      lw_build_commit()};
    lw_html_facts(page, facts, LW_COUNT(facts) / 2);
}

static void add_cards(const comparing *w, lw_html *page)
{
    const lw_compare_result *r = w->out;
    const lw_latency *a = lw_compare_latency_of(w, "drift", 1, 1);
    const lw_latency *b = lw_compare_latency_of(w, "ddpm", w->c->ddim_steps[0], 1);
    char v[6][64], n[6][128], t1[32], t2[32];
    lw_card c[6];
    size_t k = 0;
    snprintf(v[0], sizeof v[0], "%s", times_text(t1, r->speedup[0]));
    snprintf(n[0], sizeof n[0], "one picture in %s instead of %s", milliseconds(t1, a->median),
             milliseconds(t2, b->median));
    c[k++] = (lw_card){"Faster than DDPM", v[0], n[0], LW_MARK_STRONG};
    snprintf(v[2], sizeof v[2], r->ddpm.fd.value < 10 ? "%.2f | %.2f" : "%.1f | %.1f",
             r->drift_few.fd.value, r->ddpm.fd.value);
    snprintf(n[2], sizeof n[2], "drift | DDPM, %lld pictures each; as many real ones get %.2f",
             (long long)r->ddpm.n, r->floor_ddpm);
    if (r->judged) {
        int lines = 0;
        for (int i = 0; i < LW_BAR_COUNT; i++)
            lines += r->bar[i].applies;
        snprintf(v[1], sizeof v[1], "%.0f | %.0f %%", 100 * r->drift.strict.accepted,
                 100 * r->ddpm.strict.accepted);
        snprintf(n[1], sizeof n[1], "drift | DDPM; of real pictures %.0f %%",
                 100 * r->real.strict.accepted);
        c[k++] = (lw_card){"Accepted by the judge", v[1], n[1], LW_MARK_STRONG};
        c[k++] = (lw_card){"Frechet distance", v[2], n[2], LW_MARK_STRONG};
        snprintf(v[3], sizeof v[3], "%d of %d", lines - r->bar_failed, lines);
        c[k++] = (lw_card){"Bar lines drift meets", v[3], "table below", mark_of(r->bar_failed)};
        snprintf(v[4], sizeof v[4], "%d of %d", r->controls - r->controls_passed, r->controls);
        snprintf(n[4], sizeof n[4], "real pictures %s the same bar",
                 r->real_passes ? "pass" : "do not pass");
        c[k++] = (lw_card){"Controls refused", v[4], n[4],
                           mark_of(r->controls_passed || !r->real_passes)};
    } else {
        c[k++] = (lw_card){"Frechet distance", v[2], n[2], LW_MARK_STRONG};
        snprintf(v[3], sizeof v[3], "%.3g", r->untrained_fd);
        c[k++] = (lw_card){"Untrained generator", v[3], "the same distance, before training",
                           LW_MARK_NONE};
    }
    lw_html_cards(page, c, k);
}

/* ---- how good --------------------------------------------------------------------------- */

static void bar_cell(lw_table *t, const lw_bar_line *l)
{
    lw_table_cell(t, "%s", l->applies ? l->value : "-");
    lw_table_mark(t, !l->applies ? LW_MARK_MUTED : l->pass ? LW_MARK_GOOD : LW_MARK_BAD);
}

static void add_bar(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    const compare_entry *real = lw_compare_find(w, COMPARE_REAL, 0),
                        *drift = lw_compare_find(w, COMPARE_DRIFT, 1);
    const compare_entry *ddpm = lw_compare_find(w, COMPARE_DDPM, w->c->ddim_steps[0]);
    static const char *const columns[] = {"asked of a generator", "bar", "real", "drift", "DDPM"};
    for (size_t i = 0; i < LW_COUNT(columns); i++)
        lw_table_column(&t, columns[i], i ? LW_RIGHT : LW_LEFT);
    for (int i = 0; i < LW_BAR_COUNT; i++) {
        lw_table_cell(&t, "%s", drift->bar[i].name);
        lw_table_cell(&t, "%s", drift->bar[i].asked);
        bar_cell(&t, &real->bar[i]);
        bar_cell(&t, &drift->bar[i]);
        bar_cell(&t, &ddpm->bar[i]);
    }
    lw_html_table(page, &t, NULL, NULL);
}

static void add_judge(const comparing *w, lw_html *page)
{
    const lw_judge_exam *e = &w->out->exam;
    char text[640];
    snprintf(text, sizeof text,
             "**The judge** is a network of its own, with its own seed and data, that no training "
             "saw. One of its "
             "answers is “this is no picture of the data”: it was trained with averages, splices, "
             "blurred, bent and "
             "repeated pictures and noise. Before it judges it is examined: %.1f %% right on "
             "held-out pictures (at "
             "least 99 %%), accepts %.1f %% of real ones (at least 90 %%), %.1f %% of class means "
             "and %.1f %% of blurred ones "
             "(at most 10 %%). %s",
             100 * e->accuracy, 100 * e->reals_accepted, 100 * e->means_accepted,
             100 * e->blurred_accepted,
             e->fit ? "It **passes**."
                    : "It **fails**, so lines that need it are left out of the bar.");
    lw_html_note(page, e->fit ? LW_MARK_GOOD : LW_MARK_WARN, text);
}

static int add_quality(const comparing *w, lw_html *page)
{
    const lw_compare_result *r = w->out;
    char text[512];
    lw_html_section(page, "How good");
    if (r->judged) {
        add_judge(w, page);
        add_bar(w, page);
    }
    snprintf(text, sizeof text,
             "Frechet distances are measured in %s against %s; the interval holds 95 %% of "
             "resampled sets. Real pictures get "
             "**%.2f** with %lld pictures and an untrained generator %.3g: distances of different "
             "numbers of pictures "
             "are not comparable, so the floor of each number stands beside it.",
             lw_scorer_features(w->scorer), lw_scorer_reference(w->scorer), r->real.fd.value,
             (long long)r->real.n, r->untrained_fd);
    lw_html_text(page, text);
    if (w->encoder_of_drift)
        lw_html_note(
            page, LW_MARK_WARN,
            "These features are of the encoder that drift was **trained** with, which favours "
            "drift. Name a judge or another encoder for a fair distance.");
    lw_compare_score_tables(w, page);
    if (r->judged && r->controls_passed)
        lw_html_note(
            page, LW_MARK_BAD,
            "A control passes every line of the bar: on this data the bar proves nothing.");
    return lw_compare_evidence_part(w, page);
}

/* ---- what it means ---------------------------------------------------------------------- */

/* One sentence: who is nearer to real pictures, by how much, at which price. */
static void finding(const comparing *w, char *text, size_t size)
{
    const lw_compare_result *r = w->out;
    const lw_interval *a = &r->drift_few.fd, *b = &r->ddpm.fd;
    bool ahead = a->value < b->value, apart = a->high < b->low || b->high < a->low;
    char judged[160] = "";
    if (r->judged)
        snprintf(judged, sizeof judged,
                 " The judge accepts %.0f %% of drift's and %.0f %% of DDPM's.",
                 100 * r->drift.strict.accepted, 100 * r->ddpm.strict.accepted);
    snprintf(
        text, size,
        "With the same U-Net and data, drift's pictures, made in **one** evaluation, are **%s** "
        "real ones than those DDPM makes in %d (Frechet distance %.2f against %.2f, %lld pictures "
        "each%s), and take **%.0f times** less time.%s",
        ahead ? "nearer to" : "farther from", w->c->ddim_steps[0], a->value, b->value,
        (long long)r->ddpm.n, apart ? "" : "; the intervals overlap", r->speedup[0], judged);
}

/* How long each was trained, where the checkpoints say so. */
static void add_times(const comparing *w, char *text, size_t size)
{
    char a[32], b[32];
    double drift = w->drift->train_seconds, ddpm = w->ddpm->train_seconds;
    bool equal = drift > 0 && ddpm > 0 && drift < 1.15 * ddpm && ddpm < 1.15 * drift;
    snprintf(
        text, size,
        "Drift trained for %s (%lld steps), DDPM for %s (%lld steps)%s; drift's encoder comes on "
        "top.",
        lw_fmt_time(a, drift), (long long)w->drift->step, lw_fmt_time(b, ddpm),
        (long long)w->ddpm->step,
        equal ? "" : ": **not the same time**, so quality is not compared like with like");
}

static void add_meaning(const comparing *w, lw_html *page)
{
    char found[640], times[256];
    const char *items[6];
    size_t n = 0;
    finding(w, found, sizeof found);
    add_times(w, times, sizeof times);
    items[n++] = found;
    if (w->drift->train_seconds > 0 && w->ddpm->train_seconds > 0)
        items[n++] = times;
    items[n++] =
        "It does **not** show that drifting is better or worse in general: one network, one "
        "budget, one set of pictures. A DDPM goes on improving long after this.";
    items[n++] =
        w->drift->net.noise_h || w->drift->net.latent_dim
            ? "Drift uses a second network, its frozen encoder, and low-dimensional noise; "
              "DDPM needs neither."
            : "Drift uses a second network, its frozen encoder; DDPM needs none.";
    if (w->c->caveat)
        items[n++] = w->c->caveat;
    items[n++] = "All of it is one seed. Differences below a fifth in distance, or five points in "
                 "acceptance, are within what another seed may do.";
    lw_html_section(page, "What this shows, and what it does not");
    lw_html_list(page, items, n);
}

static void add_finding(const comparing *w, lw_html *page)
{
    char text[640];
    finding(w, text, sizeof text);
    lw_html_note(page, LW_MARK_STRONG, text);
}

static void add_config(lw_html *page, const char *title, const char *run)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_free) char *text = NULL;
    size_t n;
    lw_path_join(&path, run, "config.yaml");
    if (lw_path_exists(lw_str_c(&path)) && lw_file_read(lw_str_c(&path), 65536, &text, &n) == 0)
        lw_html_fold(page, title, text);
}

static void add_settings(const comparing *w, lw_html *page)
{
    char text[160], rss[32], time[32];
    lw_html_section(page, "Settings");
    if (w->c->commands)
        lw_html_fold(page, "Commands that make all of it again", w->c->commands);
    add_config(page, "config.yaml of drift", w->c->drift);
    add_config(page, "config.yaml of DDPM", w->c->ddpm);
    for (int i = 0; i < w->c->n_stages; i++) {
        snprintf(text, sizeof text, "config.yaml of %s", w->c->stages[i].name);
        add_config(page, text, w->c->stages[i].run);
    }
    snprintf(text, sizeof text,
             "This comparison took %s; the most memory this process held was %s.",
             lw_fmt_time(time, lw_now() - w->started), lw_fmt_bytes(rss, lw_peak_rss()));
    lw_html_text(page, text);
}

int lw_compare_page(comparing *w)
{
    LW_CLEANUP(lw_html_free) lw_html *page = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    char subtitle[160];
    snprintf(subtitle, sizeof subtitle,
             "Pictures in one network evaluation, beside pictures in %d by the same U-Net.",
             w->c->ddim_steps[0]);
    LW_TRY(lw_html_new(w->c->title ? w->c->title : "Drifting beside DDPM", subtitle, &page));
    add_facts(w, page);
    add_cards(w, page);
    add_finding(w, page);
    LW_TRY(lw_compare_pictures_part(w, page));
    LW_TRY(add_quality(w, page));
    lw_compare_steps_part(w, page);
    lw_compare_latency_part(w, page);
    lw_compare_curves(w, page);
    add_meaning(w, page);
    add_settings(w, page);
    lw_path_join(&path, lw_str_c(&w->dir.tmp), "report.html");
    LW_TRY(lw_html_save(page, lw_str_c(&path)));
    lw_path_join(&path, w->c->output_dir, "report.html");
    snprintf(w->out->report, sizeof w->out->report, "%s", lw_str_c(&path));
    return 0;
}
