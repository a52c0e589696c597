/* SPDX-License-Identifier: Apache-2.0 */
/* The page's parts on what scores are worth: do they rise when a picture is made worse, do they find
 * errors, does one pass do as well, do they know what is ambiguous. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_page.h"

/* ---- does a score rise when a picture is made worse? ------------------------------------------- */

typedef struct worse {
    const char *key, *name, *column;
} worse;
static const worse kinds[] = {{"blur_r5", "blurred, radius 5", "blur 5"},
                              {"blur_r15", "blurred, radius 15", "blur 15"},
                              {"down_4x", "4 times smaller", "4x smaller"},
                              {"down_8x", "8 times smaller", "8x smaller"}};

static const json_t *rise_of(const mc_shown *m, size_t kind, const char *score)
{
    const json_t *all = json_object_get(m->validity, "degradations");
    return json_object_get(json_object_get(all, kinds[kind].key), score);
}

/* Better, worse than chance, or neither: by the interval. */
static lw_mark mark_of(const double at[2], double chance)
{
    return at[0] > chance ? LW_MARK_GOOD : at[1] < chance ? LW_MARK_BAD : LW_MARK_NONE;
}

static void rise_cell(const json_t *one, lw_table *t)
{
    double share = MC_NUMBER(one, "rises"), at[2];
    if (!isfinite(share) || !lw_mc_interval(one, at)) {
        lw_table_cell(t, "-");
        return;
    }
    lw_table_cell(t, "%.0f %% [%.0f, %.0f]", 100 * share, 100 * at[0], 100 * at[1]);
    lw_table_mark(t, mark_of(at, 0.5));
}

/* Scores that any degradation has. */
static void table_of_rises(mc_page *p, const mc_shown *m)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    const json_t *all = json_object_get(m->validity, "degradations"), *first = NULL, *one;
    const char *score;
    char title[128], name[64];
    lw_table_column(&t, "score", LW_LEFT);
    for (size_t k = 0; k < LW_COUNT(kinds); k++) {
        lw_table_column(&t, kinds[k].column, LW_RIGHT);
        first = first ? first : json_object_get(all, kinds[k].key);
    }
    json_object_foreach((json_t *)first, score, one)
    {
        lw_clean(name, sizeof name, score);
        lw_table_cell(&t, "%s", name);
        for (size_t k = 0; k < LW_COUNT(kinds); k++)
            rise_cell(rise_of(m, k, score), &t);
    }
    snprintf(title, sizeof title, "%s: pictures whose score rises, every score", m->label);
    lw_html_fold_begin(p->html, title);
    lw_html_table(p->html, &t, NULL, NULL);
    lw_html_fold_end(p->html);
}

static void plot_rises(const mc_shown *m, lw_str *svg)
{
    enum { MOST = 24 };
    static const char *const scores[] = {"trace_pre", "trace_post", "angular_var",
                                         "laplace_mutual_information"};
    lw_bar bars[MOST];
    char text[MOST][16], title[160];
    size_t n = 0;
    for (size_t k = 0; k < LW_COUNT(kinds); k++)
        for (size_t s = 0; s < LW_COUNT(scores); s++) {
            const json_t *one = rise_of(m, k, scores[s]);
            double share = MC_NUMBER(one, "rises"), at[2];
            if (!isfinite(share) || !lw_mc_interval(one, at))
                continue;
            snprintf(text[n], sizeof text[n], "%.0f %%", 100 * share);
            bars[n] = (lw_bar){.group = kinds[k].name,
                               .name = scores[s],
                               .value = 100 * share,
                               .low = 100 * at[0],
                               .high = 100 * at[1],
                               .text = text[n],
                               .color = 1 + (int)s};
            n++;
        }
    snprintf(title, sizeof title, "%s: pictures whose score rises", m->label);
    lw_plot_bars(&(lw_plot){.title = title, .x_label = "% of pictures; 50 is chance"}, bars, n,
                 svg);
}

/* The mean score over that of the pictures as they are. */
static void plot_blur(const mc_shown *m, lw_str *svg)
{
    static const char *const scores[] = {"trace_pre", "trace_post", "angular_var"};
    static const double radius[] = {0, 5, 15};
    double y[LW_COUNT(scores)][LW_COUNT(radius)];
    lw_series s[LW_COUNT(scores) + 1];
    const double one[] = {1, 1}, ends[] = {0, 15};
    char title[160];
    for (size_t k = 0; k < LW_COUNT(scores); k++) {
        y[k][0] = 1;
        for (size_t r = 1; r < LW_COUNT(radius); r++) {
            const json_t *at = rise_of(m, r - 1, scores[k]);
            y[k][r] = MC_NUMBER(at, "mean") / MC_NUMBER(at, "clean_mean");
        }
        s[k] = (lw_series){
            .name = scores[k], .x = radius, .y = y[k], .n = LW_COUNT(radius), .dots = true};
    }
    s[LW_COUNT(scores)] =
        (lw_series){.name = "as it is", .x = ends, .y = one, .n = 2, .dashed = true, .color = 7};
    snprintf(title, sizeof title, "%s: mean score against blur", m->label);
    lw_plot_lines(&(lw_plot){.title = title,
                             .x_label = "radius of the blur, pixels of the picture",
                             .y_label = "times that of the picture as it is",
                             .from_zero = true,
                             .no_ends = true},
                  s, LW_COUNT(s), svg);
}

void lw_mc_page_validity(mc_page *p)
{
    bool begun = false;
    for (size_t i = 0; i < p->n; i++) {
        const mc_shown *m = &p->model[i];
        if (!json_is_object(json_object_get(m->validity, "degradations")))
            continue;
        if (!begun) {
            lw_html_section(p->html, "Does it rise when a picture is made worse?");
            lw_html_text(p->html,
                         "A blurred picture says less, so a measure of uncertainty should rise. "
                         "Same masks before and after. Half of the pictures rising is chance; a "
                         "score that falls is steady and wrong.");
            begun = true;
        }
        LW_CLEANUP(lw_str_clear) lw_str bars = {0}, blur = {0};
        plot_rises(m, &bars);
        plot_blur(m, &blur);
        const char *const svgs[] = {lw_str_c(&bars), lw_str_c(&blur)};
        lw_html_plots(p->html, svgs, NULL, 2);
        table_of_rises(p, m);
    }
    if (begun)
        lw_html_text(p->html, "In brackets the interval of 95 %. Marked are those that lie wholly "
                              "above 50 % or below.");
}

/* ---- errors, and numbers from elsewhere -------------------------------------------------------- */

static void value_cells(const json_t *one, const char *key, double chance, lw_table *t)
{
    double v = MC_NUMBER(one, key), at[2];
    bool known = isfinite(v) && lw_mc_interval(one, at);
    if (known)
        lw_table_cell(t, "%.3f", v);
    else
        lw_table_cell(t, "-");
    lw_table_mark(t, known ? mark_of(at, chance) : LW_MARK_NONE);
    if (known)
        lw_table_cell(t, "%.3f .. %.3f", at[0], at[1]);
    else
        lw_table_cell(t, "-");
    lw_table_mark(t, LW_MARK_MUTED);
}

/* NULL unless it is an object. */
static const json_t *object_of(const json_t *j, const char *key)
{
    const json_t *one = json_object_get(j, key);
    return json_is_object(one) ? one : NULL;
}

static void table_of_errors(mc_page *p, const mc_shown *m)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    const json_t *scores = object_of(m->errors, "scores");
    const json_t *reference = object_of(object_of(m->errors, "reference"), "scores");
    const char *score;
    json_t *one;
    char title[192], name[64];
    lw_table_column(&t, "score", LW_LEFT);
    if (scores) {
        lw_table_column(&t, "AUROC", LW_RIGHT);
        lw_table_column(&t, "95 %", LW_RIGHT);
        lw_table_column(&t, "labels shuffled", LW_RIGHT);
    }
    if (reference) {
        lw_table_column(&t, "rank correlation", LW_RIGHT);
        lw_table_column(&t, "95 %", LW_RIGHT);
    }
    json_object_foreach((json_t *)(scores ? scores : reference), score, one)
    {
        lw_clean(name, sizeof name, score);
        lw_table_cell(&t, "%s", name);
        if (scores) {
            value_cells(one, "auroc", 0.5, &t);
            lw_table_number(&t, MC_NUMBER(one, "shuffled"), 3);
            lw_table_mark(&t, LW_MARK_MUTED);
        }
        if (reference)
            value_cells(json_object_get(reference, score), "spearman", 0, &t);
    }
    double accuracy = MC_NUMBER(m->errors, "accuracy"), wrong = MC_NUMBER(m->errors, "errors");
    snprintf(title, sizeof title, "%s: scores beside the reference", m->label);
    if (isfinite(accuracy) && isfinite(wrong))
        snprintf(title, sizeof title, "%s: %.1f %% right, %.0f wrong", m->label, 100 * accuracy,
                 wrong);
    lw_html_table(p->html, &t, title, NULL);
}

static void say_reference(const mc_shown *m, lw_str *s)
{
    const json_t *r = json_object_get(m->errors, "reference");
    if (!r)
        return;
    lw_str_add(s, " The rank correlation is with ");
    lw_str_add_clean(s, lw_mc_text(r, "file", "a number from elsewhere"), "");
    lw_str_add(s, "; 0 is chance.");
}

void lw_mc_page_errors(mc_page *p)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    bool begun = false;
    for (size_t i = 0; i < p->n; i++) {
        const mc_shown *m = &p->model[i];
        if (!object_of(m->errors, "scores") &&
            !object_of(object_of(m->errors, "reference"), "scores"))
            continue;
        if (!begun) {
            lw_html_section(p->html, "Does it find errors?");
            lw_str_add(&text,
                       "AUROC: how probable it is that a picture which the undisturbed network "
                       "gets wrong scores above one that it gets right; .5 is chance, which "
                       "shuffled labels must give.");
            say_reference(m, &text);
            lw_html_text(p->html, lw_str_c(&text));
            begun = true;
        }
        table_of_errors(p, m);
    }
}

/* ---- one pass beside many ---------------------------------------------------------------------- */

/* Rank correlation of a one-pass score with a Monte Carlo score of the most passes. */
static double with_mc(const mc_shown *m, const char *score, const char *mc)
{
    char key[24];
    snprintf(key, sizeof key, "T=%d", (int)m->passes[m->n_passes - 1]);
    return MC_NUMBER(m->laplace, "spearman_with_mc", score, mc, key);
}

static void method_cells(const mc_shown *m, const char *score, double seconds, lw_table *t)
{
    char time[32];
    lw_table_cell(t, "%s", isfinite(seconds) ? lw_fmt_time(time, seconds) : "-");
    if (m->validity)
        rise_cell(rise_of(m, 1, score), t);
    if (json_object_get(m->errors, "scores"))
        value_cells(json_object_get(json_object_get(m->errors, "scores"), score), "auroc", 0.5, t);
}

static int table_of_methods(mc_page *p, const mc_shown *m)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    const char *score;
    json_t *one;
    char name[64];
    double trial = MC_NUMBER(m->run, "prefix_seconds") +
                   MC_NUMBER(m->run, "pass_seconds") /
                       fmax(m->trials - MC_NUMBER(m->run, "trials_before"), 1);
    double once = 0;
    json_object_foreach(json_object_get(m->laplace, "seconds"), score, one)
        once += json_is_number(one) ? json_number_value(one) : 0;
    lw_table_column(&t, "score", LW_LEFT);
    lw_table_column(&t, "passes", LW_RIGHT);
    lw_table_column(&t, "time", LW_RIGHT);
    if (m->validity)
        lw_table_column(&t, "rises, blur 15", LW_RIGHT);
    if (json_object_get(m->errors, "scores")) {
        lw_table_column(&t, "AUROC of errors", LW_RIGHT);
        lw_table_column(&t, "95 %", LW_RIGHT);
    }
    lw_table_column(&t, "with trace_pre", LW_RIGHT);
    lw_table_column(&t, "with trace_post", LW_RIGHT);
    for (int s = 0; s < LW_PASS_SCORES; s++) {
        lw_table_cell(&t, "%s", lw_pass_score_name[s]);
        lw_table_cell(&t, "%d", (int)m->passes[m->n_passes - 1]);
        method_cells(m, lw_pass_score_name[s], trial, &t);
        for (int with = 0; with < 2; with++) {
            double rho = (double)NAN;
            if (m->mean[with] && m->mean[s])
                LW_TRY(lw_spearman(m->mean[with], m->mean[s], m->n, &rho));
            lw_table_number(&t, rho, 3);
        }
    }
    json_object_foreach(json_object_get(m->laplace, "scores"), score, one)
    {
        lw_clean(name, sizeof name, score);
        lw_table_cell(&t, "%s", name);
        lw_table_cell(&t, "1");
        method_cells(m, score, once, &t);
        lw_table_number(&t, with_mc(m, score, "trace_pre"), 3);
        lw_table_number(&t, with_mc(m, score, "trace_post"), 3);
    }
    lw_html_table(p->html, &t, m->label, NULL);
    return 0;
}

int lw_mc_page_one_pass(mc_page *p)
{
    bool begun = false;
    for (size_t i = 0; i < p->n; i++) {
        const mc_shown *m = &p->model[i];
        if (!json_is_object(json_object_get(m->laplace, "scores")))
            continue;
        if (!begun) {
            lw_html_section(p->html, "One pass beside many");
            lw_html_text(p->html,
                         "The last layer's weights as a normal distribution (Laplace's "
                         "approximation, from one sweep over calibration pictures): mean and "
                         "variance of every answer in closed form, in one pass. Entropy and least "
                         "confidence are of the network as it is and cost nothing.");
            begun = true;
        }
        LW_TRY(table_of_methods(p, m));
    }
    if (begun)
        lw_html_text(p->html, "Time of Monte Carlo: one trial of the most passes; of one pass: the "
                              "sweep and all pictures, for all of its scores together. With "
                              "trace_pre, with trace_post: rank correlations.");
    return 0;
}

/* ---- zero-shot ambiguity ----------------------------------------------------------------------- */

static void ambiguity_cell(const json_t *one, const char *key, double chance, lw_table *t)
{
    double v = MC_NUMBER(one, "metrics", key), at[2];
    if (!isfinite(v) || !lw_mc_pair(json_object_get(json_object_get(one, "intervals"), key), at)) {
        lw_table_cell(t, "-");
        return;
    }
    lw_table_cell(t, "%.2f [%.2f, %.2f]", v, at[0], at[1]);
    lw_table_mark(t, mark_of(at, chance));
}

static void table_of_ambiguity(mc_page *p, const mc_shown *m)
{
    static const struct {
        const char *key, *column;
        double chance;
    } kept[] = {{"rho_uncertainty_vs_negative_margin", "with - margin", 0},
                {"rho_uncertainty_vs_entropy", "with entropy", 0},
                {"rho_uncertainty_vs_prompt_sensitivity", "with prompts", 0},
                {"auroc_low_margin", "AUROC, low margin", 0.5},
                {"auroc_high_entropy", "AUROC, high entropy", 0.5}};
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    double right = MC_NUMBER(m->exp5, "accuracy"), classes = MC_NUMBER(m->exp5, "num_classes");
    const char *score;
    json_t *one;
    char name[64], title[192];
    lw_table_column(&t, "score", LW_LEFT);
    for (size_t k = 0; k < LW_COUNT(kept); k++)
        lw_table_column(&t, kept[k].column, LW_RIGHT);
    json_object_foreach(json_object_get(m->exp5, "scores"), score, one)
    {
        lw_clean(name, sizeof name, score);
        lw_table_cell(&t, "%s", name);
        for (size_t k = 0; k < LW_COUNT(kept); k++)
            ambiguity_cell(one, kept[k].key, kept[k].chance, &t);
    }
    snprintf(title, sizeof title, "%s", m->label);
    if (isfinite(classes))
        snprintf(title, sizeof title, "%s: %.0f classes", m->label, classes);
    if (isfinite(classes) && isfinite(right))
        snprintf(title, sizeof title, "%s: %.0f classes, %.1f %% right", m->label, classes,
                 100 * right);
    lw_html_table(p->html, &t, title, NULL);
}

void lw_mc_page_ambiguity(mc_page *p)
{
    bool begun = false;
    for (size_t i = 0; i < p->all; i++) {
        const mc_shown *m = &p->model[i];
        if (!json_is_object(json_object_get(m->exp5, "scores")))
            continue;
        if (!begun) {
            lw_html_section(p->html, "Does it know what is ambiguous?");
            lw_html_text(
                p->html,
                "Every picture beside the texts of all classes: its margin (first answer "
                "over the second), the entropy of its answers, and how much they depend on "
                "the wording. Rank correlations of a score with these, 0 being chance, and "
                "how well it finds the most ambiguous pictures, .5 being chance.");
            begun = true;
        }
        table_of_ambiguity(p, m);
    }
}
