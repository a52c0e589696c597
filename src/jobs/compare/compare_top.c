/* SPDX-License-Identifier: Apache-2.0 */
/* The page's first screen: what was found, in words and in one table, and where the runs are. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "jobs/compare/compare_parts.h"

/* ---- which of the others' settings are shown --------------------------------------------- */

static void show(const comparing *w, int other, lw_compare_setting how, const char *as,
                 lw_compare_shown *out)
{
    const compare_entry *e = lw_compare_find_setting(w, w->other[other].kind, how);
    for (int i = 0; e && i < out->n; i++)
        if (out->entry[i] == e) {
            size_t used = strlen(out->as[i]);
            snprintf(out->as[i] + used, sizeof out->as[i] - used, ", %s", as);
            return;
        }
    if (!e)
        return;
    snprintf(out->as[out->n], sizeof out->as[0], "%s %s", w->other[other].title, as);
    out->other[out->n] = other;
    out->entry[out->n++] = e;
}

lw_compare_shown lw_compare_show(const comparing *w)
{
    lw_compare_shown s = {0};
    for (int i = 0; i < w->n_others; i++) {
        const lw_headline *h = &w->out->other[i].headline;
        if (h->equal.how.evaluations)
            show(w, i, h->equal.how, "at drift's quality", &s);
        show(w, i, h->best.how, "at its best", &s);
        show(w, i, w->other[i].usual, "as usual", &s);
    }
    return s;
}

bool lw_compare_is_shown(const lw_compare_shown *s, const compare_entry *e)
{
    for (int i = 0; i < s->n; i++)
        if (s->entry[i] == e)
            return true;
    return false;
}

/* ---- the table --------------------------------------------------------------------------- */

/* Of drift and another at its best; `against`: the other's, 1 better, -1 worse. */
static void ahead_cell(const compare_other *o, lw_table *t, int against)
{
    lw_table_cell(t, "%s", against > 0 ? o->name : against < 0 ? "drift" : "equal");
}

static void empty_cells(lw_table *t, int n)
{
    for (int i = 0; i < n; i++)
        lw_table_cell(t, "%s", "");
}

static void accepted_cell(lw_table *t, const lw_score *s)
{
    lw_interval i = lw_share_interval(s->strict.accepted_count, s->n, LW_Z_95);
    lw_table_cell(t, "%.0f %% (%.0f to %.0f)", 100 * i.value, 100 * i.low, 100 * i.high);
}

static void accepted_row(const comparing *w, const lw_compare_shown *shown, lw_table *t)
{
    lw_table_cell(t, "accepted by the judge (95 %% interval)");
    for (int i = 0; i < w->n_others; i++) {
        const lw_headline *h = &w->out->other[i].headline;
        if (h->by_acceptance)
            ahead_cell(&w->other[i], t, h->best.accepted);
        else
            lw_table_cell(t, "judge unfit");
    }
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
    for (int i = 0; i < w->n_others; i++)
        ahead_cell(&w->other[i], t, w->out->other[i].headline.best.frechet);
    frechet_cell(w, t, &w->out->drift_few);
    for (int i = 0; i < shown->n; i++)
        frechet_cell(w, t, &shown->entry[i]->score);
    lw_table_cell(t, "%.2f", w->out->floor_few);
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
    empty_cells(t, w->n_others);
    conditions_cell(t, lw_compare_find(w, COMPARE_DRIFT));
    for (int i = 0; i < shown->n; i++)
        conditions_cell(t, shown->entry[i]);
    conditions_cell(t, lw_compare_find(w, COMPARE_REAL));
}

static void evaluations_row(const comparing *w, const lw_compare_shown *shown, lw_table *t)
{
    char how[64];
    lw_table_cell(t, "network evaluations a picture (NFE)");
    for (int i = 0; i < w->n_others; i++)
        ahead_cell(&w->other[i], t, w->out->other[i].headline.best.how.evaluations > 1 ? -1 : 0);
    lw_table_cell(t, "1");
    for (int i = 0; i < shown->n; i++)
        lw_table_cell(t, "%d, %s", shown->entry[i]->how.evaluations,
                      lw_compare_how(how, shown->entry[i]->how));
    empty_cells(t, 1);
}

static void time_row(const comparing *w, const lw_compare_shown *shown, lw_table *t)
{
    const lw_latency *drift = lw_compare_latency_of(w, "drift",
                                                    (lw_compare_setting){.evaluations = 1}, 1);
    char text[32];
    lw_table_cell(t, "time of one picture");
    for (int i = 0; i < w->n_others; i++) {
        double ratio = w->out->other[i].headline.best.ratio;
        if (isfinite(ratio))
            ahead_cell(&w->other[i], t, ratio < 0.95 ? 1 : ratio > 1.05 ? -1 : 0);
        else
            empty_cells(t, 1);
    }
    lw_table_cell(t, "%s",
                  isfinite(drift->median) ? lw_fmt_time(text, drift->median) : "not timed");
    for (int i = 0; i < shown->n; i++) {
        const lw_latency *l = lw_compare_latency_of(w, w->other[shown->other[i]].key,
                                                    shown->entry[i]->how, 1);
        if (l && isfinite(l->times_drift))
            lw_table_cell(t, "%s (%.3gx)", lw_fmt_time(text, l->median), l->times_drift);
        else
            lw_table_cell(t, "not timed");
    }
    empty_cells(t, 1);
}

static void apart_cell(const char *name, double drift, double other, double percent, lw_table *t)
{
    if (percent <= LW_EQUAL_WORK_PERCENT)
        lw_table_cell(t, "equal (%.1f %% apart)", percent);
    else
        lw_table_cell(t, "%s took %.0f %% more", drift > other ? "drift" : name, percent);
    if (percent > LW_EQUAL_WORK_PERCENT)
        lw_table_mark(t, LW_MARK_WARN);
}

/* Seconds that one was trained for, by the clock or by processor. */
static double seconds_of(const lw_train_work *k, bool cpu)
{
    return cpu ? k->cpu : k->wall;
}

/* A row of seconds that each was trained for, and by how much they differ from drift's. */
static void seconds_row(const comparing *w, const lw_compare_shown *shown, const char *name,
                        bool cpu, lw_table *t)
{
    const lw_compare_work *k = w->out->work;
    char text[32];
    lw_table_cell(t, "%s", name);
    for (int i = 0; i < w->n_others; i++)
        apart_cell(k[i].name, seconds_of(&k[i].drift, cpu), seconds_of(&k[i].other, cpu),
                   cpu ? k[i].cpu_percent : k[i].wall_percent, t);
    lw_table_cell(t, "%s", lw_fmt_time(text, seconds_of(&k[0].drift, cpu)));
    for (int i = 0; i < shown->n; i++)
        lw_table_cell(t, "%s", lw_fmt_time(text, seconds_of(&k[shown->other[i]].other, cpu)));
    empty_cells(t, 1);
}

static void steps_row(const comparing *w, const lw_compare_shown *shown, lw_table *t)
{
    bool known = w->drift->step >= 0;
    for (int i = 0; i < w->n_others; i++)
        known = known && w->other[i].source->step >= 0;
    if (!known)
        return;
    lw_table_cell(t, "training steps of these weights");
    empty_cells(t, w->n_others);
    lw_table_cell(t, "%lld", (long long)w->drift->step);
    for (int i = 0; i < shown->n; i++)
        lw_table_cell(t, "%lld", (long long)w->other[shown->other[i]].source->step);
    empty_cells(t, 1);
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

static void kept_row(const comparing *w, const lw_compare_shown *shown, lw_table *t)
{
    const lw_compare_work *k = w->out->work;
    bool kept = k[0].kept_drift.metric[0];
    for (int i = 0; i < w->n_others; i++)
        kept = kept || k[i].kept_other.metric[0];
    if (!kept)
        return;
    lw_table_cell(t, "best checkpoint, on held-out pictures that it was not chosen by");
    empty_cells(t, w->n_others);
    kept_cell(t, &k[0].kept_drift);
    for (int i = 0; i < shown->n; i++)
        kept_cell(t, &k[shown->other[i]].kept_other);
    empty_cells(t, 1);
}

static void training_rows(const comparing *w, const lw_compare_shown *shown, lw_table *t)
{
    bool known = true;
    for (int i = 0; i < w->n_others; i++)
        known = known && w->out->work[i].known;
    if (known) {
        seconds_row(w, shown, "training, by the clock", false, t);
        seconds_row(w, shown, "training, processor time", true, t);
    }
    steps_row(w, shown, t);
    kept_row(w, shown, t);
}

/* "DDPM", "DDPM and flow" */
static void add_names(const comparing *w, lw_str *out)
{
    for (int i = 0; i < w->n_others; i++)
        lw_str_addf(out, "%s%s", i ? " and " : "", w->other[i].name);
}

static void add_table(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    LW_CLEANUP(lw_str_clear) lw_str title = {0}, note = {0}, column = {0};
    const lw_compare_shown shown = lw_compare_show(w);
    lw_table_column(&t, "", LW_LEFT);
    for (int i = 0; i < w->n_others; i++) {
        column.len = 0;
        lw_str_addf(&column, w->n_others > 1 ? "drift or %s" : "ahead", w->other[i].name);
        lw_table_column(&t, lw_str_c(&column), LW_LEFT);
    }
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
    training_rows(w, &shown, &t);
    lw_str_add(&title, "Drift, ");
    lw_str_add(&note, "**Ahead**: of drift and ");
    for (int i = 0; i < w->n_others; i++) {
        lw_str_addf(&title, "%s%s", i ? ", " : "", w->other[i].name);
        lw_str_addf(&note, "%s%s", i ? " or " : "", w->other[i].name);
    }
    lw_str_add(&title, " and real pictures");
    lw_str_add(&note,
               " at its best, where the 95 % interval of the "
               "difference leaves out 0 (acceptance: Wilson's intervals; Frechet distance: 60 "
               "resampled sets; both sides with as many pictures); otherwise the two are "
               "**equal**. ");
    add_names(w, &note);
    lw_str_add(&note, w->n_others > 1 ? " are" : " is");
    lw_str_add(&note,
               " **at drift's quality** with the fewest evaluations at which "
               "no measure is worse than drift's in that sense, nor by more than another seed "
               "might do, five points of acceptance or a fifth of the distance; and **at its "
               "best** with the fewest at which no other setting beats it so. A distance stands "
               "beside what as many real pictures get.");
    lw_html_table(page, &t, lw_str_c(&title), lw_str_c(&note));
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
    enum { MOST = 1 + LW_COMPARE_OTHERS + LW_COMPARE_MAX_STAGES };
    const char *names[MOST] = {"training of drift"}, *runs[MOST] = {c->drift};
    char other[LW_COMPARE_OTHERS][48];
    lw_str href[MOST] = {0};
    const char *pairs[2 * MOST];
    size_t n = 1, found = 0;
    for (int i = 0; i < w->n_others; i++) {
        snprintf(other[i], sizeof other[i], "training of %s", w->other[i].name);
        names[n] = other[i];
        runs[n++] = w->other[i].run;
    }
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
    for (int i = 0; i < w->n_others; i++)
        lw_html_note(page, LW_MARK_STRONG, w->out->other[i].headline.text);
    add_table(w, page);
}
