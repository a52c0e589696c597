/* SPDX-License-Identifier: Apache-2.0 */
/* The page's first screen: what was found, in words and in one table, and where the runs are. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "jobs/compare/compare_parts.h"

/* ---- which of DDPM's settings are shown -------------------------------------------------- */

static void show(const comparing *w, lw_compare_setting how, const char *as, lw_compare_shown *out)
{
    const compare_entry *e = lw_compare_find_ddpm(w, how);
    for (int i = 0; e && i < out->n; i++)
        if (out->entry[i] == e) {
            size_t used = strlen(out->as[i]);
            snprintf(out->as[i] + used, sizeof out->as[i] - used, ", %s", as);
            return;
        }
    if (!e)
        return;
    snprintf(out->as[out->n], sizeof out->as[0], "DDPM %s", as);
    out->entry[out->n++] = e;
}

lw_compare_shown lw_compare_show(const comparing *w)
{
    const lw_headline *h = &w->out->headline;
    lw_compare_shown s = {0};
    if (h->equal.how.evaluations)
        show(w, h->equal.how, "at drift's quality", &s);
    show(w, h->best.how, "at its best", &s);
    show(w, lw_compare_usual(w, w->c->ddim_steps[0]), "as usual", &s);
    return s;
}

/* ---- the table --------------------------------------------------------------------------- */

static const char *ahead(int ddpm_against_drift)
{
    return ddpm_against_drift > 0 ? "DDPM" : ddpm_against_drift < 0 ? "drift" : "equal";
}

static void accepted_cell(lw_table *t, const lw_score *s)
{
    lw_interval i = lw_share_interval(s->strict.accepted_count, s->n, 1.959964);
    lw_table_cell(t, "%.0f %% (%.0f to %.0f)", 100 * i.value, 100 * i.low, 100 * i.high);
}

static void accepted_row(const comparing *w, const lw_compare_shown *shown, lw_table *t)
{
    const lw_headline *h = &w->out->headline;
    lw_table_cell(t, "accepted by the judge (95 %% interval)");
    lw_table_cell(t, "%s", h->by_acceptance ? ahead(h->best.accepted) : "judge unfit");
    accepted_cell(t, &w->out->drift);
    for (int i = 0; i < shown->n; i++)
        accepted_cell(t, &shown->entry[i]->score);
    accepted_cell(t, &w->out->real);
}

static void frechet_cell(const comparing *w, lw_table *t, const lw_score *s)
{
    const lw_score *real = lw_compare_sized(w, COMPARE_REAL, COMPARE_REAL_FEW,
                                            LW_MIN(s->n, w->real_set.n));
    lw_table_cell(t, s->fd.value < 10 ? "%.2f (real: %.2f)" : "%.1f (real: %.2f)", s->fd.value,
                  real->fd.value);
}

static void frechet_row(const comparing *w, const lw_compare_shown *shown, lw_table *t)
{
    lw_table_cell(t, "%s", lw_scorer_distance(w->scorer));
    lw_table_cell(t, "%s", ahead(w->out->headline.best.frechet));
    frechet_cell(w, t, &w->out->drift_few);
    for (int i = 0; i < shown->n; i++)
        frechet_cell(w, t, &shown->entry[i]->score);
    lw_table_cell(t, "%.2f", w->out->floor_ddpm);
}

static void conditions_cell(lw_table *t, const compare_entry *e)
{
    int lines = 0;
    for (int i = 0; i < LW_BAR_COUNT; i++)
        lines += e->bar[i].applies;
    lw_table_cell(t, "%d of %d", lines - e->failed, lines);
    lw_table_mark(t, e->failed ? LW_MARK_BAD : LW_MARK_GOOD);
}

static void conditions_row(const comparing *w, const lw_compare_shown *shown, lw_table *t)
{
    lw_table_cell(t, "conditions met (listed below)");
    lw_table_cell(t, "%s", "");
    conditions_cell(t, lw_compare_find(w, COMPARE_DRIFT));
    for (int i = 0; i < shown->n; i++)
        conditions_cell(t, shown->entry[i]);
    conditions_cell(t, lw_compare_find(w, COMPARE_REAL));
}

static void evaluations_row(const comparing *w, const lw_compare_shown *shown, lw_table *t)
{
    lw_table_cell(t, "network evaluations a picture (NFE)");
    lw_table_cell(t, "%s", ahead(w->out->headline.best.how.evaluations > 1 ? -1 : 0));
    lw_table_cell(t, "1");
    for (int i = 0; i < shown->n; i++)
        lw_table_cell(t, "%d, %s", shown->entry[i]->how.evaluations,
                      lw_compare_sampler_name(shown->entry[i]->how));
    lw_table_cell(t, "%s", "");
}

static void time_row(const comparing *w, const lw_compare_shown *shown, lw_table *t)
{
    const lw_latency *drift = lw_compare_latency_of(w, "drift",
                                                    (lw_compare_setting){.evaluations = 1}, 1);
    double ratio = w->out->headline.best.ratio;
    char text[32];
    lw_table_cell(t, "time of one picture");
    lw_table_cell(t, "%s", isfinite(ratio) ? ahead(ratio < 0.95 ? 1 : ratio > 1.05 ? -1 : 0) : "");
    lw_table_cell(t, "%s",
                  isfinite(drift->median) ? lw_fmt_time(text, drift->median) : "not timed");
    for (int i = 0; i < shown->n; i++) {
        const lw_latency *l = lw_compare_latency_of(w, "ddpm", shown->entry[i]->how, 1);
        if (l && isfinite(l->times_drift))
            lw_table_cell(t, "%s (%.3gx)", lw_fmt_time(text, l->median), l->times_drift);
        else
            lw_table_cell(t, "not timed");
    }
    lw_table_cell(t, "%s", "");
}

/* A row of seconds that both were trained for, and by how much they differ. */
static void training_row(int shown, const char *name, double drift, double ddpm, double percent,
                         lw_table *t)
{
    char text[32];
    lw_table_cell(t, "%s", name);
    if (percent <= LW_EQUAL_WORK_PERCENT)
        lw_table_cell(t, "equal (%.1f %% apart)", percent);
    else
        lw_table_cell(t, "%s took %.0f %% more", drift > ddpm ? "drift" : "DDPM", percent);
    if (percent > LW_EQUAL_WORK_PERCENT)
        lw_table_mark(t, LW_MARK_WARN);
    lw_table_cell(t, "%s", lw_fmt_time(text, drift));
    for (int i = 0; i < shown; i++)
        lw_table_cell(t, "%s", lw_fmt_time(text, ddpm));
    lw_table_cell(t, "%s", "");
}

static void steps_row(const comparing *w, int shown, lw_table *t)
{
    if (w->drift->step < 0 || w->ddpm->step < 0)
        return;
    lw_table_cell(t, "training steps of these weights");
    lw_table_cell(t, "%s", "");
    lw_table_cell(t, "%lld", (long long)w->drift->step);
    for (int i = 0; i < shown; i++)
        lw_table_cell(t, "%lld", (long long)w->ddpm->step);
    lw_table_cell(t, "%s", "");
}

static void kept_cell(lw_table *t, const lw_compare_kept *k)
{
    char value[64];
    if (k->metric[0])
        lw_table_cell(t, "%s %s, step %lld", k->metric, lw_compare_kept_value(value, k),
                      (long long)k->step);
    else
        lw_table_cell(t, "none kept");
}

static void kept_row(const lw_compare_work *k, int shown, lw_table *t)
{
    if (!k->kept_drift.metric[0] && !k->kept_ddpm.metric[0])
        return;
    lw_table_cell(t, "best checkpoint, on held-out pictures that it was not chosen by");
    lw_table_cell(t, "%s", "");
    kept_cell(t, &k->kept_drift);
    for (int i = 0; i < shown; i++)
        kept_cell(t, &k->kept_ddpm);
    lw_table_cell(t, "%s", "");
}

static void training_rows(const comparing *w, int shown, lw_table *t)
{
    const lw_compare_work *k = &w->out->work;
    if (k->known) {
        training_row(shown, "training, by the clock", k->drift.wall, k->ddpm.wall, k->wall_percent,
                     t);
        training_row(shown, "training, processor time", k->drift.cpu, k->ddpm.cpu, k->cpu_percent,
                     t);
    }
    steps_row(w, shown, t);
    kept_row(k, shown, t);
}

static void add_table(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    const lw_compare_shown shown = lw_compare_show(w);
    lw_table_column(&t, "", LW_LEFT);
    lw_table_column(&t, "ahead", LW_LEFT);
    lw_table_column(&t, "drift", LW_RIGHT);
    for (int i = 0; i < shown.n; i++)
        lw_table_column(&t, shown.as[i], LW_RIGHT);
    lw_table_column(&t, "real pictures", LW_RIGHT);
    if (w->out->judged)
        accepted_row(w, &shown, &t);
    frechet_row(w, &shown, &t);
    if (w->out->judged)
        conditions_row(w, &shown, &t);
    evaluations_row(w, &shown, &t);
    time_row(w, &shown, &t);
    training_rows(w, shown.n, &t);
    lw_html_table(page, &t, "Drift, DDPM and real pictures",
                  "**Ahead**: of drift and DDPM at its best, where the 95 % interval of the "
                  "difference leaves out 0 (acceptance: Wilson's intervals; Frechet distance: 60 "
                  "resampled sets; both sides with as many pictures); otherwise the two are "
                  "**equal**. DDPM is **at drift's quality** with the fewest evaluations at which "
                  "no measure is worse than drift's in that sense, nor by more than another seed "
                  "might do, five points of acceptance or a fifth of the distance; and **at its "
                  "best** with the fewest at which no other setting beats it so. A distance stands "
                  "beside what as many real pictures get.");
}

/* ---- links ------------------------------------------------------------------------------- */

/* The address of RUN/report.html as seen from the page's directory; false: there is no such file.
 */
static bool run_page(const comparing *w, const char *run, lw_str *href)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const char *here = w->dir.inside ? w->c->output_dir : lw_str_c(&w->dir.tmp); /* beside it */
    lw_path_join(&path, run, "report.html");
    bool found = lw_path_exists(lw_str_c(&path)) &&
                 lw_path_relative(here, lw_str_c(&path), href) == 0;
    lw_errclear();
    return found;
}

void lw_compare_links(const comparing *w, lw_html *page)
{
    const lw_compare_config *c = w->c;
    const char *names[2 + LW_COMPARE_MAX_STAGES] = {"training of drift", "training of DDPM"},
                          *runs[2 + LW_COMPARE_MAX_STAGES] = {c->drift, c->ddpm};
    lw_str href[2 + LW_COMPARE_MAX_STAGES] = {0};
    const char *pairs[2 * (2 + LW_COMPARE_MAX_STAGES)];
    size_t n = 2, found = 0;
    for (int i = 0; i < c->n_stages; i++) {
        names[n] = c->stages[i].name;
        runs[n++] = c->stages[i].run;
    }
    for (size_t i = 0; i < n; i++)
        if (run_page(w, runs[i], &href[i])) {
            pairs[2 * found] = names[i];
            pairs[2 * found++ + 1] = lw_str_c(&href[i]);
        }
    if (found) {
        lw_html_text(page, "The pages of the runs, with their curves and commands:");
        lw_html_links(page, pairs, found);
    }
    for (size_t i = 0; i < n; i++)
        lw_str_clear(&href[i]);
}

void lw_compare_top(const comparing *w, lw_html *page)
{
    const lw_headline *h = &w->out->headline;
    lw_html_note(page, LW_MARK_STRONG, h->text);
    add_table(w, page);
}
