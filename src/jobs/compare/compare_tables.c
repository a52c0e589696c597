/* SPDX-License-Identifier: Apache-2.0 */
/* The page's tables and the plots beside them: scores, the bar, latency, quality against
 * evaluations. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "jobs/compare/compare_parts.h"

/* ---- scores ----------------------------------------------------------------------------- */

static void share_cell(lw_table *t, double v, bool failed)
{
    lw_table_percent(t, v, 1);
    if (failed)
        lw_table_mark(t, LW_MARK_BAD);
}

static void plain_cell(lw_table *t, double v, bool failed)
{
    lw_table_cell(t, v < 10 ? "%.3f" : "%.1f", v);
    if (failed)
        lw_table_mark(t, LW_MARK_BAD);
}

/* Without a judge there is no bar: two lines of it prove nothing. */
static bool fails(const compare_entry *e, lw_criterion c)
{
    return e->score.judged && e->bar[c].applies && !e->bar[c].pass;
}

static void name_cells(lw_table *t, const compare_entry *e, const char *name)
{
    lw_table_cell(t, "%s", name);
    if (e->kind == COMPARE_DRIFT)
        lw_table_mark(t, LW_MARK_STRONG);
}

static void judge_cells(lw_table *t, const compare_entry *e)
{
    const lw_score *s = &e->score;
    lw_table_cell(t, e->failed ? "fails %d" : "meets all", e->failed);
    lw_table_mark(t, !e->failed                   ? LW_MARK_GOOD
                     : e->kind == COMPARE_CONTROL ? LW_MARK_MUTED
                                                  : LW_MARK_BAD);
    share_cell(t, s->strict.accepted, fails(e, LW_BAR_ACCEPTED));
    share_cell(t, s->plain.accepted_any, fails(e, LW_BAR_LEGIBLE));
    share_cell(t, s->plain.agreement, fails(e, LW_BAR_AGREEMENT));
    share_cell(t, s->strict.junk, false);
    lw_table_cell(t, "%.1f .. %.1f", 100 * s->plain.class_min, 100 * s->plain.class_max);
    if (fails(e, LW_BAR_CLASSES))
        lw_table_mark(t, LW_MARK_BAD);
}

static void quality_row(const comparing *w, lw_table *t, const compare_entry *e, const char *name)
{
    const lw_score *s = &e->score;
    name_cells(t, e, name);
    if (lw_scorer_has_judge(w->scorer))
        judge_cells(t, e);
    lw_table_cell(t, s->fd.value < 10 ? "%.2f" : "%.1f", s->fd.value);
    lw_table_cell(t, s->fd.value < 10 ? "%.2f .. %.2f" : "%.1f .. %.1f", s->fd.low, s->fd.high);
    lw_table_mark(t, LW_MARK_MUTED);
    lw_table_cell(t, "%lld", (long long)e->score.n);
}

static void variety_row(lw_table *t, const compare_entry *e, const char *name)
{
    const lw_score *s = &e->score;
    name_cells(t, e, name);
    plain_cell(t, s->diversity, fails(e, LW_BAR_DIVERSITY));
    plain_cell(t, s->colour, fails(e, LW_BAR_COLOUR));
    lw_table_cell(t, "%.3f", s->near_median);
    lw_table_cell(t, "%.3f", s->near_min);
    lw_table_cell(t, "%lld", (long long)s->copies);
    lw_table_cell(t, "%lld", (long long)s->duplicates);
    lw_table_cell(t, "%lld", (long long)e->score.n);
}

/* Both tables of a group of rows. */
typedef struct pair_of_tables {
    lw_table quality, variety;
} pair_of_tables;

static void tables_begin(const comparing *w, pair_of_tables *t)
{
    static const char *const judged[] = {"conditions",  "accepted",     "readable",
                                         "right class", "“no picture”", "classes, %"};
    static const char *const more[] = {"diversity", "colour",          "nearest", "least",
                                       "copies",    "near-duplicates", "n"};
    *t = (pair_of_tables){0};
    lw_table_column(&t->quality, "pictures", LW_LEFT);
    for (size_t i = 0; lw_scorer_has_judge(w->scorer) && i < LW_COUNT(judged); i++)
        lw_table_column(&t->quality, judged[i], LW_RIGHT);
    lw_table_column(&t->quality, "Frechet", LW_RIGHT);
    lw_table_column(&t->quality, "95 %", LW_RIGHT);
    lw_table_column(&t->quality, "n", LW_RIGHT);
    lw_table_column(&t->variety, "pictures", LW_LEFT);
    for (size_t i = 0; i < LW_COUNT(more); i++)
        lw_table_column(&t->variety, more[i], LW_RIGHT);
}

static void tables_row(const comparing *w, pair_of_tables *t, const compare_entry *e,
                       const char *name)
{
    quality_row(w, &t->quality, e, name ? name : e->score.name);
    variety_row(&t->variety, e, name ? name : e->score.name);
}

static void tables_end(lw_html *page, pair_of_tables *t, const char *quality, const char *q_note,
                       const char *variety, const char *v_note)
{
    lw_html_table(page, &t->quality, quality, q_note);
    lw_html_table(page, &t->variety, variety, v_note);
    lw_table_clear(&t->quality);
    lw_table_clear(&t->variety);
}

/* Drift, the others as the page shows them and usual ones guided, real pictures. */
static void result_tables(const comparing *w, const lw_compare_shown *shown, lw_html *page)
{
    pair_of_tables t;
    char name[128];
    tables_begin(w, &t);
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == COMPARE_DRIFT || w->entry[i].kind == COMPARE_GUIDED)
            tables_row(w, &t, &w->entry[i], NULL);
    for (int i = 0; i < shown->n; i++) {
        const char *own = strchr(shown->entry[i]->score.name, ','); /* "DDPM, 8 evaluations" */
        snprintf(name, sizeof name, "%s: %s", shown->as[i], own ? own + 2 : "");
        tables_row(w, &t, shown->entry[i], name);
    }
    for (int i = 0; i < w->n_entries; i++)
        if (lw_compare_is_guided(w, &w->entry[i]) && !lw_compare_is_shown(shown, &w->entry[i]))
            tables_row(w, &t, &w->entry[i], NULL);
    tables_row(w, &t, lw_compare_find(w, COMPARE_REAL), NULL);
    tables_end(page, &t, "Quality",
               lw_scorer_has_judge(w->scorer)
                   ? "**accepted**: the judge gives the class asked for 0.9 or more, although it "
                     "may answer “no picture of this data”, whose share stands there too. "
                     "**readable**: a plain classifier, which may not, gives some class 0.9 or "
                     "more; **right class**: its likeliest one is the one asked for. **classes**: "
                     "smallest and largest share of a class. \xe2\x9c\x97: misses the condition."
                   : NULL,
               "Variety and copying",
               "**diversity**: distance between pictures of a class, against that of real ones. "
               "**colour**: distance of the colour statistics, 0 when right, near 1 for gray "
               "averages. **nearest**, **least**: median and smallest distance to a training "
               "picture (root mean square; pictures lie in -1..1). **copies**, "
               "**near-duplicates**: pictures nearer than half of what one held-out picture in a "
               "hundred keeps, to a training picture or to each other.");
}

static void other_tables(const comparing *w, const lw_compare_shown *shown, lw_html *page)
{
    pair_of_tables t;
    tables_begin(w, &t);
    for (int i = 0; i < w->n_entries; i++) {
        const compare_entry *e = &w->entry[i];
        bool seen = e->kind == COMPARE_CONTROL || e->kind == COMPARE_DRIFT ||
                    e->kind == COMPARE_GUIDED || e->kind == COMPARE_REAL ||
                    lw_compare_is_guided(w, e);
        if (!seen && !lw_compare_is_shown(shown, e))
            tables_row(w, &t, e, NULL);
    }
    LW_CLEANUP(lw_str_clear) lw_str fold = {0};
    lw_str_add(&fold, "Every other setting of ");
    for (int i = 0; i < w->n_others; i++)
        lw_str_addf(&fold, "%s%s", i ? " and " : "", w->other[i].name);
    lw_str_add(&fold, ", smaller sets, an untrained generator");
    lw_html_fold_begin(page, lw_str_c(&fold));
    tables_end(page, &t, "Quality", NULL, "Variety and copying", NULL);
    lw_html_fold_end(page);
    tables_begin(w, &t);
    for (int i = 0; i < w->n_entries; i++)
        if (w->entry[i].kind == COMPARE_CONTROL)
            tables_row(w, &t, &w->entry[i], NULL);
    lw_html_fold_begin(page, "Controls: spoilt pictures, which must fail a condition");
    tables_end(page, &t, "Quality", NULL, "Variety and copying", NULL);
    lw_html_fold_end(page);
}

/* ---- the conditions, and acceptance by class --------------------------------------------- */

static void bar_cell(lw_table *t, const lw_bar_line *l)
{
    lw_table_cell(t, "%s", l->applies ? l->value : "-");
    lw_table_mark(t, !l->applies ? LW_MARK_MUTED : l->pass ? LW_MARK_GOOD : LW_MARK_BAD);
}

void lw_compare_bar_table(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    const compare_entry *real = lw_compare_find(w, COMPARE_REAL),
                        *drift = lw_compare_find(w, COMPARE_DRIFT);
    const lw_compare_shown shown = lw_compare_show(w);
    lw_table_column(&t, "condition", LW_LEFT);
    lw_table_column(&t, "asked", LW_RIGHT);
    lw_table_column(&t, "drift", LW_RIGHT);
    for (int i = 0; i < shown.n; i++)
        lw_table_column(&t, shown.as[i], LW_RIGHT);
    lw_table_column(&t, "real", LW_RIGHT);
    for (int i = 0; i < LW_BAR_COUNT; i++) {
        lw_table_cell(&t, "%s", drift->bar[i].name);
        lw_table_cell(&t, "%s", drift->bar[i].asked);
        bar_cell(&t, &drift->bar[i]);
        for (int k = 0; k < shown.n; k++)
            bar_cell(&t, &shown.entry[k]->bar[i]);
        bar_cell(&t, &real->bar[i]);
    }
    lw_html_table(page, &t, "Conditions that pictures must meet",
                  "A set fails when it misses one that applies. The same conditions are asked of "
                  "real pictures and of controls: real ones spoilt in seven ways, which must fail "
                  "for the conditions to mean anything.");
}

/* Accepted and asked, by the class asked for. */
static int count_accepted(const comparing *w, const compare_set *s, int64_t *accepted, int64_t *n)
{
    LW_CLEANUP(lw_free) float *own = lw_calloc((size_t)s->n, sizeof *own);
    if (!own)
        return LW_ENOMEM;
    LW_TRY(lw_scorer_own(w->scorer, s->x, s->classes, s->n, own));
    for (int64_t i = 0; i < s->n; i++) {
        n[s->classes[i]]++;
        accepted[s->classes[i]] += (double)own[i] >= LW_JUDGE_SURE;
    }
    return 0;
}

/* Counts of accepted pictures and of all, for each class: of set i 2 i k and (2 i + 1) k on. */
static int fill_class_table(const comparing *w, const compare_set *const *sets, size_t n_sets,
                            lw_table *t)
{
    size_t k = (size_t)w->classes;
    LW_CLEANUP(lw_free) int64_t *count = lw_calloc(2 * n_sets * k, sizeof *count);
    char name[16];
    if (!count)
        return LW_ENOMEM;
    for (size_t i = 0; i < n_sets; i++)
        LW_TRY(count_accepted(w, sets[i], count + 2 * i * k, count + (2 * i + 1) * k));
    for (size_t c = 0; c < k; c++) {
        lw_table_cell(t, "%s", lw_source_class(w->drift, (int32_t)c, name));
        for (size_t i = 0; i < n_sets; i++) {
            int64_t n = count[(2 * i + 1) * k + c];
            lw_table_percent(t, n ? (double)count[2 * i * k + c] / (double)n : (double)NAN, 0);
        }
    }
    return 0;
}

static int class_table(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    const compare_set *sets[2 + LW_COMPARE_OTHERS] = {&w->drift_set};
    size_t n = 1;
    char name[64];
    lw_table_column(&t, "class", LW_LEFT);
    lw_table_column(&t, "drift", LW_RIGHT);
    for (int i = 0; i < w->n_others; i++) {
        sets[n++] = &w->other[i].set;
        snprintf(name, sizeof name, "%s, %d evaluations", w->other[i].name,
                 w->other[i].usual.evaluations);
        lw_table_column(&t, name, LW_RIGHT);
    }
    sets[n++] = &w->real_set;
    lw_table_column(&t, "real", LW_RIGHT);
    LW_TRY(fill_class_table(w, sets, n, &t));
    lw_html_fold_begin(page, "Accepted by the judge, class by class");
    lw_html_table(page, &t, "Share of pictures of each class that the judge accepts", NULL);
    lw_html_fold_end(page);
    return 0;
}

int lw_compare_score_tables(const comparing *w, lw_html *page)
{
    const lw_compare_shown shown = lw_compare_show(w);
    bool by_class = lw_scorer_has_judge(w->scorer) && w->drift_set.classes && w->real_set.classes;
    for (int i = 0; i < w->n_others; i++)
        by_class = by_class && w->other[i].set.classes;
    result_tables(w, &shown, page);
    if (by_class)
        LW_TRY(class_table(w, page));
    other_tables(w, &shown, page);
    return 0;
}

/* ---- quality against evaluations -------------------------------------------------------- */

typedef double pick_fn(const lw_score *s);
static double pick_fd(const lw_score *s)
{
    return s->fd.value;
}
static double pick_accepted(const lw_score *s)
{
    return 100.0 * s->strict.accepted;
}

/* A curve over evaluations. */
typedef struct curve {
    double x[COMPARE_ENTRIES], y[COMPARE_ENTRIES];
    size_t n;
} curve;

/* Another's with a sampler and a scale of guidance, ascending. Distances of fewer pictures are moved by what
 * that number does to real ones. */
static curve curve_of(const comparing *w, compare_kind kind, lw_compare_setting how, pick_fn *pick)
{
    curve c = {.n = 0};
    for (int i = 0; i < w->n_entries; i++) {
        const compare_entry *e = &w->entry[i];
        if (e->kind != kind || e->how.sampler != how.sampler ||
            e->how.guidance_scale != how.guidance_scale)
            continue;
        double y = pick(&e->score);
        if (pick == pick_fd)
            y += w->out->floor_few - lw_compare_sized(w, COMPARE_REAL, COMPARE_REAL_FEW,
                                                      LW_MIN(e->score.n, w->real_set.n))
                                         ->fd.value;
        size_t k = c.n++;
        for (; k > 0 && c.x[k - 1] > e->how.evaluations; k--) {
            c.x[k] = c.x[k - 1];
            c.y[k] = c.y[k - 1];
        }
        c.x[k] = e->how.evaluations;
        c.y[k] = y;
    }
    return c;
}

/* One curve of the plot: another with one of its samplers, or guided. */
typedef struct named_curve {
    curve c;
    char name[96];
    int color;
    bool guided;
} named_curve;
enum { CURVES = (2 + LW_COMPARE_MAX_STRENGTHS) * LW_COMPARE_OTHERS };

static void add_curve(const comparing *w, const compare_other *o, lw_compare_setting how, int color,
                      pick_fn *pick, named_curve *out, int *n)
{
    named_curve *c = &out[*n];
    char by[64];
    c->c = curve_of(w, o->kind, how, pick);
    snprintf(c->name, sizeof c->name, "%s, %s", o->name, lw_compare_how(by, how));
    c->color = color;
    c->guided = how.guidance_scale > 0.0;
    *n += c->c.n > 0;
}

/* Of each as usual, guided, ancestral; the first scale in the colour of the method. */
static int curves_of(const comparing *w, pick_fn *pick, named_curve out[CURVES])
{
    static const int guided[LW_COMPARE_OTHERS][2] = {{5, 8}, {6, 7}};
    int n = 0;
    for (int i = 0; i < w->n_others; i++) {
        const compare_other *o = &w->other[i];
        int own = o->kind == COMPARE_FLOW ? 3 : 2;
        add_curve(w, o, o->usual, own, pick, out, &n);
        for (int k = 0, at = 0; k < w->c->n_guidance_scale; k++)
            if (w->c->guidance_scale[k] > 1.0) {
                add_curve(w, o, lw_compare_guided(o, 1, w->c->guidance_scale[k]),
                          at ? guided[i][(at - 1) % 2] : own, pick, out, &n);
                at++;
            }
        add_curve(w, o, (lw_compare_setting){.sampler = LW_SAMPLER_ANCESTRAL}, 4, pick, out, &n);
    }
    return n;
}

/* The others' curves and drift's one point. */
static void steps_plot(const comparing *w, const char *title, const char *label, pick_fn *pick,
                       double floor, bool log_y, lw_str *svg)
{
    named_curve c[CURVES];
    lw_series s[CURVES + 2];
    int n = curves_of(w, pick, c), k = 0;
    double one = 1.0, drift = pick(&w->out->drift_few), edge[2] = {1.0, 1.0},
           level[2] = {floor, floor};
    for (int i = 0; i < n; i++) {
        const curve *of = &c[i].c;
        edge[1] = fmax(edge[1], of->x[of->n - 1]);
        s[k++] = (lw_series){.name = c[i].name,
                             .x = of->x,
                             .y = of->y,
                             .n = of->n,
                             .dots = true,
                             .dashed = c[i].guided,
                             .color = c[i].color};
        if (i)
            continue;
        s[k++] =
            (lw_series){.name = "drift", .x = &one, .y = &drift, .n = 1, .dots = true, .color = 1};
        s[k++] =
            (lw_series){.name = "real", .x = edge, .y = level, .n = 2, .dashed = true, .color = 7};
    }
    const lw_plot p = {.title = title,
                       .x_label = "network evaluations per picture",
                       .y_label = label,
                       .log_x = true,
                       .log_y = log_y,
                       .from_zero = !log_y};
    lw_plot_lines(&p, s, (size_t)k, svg);
}

/* A curve that is better at fewer evaluations than at its end asks for a word. */
static void note_rise(const comparing *w, compare_kind kind, lw_compare_setting by, lw_html *page)
{
    const curve c = curve_of(w, kind, by, pick_fd);
    size_t least = 0;
    char text[256];
    for (size_t i = 1; i < c.n; i++)
        least = c.y[i] < c.y[least] ? i : least;
    if (!c.n || least + 1 == c.n)
        return;
    const lw_compare_setting how = {.evaluations = (int32_t)c.x[least], .sampler = by.sampler};
    const lw_interval *at = &lw_compare_find_setting(w, kind, how)->score.fd;
    if (c.y[c.n - 1] - c.y[least] <= at->high - at->value)
        return;
    snprintf(text, sizeof text,
             "With %s sampling the distance is least at %.0f evaluations (%.2f) and rises again to "
             "%.2f at %.0f: more evaluations are not always better.",
             lw_compare_sampler_name(how), c.x[least], c.y[least], c.y[c.n - 1], c.x[c.n - 1]);
    lw_html_text(page, text);
}

/* What may be asked for in how many evaluations, and how. */
static void explain_steps(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    for (int i = 0; i < w->n_others; i++)
        lw_str_addf(&text, "%s a %s", i ? " or" : "",
                    w->other[i].kind == COMPARE_FLOW ? "rectified flow" : "DDPM");
    LW_CLEANUP(lw_str_clear) lw_str all = {0};
    lw_str_addf(&all,
                "A%s may be asked for its picture in fewer or more evaluations. This is the "
                "same trained network, sampled with each number of them, and the drifting "
                "generator at its one. ",
                lw_str_c(&text) + 2);
    if (w->c->ddpm)
        lw_str_add(&all, "DDIM and DPM-Solver are the same for the same noise; ancestral sampling "
                         "draws new noise at every evaluation.");
    if (w->c->flow)
        lw_str_addf(&all, "%sA flow is an equation, followed by steps of %s method.",
                    w->c->ddpm ? " " : "", w->c->flow_sampler ? "Heun's" : "Euler's");
    lw_html_text(page, lw_str_c(&all));
}

void lw_compare_steps_part(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_str_clear) lw_str fd = {0}, accepted = {0};
    int points = 0;
    for (int i = 0; i < w->n_others; i++)
        points = LW_MAX(points, w->out->other[i].headline.points);
    if (points < 2)
        return;
    lw_html_section(page, "Quality against evaluations");
    explain_steps(w, page);
    steps_plot(w, "Frechet distance, lower is better", "distance", pick_fd, w->out->floor_few, true,
               &fd);
    const char *plots[2] = {lw_str_c(&fd), NULL};
    static const char *const captions[2] = {
        "points of fewer pictures are moved by what that number does to real ones", NULL};
    size_t n_plots = 1;
    if (w->out->judged) {
        steps_plot(w, "Accepted by the judge, higher is better", "% of pictures", pick_accepted,
                   100.0 * w->out->real.strict.accepted, false, &accepted);
        plots[n_plots++] = lw_str_c(&accepted);
    }
    lw_html_plots(page, plots, w->c->n_slow ? captions : NULL, n_plots);
    for (int i = 0; i < w->n_others; i++) {
        note_rise(w, w->other[i].kind, w->other[i].usual, page);
        note_rise(w, w->other[i].kind, (lw_compare_setting){.sampler = LW_SAMPLER_ANCESTRAL}, page);
    }
}

/* ---- latency ---------------------------------------------------------------------------- */

static void latency_row(lw_table *t, const lw_latency *l)
{
    char a[32], b[32], c[32], d[32], name[64];
    bool drift = lw_str_eq(l->method, "drift");
    lw_table_cell(t, "%s", drift ? "drift, 1 evaluation" : lw_compare_name(name, l->how));
    if (drift)
        lw_table_mark(t, LW_MARK_STRONG);
    lw_table_cell(t, "%d", l->batch);
    if (l->refused) {
        lw_table_cell(t, "not measured");
        for (int i = 0; i < 6; i++)
            lw_table_cell(t, "%s", "");
        lw_table_cell(t, "%s", lw_fmt_bytes(a, l->bytes));
        lw_table_cell(t, "%d", l->runs);
        return;
    }
    lw_table_cell(t, "%s%s", l->extrapolated ? "~ " : "", lw_fmt_time(a, l->median));
    lw_table_cell(t, "%s", l->extrapolated ? "" : lw_fmt_time(b, l->p95));
    lw_table_cell(t, "%s", l->extrapolated ? "" : lw_fmt_time(c, l->p99));
    lw_table_cell(t, "%s%s", l->extrapolated ? "~ " : "", lw_fmt_time(d, l->cpu));
    lw_table_cell(t, "%s", lw_fmt_time(d, l->median / l->batch));
    lw_table_cell(t, "%.*f", l->batch / l->median < 10 ? 1 : 0, l->batch / l->median);
    lw_table_cell(t, "%.1fx", l->times_drift);
    lw_table_cell(t, "%s", lw_fmt_bytes(a, l->bytes));
    lw_table_cell(t, "%d", l->runs);
    lw_table_mark(t, LW_MARK_MUTED);
}

static void latency_bars(const comparing *w, lw_str *svg)
{
    lw_bar bars[COMPARE_LATENCIES];
    char group[COMPARE_LATENCIES][48], name[COMPARE_LATENCIES][48], text[COMPARE_LATENCIES][32],
        time[32];
    size_t n = 0;
    for (int i = 0; i < w->n_latencies; i++) {
        const lw_latency *l = &w->latency[i];
        if (l->refused)
            continue;
        bool drift = lw_str_eq(l->method, "drift");
        snprintf(group[n], sizeof group[n], "%d picture%s at a time", l->batch,
                 l->batch == 1 ? "" : "s");
        bool flow = lw_compare_is_flow(l->how);
        char mark[64];
        snprintf(name[n], sizeof name[n], "%s, %d%s",
                 drift  ? "drift"
                 : flow ? "flow"
                        : "DDPM",
                 l->how.evaluations, lw_compare_mark(mark, l->how));
        snprintf(text[n], sizeof text[n], "%s%s", l->extrapolated ? "~ " : "",
                 lw_fmt_time(time, l->median / l->batch));
        bars[n] = (lw_bar){.group = group[n],
                           .name = name[n],
                           .value = 1e3 * l->median / l->batch,
                           .text = text[n],
                           .color = drift  ? 1
                                    : flow ? 3
                                           : 2};
        n++;
    }
    const lw_plot p = {.title = "Time per picture",
                       .x_label = "milliseconds per picture, logarithmic",
                       .log_x = true,
                       .dots = true,
                       .width = 720};
    lw_plot_bars(&p, bars, n, svg);
}

void lw_compare_latency_part(const comparing *w, lw_html *page)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    LW_CLEANUP(lw_str_clear) lw_str svg = {0};
    static const char *const columns[] = {
        "method",      "pictures",   "median",      "95 %",   "99 %", "processor time",
        "per picture", "pictures/s", "times drift", "memory", "runs"};
    for (size_t i = 0; i < LW_COUNT(columns); i++)
        lw_table_column(&t, columns[i], i ? LW_RIGHT : LW_LEFT);
    for (int i = 0; i < w->n_latencies; i++)
        latency_row(&t, &w->latency[i]);
    latency_bars(w, &svg);
    const char *plots[] = {lw_str_c(&svg)};
    lw_html_section(page, "How fast");
    lw_html_text(page,
                 "From noise to pixels on this machine, noise included. The rows of a batch size "
                 "take turns, and times drift is the median of pairs timed in the same turn. "
                 "Processor time is that of all threads together. Memory is what sampling "
                 "needs: weights, activations, repacked weights.");
    if (w->out->busy)
        lw_html_text(page,
                     "The machine was busy: the clock ran well ahead of the processor time "
                     "that the threads got, or a row contradicted another twice and stays **not "
                     "measured**. Times by the clock are too long here; trust processor "
                     "time and the ratios.");
    lw_html_plots(page, plots, NULL, 1);
    lw_html_table(
        page, &t, NULL,
        "~: extrapolated from ten evaluations, because all of them would take too long here. The "
        "higher quantiles mean little over few runs.");
}
