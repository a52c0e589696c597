/* SPDX-License-Identifier: Apache-2.0 */
/* The page: what was found, the pictures, how it was measured, what it does not prove. */
#include <stdio.h>

#include "base/base.h"
#include "jobs/compare/compare_verdict.h"

/* ---- the top ---------------------------------------------------------------------------- */

static void add_facts(const comparing *w, lw_html *page)
{
    char params[48], threads[64], seed[32], rows[64];
    const json_t *config = w->drift->net->config;
    int blocks = (int)json_integer_value(json_object_get(config, "layers_per_block"));
    snprintf(params, sizeof params, "%lld parameters, %d block%s a level",
             (long long)lw_store_param_count(w->drift->net->store), blocks, blocks == 1 ? "" : "s");
    snprintf(threads, sizeof threads, "%d thread%s, %s", lw_pool_size(w->dev->pool),
             lw_pool_size(w->dev->pool) == 1 ? "" : "s", w->dev->isa);
    snprintf(seed, sizeof seed, "%lld", (long long)w->c->seed);
    if (w->limit)
        snprintf(rows, sizeof rows, "%s, first %lld pictures", w->data, (long long)w->limit);
    else
        snprintf(rows, sizeof rows, "%s", w->data);
    const char *const facts[] = {"Data",       rows,
                                 "Network",    params,
                                 "Machine",    lw_machine_name(),
                                 "Running on", threads,
                                 "Seed",       seed,
                                 "Leeway",     lw_build_version(),
                                 "Commit",     lw_build_commit()};
    lw_html_facts(page, facts, LW_COUNT(facts) / 2);
}

/* ---- how good --------------------------------------------------------------------------- */

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
             100 * e->accuracy, 100 * e->real_accepted, 100 * e->means_accepted,
             100 * e->blurred_accepted,
             e->fit ? "It **passes**." : "It **fails**, so conditions that need it are left out.");
    lw_html_note(page, e->fit ? LW_MARK_GOOD : LW_MARK_WARN, text);
}

static int add_quality(const comparing *w, lw_html *page)
{
    const lw_compare_result *r = w->out;
    char text[512], controls[160];
    snprintf(controls, sizeof controls,
             "All %d kinds of spoilt pictures fail a condition, as they must; real pictures %s.",
             r->controls, r->real_passes ? "meet all" : "do **not** meet all");
    lw_html_section(page, "How good");
    if (r->judged) {
        add_judge(w, page);
        lw_compare_bar_table(w, page);
    }
    snprintf(text, sizeof text,
             "The **%s** is measured in %s against %s; the interval holds 95 %% of resampled sets. "
             "Real pictures get **%.2f** "
             "with %lld pictures and an untrained generator %.3g. Distances of different numbers "
             "of pictures do not compare, so each stands beside what as many real ones get.",
             lw_scorer_distance(w->scorer), lw_scorer_features(w->scorer),
             lw_scorer_reference(w->scorer), r->real.fd.value, (long long)r->real.n,
             r->untrained_fd);
    lw_html_text(page, text);
    if (w->encoder_of_drift)
        lw_html_note(
            page, LW_MARK_WARN,
            "These features are of the encoder that drift was **trained** with, which favours "
            "drift. Name a judge or another encoder for a fair distance.");
    LW_TRY(lw_compare_score_tables(w, page));
    if (r->judged && r->controls_passed)
        lw_html_note(page, LW_MARK_BAD,
                     "Spoilt pictures meet every condition: on this data the conditions prove "
                     "nothing.");
    else if (r->judged)
        lw_html_note(page, r->real_passes ? LW_MARK_GOOD : LW_MARK_WARN, controls);
    return lw_compare_evidence_part(w, page);
}

/* ---- what it means ---------------------------------------------------------------------- */

static void add_needs(const comparing *w, lw_str *out)
{
    bool low = w->drift->net->noise_size || w->drift->net->latent;
    lw_str_addf(out, "Drift uses a second network, its frozen encoder%s; ",
                low ? ", and low-dimensional noise" : "");
    for (int i = 0; i < w->n_others; i++)
        lw_str_addf(out, "%s%s", i ? " and " : "", w->other[i].name);
    lw_str_addf(out, " %s %s.", w->n_others > 1 ? "need" : "needs", low ? "neither" : "none");
}

static void add_meaning(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_str_clear) lw_str work = {0}, needs = {0}, general = {0};
    const char *items[5 + LW_COMPARE_OTHERS];
    size_t n = 0;
    lw_compare_work_text(w->out->work, w->n_others, &work);
    lw_str_add(&work, " Drift's encoder was trained besides.");
    for (int i = 0; i < w->n_others; i++)
        items[n++] = w->out->other[i].headline.text;
    items[n++] = lw_str_c(&work);
    lw_str_add(&general,
               "It does **not** show that drifting is better or worse in general: one network, one "
               "budget, one set of pictures.");
    for (int i = 0; i < w->n_others; i++)
        lw_str_addf(&general, "%s%s", i ? " and a " : " A ", w->other[i].name);
    lw_str_addf(&general, " %s on improving long after this.", w->n_others > 1 ? "go" : "goes");
    items[n++] = lw_str_c(&general);
    add_needs(w, &needs);
    items[n++] = lw_str_c(&needs);
    if (w->c->caveat)
        items[n++] = w->c->caveat;
    items[n++] = "All of it is one seed. Differences below a fifth in distance, or five points in "
                 "acceptance, are within what another seed may do.";
    lw_html_section(page, "What this shows, and what it does not");
    lw_html_list(page, items, n);
}

static void add_settings(const comparing *w, lw_html *page)
{
    char text[160], rss[32], time[32];
    lw_html_section(page, "Runs and settings");
    lw_compare_links(w, page);
    if (w->c->commands)
        lw_html_fold(page, "Commands that make all of it again", w->c->commands);
    lw_html_fold_file(page, "config.yaml of drift", w->c->drift, "config.yaml");
    for (int i = 0; i < w->n_others; i++) {
        snprintf(text, sizeof text, "config.yaml of %s", w->other[i].name);
        lw_html_fold_file(page, text, w->other[i].run, "config.yaml");
    }
    for (int i = 0; i < w->c->n_stages; i++) {
        snprintf(text, sizeof text, "config.yaml of %s", w->c->stages[i].name);
        lw_html_fold_file(page, text, w->c->stages[i].run, "config.yaml");
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
    LW_CLEANUP(lw_str_clear) lw_str title = {0}, subtitle = {0};
    lw_str_add(&title, "Drifting beside ");
    lw_str_add(&subtitle, "Pictures in one network evaluation, beside pictures in ");
    for (int i = 0; i < w->n_others; i++) {
        const compare_other *o = &w->other[i];
        lw_str_addf(&title, "%s%s", i ? " and " : "", o->name);
        lw_str_addf(&subtitle, "%s%d%s%s%s", i ? ", " : "", o->usual.evaluations,
                    w->n_others > 1 ? " (" : "", w->n_others > 1 ? o->name : "",
                    w->n_others > 1 ? ")" : "");
    }
    lw_str_add(&subtitle, " and in as few as will do by the same U-Net.");
    LW_TRY(lw_html_new(w->c->title ? w->c->title : lw_str_c(&title), lw_str_c(&subtitle), &page));
    add_facts(w, page);
    lw_compare_top(w, page);
    LW_TRY(lw_compare_pictures_part(w, page));
    LW_TRY(add_quality(w, page));
    lw_compare_verdict_page(w, page);
    LW_TRY(lw_compare_planted_page(w, page));
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
