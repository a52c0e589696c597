/* SPDX-License-Identifier: Apache-2.0 */
/* The page of one training run. */
#include "train/train_page.h"

#include <stdio.h>

#include "base/base.h"
#include "train/train_curves.h"

static const char *text(const json_t *j, const char *key)
{
    const char *s = json_string_value(json_object_get(j, key));
    return s ? s : "unknown";
}

static void add_facts(const char *dir, const lw_train_job *job, lw_html *page)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_json_drop) json_t *env = NULL;
    char threads[64];
    lw_path_join(&path, dir, "env.json");
    if (lw_json_load(lw_str_c(&path), &env) < 0)
        return;
    snprintf(threads, sizeof threads, "%lld, %s",
             (long long)json_integer_value(json_object_get(env, "threads")), text(env, "isa"));
    const char *const facts[] = {"Recipe",  job->name,
                                 "Machine", text(env, "cpu"),
                                 "Threads", threads,
                                 "Leeway",  text(env, "version"),
                                 "Commit",  text(env, "commit")};
    lw_html_facts(page, facts, LW_COUNT(facts) / 2);
}

static void add_cards(const lw_train_result *r, lw_html *page)
{
    char v[5][48], took[32], n[3][96], rate[64];
    snprintf(v[0], sizeof v[0], "%lld", (long long)r->steps);
    snprintf(n[0], sizeof n[0], "in %s", lw_fmt_time(took, r->seconds));
    snprintf(v[1], sizeof v[1], "%.4g", r->loss);
    snprintf(v[2], sizeof v[2], "%.4g", r->samples_per_second);
    snprintf(rate, sizeof rate, "%c%s per second", r->unit[0] - 'a' + 'A', r->unit + 1);
    snprintf(v[3], sizeof v[3], "%.3g M", (double)r->parameters / 1e6);
    snprintf(n[1], sizeof n[1], "%.3g GFLOP a step", r->flops_per_step / 1e9);
    const lw_card cards[] = {{"Steps", v[0], n[0], LW_MARK_STRONG},
                             {"Last loss", v[1], NULL, LW_MARK_NONE},
                             {rate, v[2], NULL, LW_MARK_NONE},
                             {"Parameters", v[3], n[1], LW_MARK_NONE},
                             {"Best checkpoint", v[4], n[2], LW_MARK_NONE}};
    if (r->best_metric) {
        snprintf(v[4], sizeof v[4], "step %lld", (long long)r->best_step);
        snprintf(n[2], sizeof n[2], "%s %.4g on the half it was not chosen by; checkpoints/best",
                 r->best_metric, r->best_reporting);
    }
    lw_html_cards(page, cards, LW_COUNT(cards) - (r->best_metric ? 0 : 1));
}

enum { PLOTS = 16 + LW_TRAIN_PLOTS };

/* What the job says it logs. */
static int job_curves(const char *dir, const lw_train_curve *c, lw_str *svg, int *n)
{
    for (; c->column; c++) {
        const lw_plot p = {.title = c->title, .x_label = "step", .from_zero = c->from_zero};
        LW_ASSERT(*n < PLOTS - 3 - LW_TRAIN_PLOTS, "%d curves are too many", *n);
        if (c->sparse)
            LW_TRY(lw_curves_points(dir, c->column, c->beside, &p, &svg[(*n)++]));
        else
            LW_TRY(lw_curves_column(dir, c->column, &p, &svg[(*n)++]));
    }
    return 0;
}

/* The plots that the logs have data for. */
static int fill_curves(const char *dir, const lw_train_job *job, const char *unit, lw_str *svg)
{
    char rate_title[64];
    int at = 0;
    snprintf(rate_title, sizeof rate_title, "%s per second", unit);
    const lw_plot norm = {.title = "gradient norm", .x_label = "step", .log_y = true};
    const lw_plot lr = {.title = "learning rate", .x_label = "step", .from_zero = true};
    const lw_plot rate = {.title = rate_title, .x_label = "step", .from_zero = true};
    if (job->curves)
        LW_TRY(job_curves(dir, job->curves, svg, &at));
    else
        LW_TRY(lw_curves_loss(dir, "loss", &svg[at++]));
    if (job->plot)
        LW_TRY(job->plot(dir, &svg[at]));
    at += LW_TRAIN_PLOTS;
    LW_TRY(lw_curves_column(dir, "grad_norm", &norm, &svg[at]));
    LW_TRY(lw_curves_column(dir, "lr", &lr, &svg[at + 1]));
    return lw_curves_column(dir, lw_train_rate_name(unit), &rate, &svg[at + 2]);
}

static int add_curves(const char *dir, const lw_train_job *job, const char *unit, lw_html *page)
{
    lw_str svg[PLOTS] = {0};
    const char *plots[PLOTS];
    size_t n = 0;
    int rc = fill_curves(dir, job, unit, svg);
    for (int i = 0; i < PLOTS; i++)
        if (svg[i].len)
            plots[n++] = lw_str_c(&svg[i]);
    if (n) {
        lw_html_section(page, "Curves");
        lw_html_plots(page, plots, NULL, n);
    }
    for (int i = 0; i < PLOTS; i++)
        lw_str_clear(&svg[i]);
    return rc;
}

static int add_film(const char *dir, const lw_train_job *job, lw_html *page)
{
    LW_CLEANUP(lw_film_clear) lw_film film = {0};
    LW_TRY(lw_curves_film(dir, job->film_lines ? job->film_lines : LW_FILM_LINES, &film));
    if (!film.rows)
        return 0;
    const lw_figure f = lw_film_figure(&film, NULL,
                                       job->film_caption ? job->film_caption : LW_FILM_CAPTION);
    lw_html_section(page, "Samples while training");
    lw_html_pictures(page, &f, 1);
    return 0;
}

int lw_run_page_write(const char *dir, const lw_train_job *job, const char *whole,
                      const lw_train_result *r)
{
    LW_CLEANUP(lw_html_free) lw_html *page = NULL;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_TRY(lw_html_new(job->name, dir, &page));
    add_facts(dir, job, page);
    const char *const up[] = {"The comparison that this run is part of", whole};
    if (whole)
        lw_html_links(page, up, 1);
    add_cards(r, page);
    if (job->loss_note)
        lw_html_note(page, LW_MARK_NONE, job->loss_note);
    if (add_curves(dir, job, r->unit, page) < 0 ||
        add_film(dir, job, page) < 0) /* a spoilt log spoils no run */
        lw_log(LW_LOG_WARN, "train", "%s: the page lacks parts: %s", dir, lw_errmsg());
    lw_html_section(page, "How to do it again");
    lw_html_fold_file(page, "Commands", dir, "command.txt");
    lw_html_fold_file(page, "config.yaml", dir, "config.yaml");
    return lw_html_save(page, lw_path_join(&path, dir, "report.html"));
}
