/* SPDX-License-Identifier: Apache-2.0 */
/* The page's frame: the answer in a paragraph for each model, what it cost, what it shows and what it
 * does not, how to do it again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jobs/mc/mc_page.h"

static const json_t *contract_of(const mc_shown *m)
{
    return json_object_get(m->exp0, "contract");
}

/* ---- the line under the title ------------------------------------------------------------------ */

/* A value of all models' contracts as text; "differs" where they do. */
static void common(const mc_page *p, const char *key, lw_str *out)
{
    const json_t *first = json_object_get(contract_of(&p->model[0]), key);
    for (size_t i = 1; i < p->n; i++)
        if (!json_equal(first, json_object_get(contract_of(&p->model[i]), key))) {
            lw_str_add(out, "differs by model");
            return;
        }
    if (json_is_string(first))
        lw_str_add_clean(out, json_string_value(first), "");
    else if (json_is_array(first)) {
        size_t i;
        const json_t *one;
        json_array_foreach(first, i, one)
        {
            lw_str_add(out, i ? ", " : "");
            lw_json_dump(one, 0, out);
        }
    } else if (first)
        lw_json_dump(first, 0, out);
    else
        lw_str_add(out, "unknown");
}

/* How often, of all models. */
static void common_trials(const mc_page *p, lw_str *out)
{
    bool equal = true;
    for (size_t i = 1; i < p->n; i++)
        equal = equal && p->model[i].trials == p->model[0].trials;
    if (equal)
        lw_str_addf(out, "%d", (int)p->model[0].trials);
    else
        lw_str_add(out, "differs by model");
}

void lw_mc_page_facts(mc_page *p)
{
    enum { DATA, PICTURES, NOISE, RATE, PASSES, SEED, PRECISION, TRIALS, FACTS };
    static const char *const keys[FACTS] = {"data",   "num_images", "perturb",   "dropout",
                                            "passes", "seed",       "precision", NULL};
    static const char *const names[FACTS] = {"Data",   "Pictures", "Noise",     "Rate",
                                             "Passes", "Seed",     "Precision", "Trials"};
    const json_t *run = p->model[0].run;
    lw_str value[FACTS] = {{0}};
    const char *pairs[2 * FACTS + 6];
    size_t n = 0;
    char machine[128], version[64], commit[64];
    for (int i = 0; i < FACTS; i++) {
        if (keys[i])
            common(p, keys[i], &value[i]);
        else
            common_trials(p, &value[i]);
        pairs[n++] = names[i];
        pairs[n++] = lw_str_c(&value[i]);
    }
    if (run) {
        lw_clean(machine, sizeof machine, lw_mc_text(run, "machine", "unknown"));
        lw_clean(version, sizeof version, lw_mc_text(run, "version", "unknown"));
        lw_clean(commit, sizeof commit, lw_mc_text(run, "commit", "unknown"));
        const char *const more[] = {"Machine", machine, "Leeway", version, "Commit", commit};
        for (size_t i = 0; i < LW_COUNT(more); i++)
            pairs[n++] = more[i];
    }
    lw_html_facts(p->html, pairs, n / 2);
    for (int i = 0; i < FACTS; i++)
        lw_str_clear(&value[i]);
}

/* ---- the answer -------------------------------------------------------------------------------- */

static bool usable_at(const mc_shown *m, int32_t t, const char *score)
{
    return lw_str_eq(lw_mc_text(lw_mc_reliability_at(m, t, score), "status", ""), "usable");
}

/* The T from which on every T is usable; 0: not even the most passes are. */
static int32_t usable_from(const mc_shown *m, const char *score)
{
    int32_t t = m->n_passes;
    while (t > 0 && usable_at(m, t - 1, score))
        t--;
    return t < m->n_passes ? m->passes[t] : 0;
}

static lw_mark say_reliability(const mc_shown *m, lw_str *s)
{
    int32_t most = m->passes[m->n_passes - 1];
    const json_t *r = lw_mc_reliability_at(m, m->n_passes - 1, "trace_pre");
    const char *status = lw_mc_text(r, "status", "unknown");
    char numbers[128];
    snprintf(numbers, sizeof numbers, "trace_pre at T = %d: rho %.2f, snr %.3g, icc %.2f",
             (int)most, MC_NUMBER(r, "pairwise_spearman_median"), MC_NUMBER(r, "snr"),
             MC_NUMBER(r, "icc"));
    if (lw_str_eq(status, "usable")) {
        lw_str_addf(s,
                    "its scores are **usable from T = %d on** (%s): other masks give nearly the "
                    "same order of pictures.",
                    (int)usable_from(m, "trace_pre"), numbers);
        return LW_MARK_GOOD;
    }
    if (lw_str_eq(status, "marginal")) {
        lw_str_addf(s,
                    "its scores are **marginal** (%s): other masks give a similar order of "
                    "pictures, not the same; more passes may make them usable.",
                    numbers);
        return LW_MARK_WARN;
    }
    if (lw_str_eq(status, "failed")) {
        lw_str_addf(s,
                    "its scores **fail** (%s): other masks put other pictures on top, so a "
                    "picture's score is mostly luck.",
                    numbers);
        return LW_MARK_BAD;
    }
    double n = MC_NUMBER(m->exp0, "num_images");
    lw_str_addf(s,
                "whether its scores come out again takes more than %d trial%s of %.0f picture%s: "
                "`--trials 2` or more, and pictures that differ.",
                (int)m->trials, m->trials == 1 ? "" : "s", isfinite(n) ? n : 0, n == 1 ? "" : "s");
    return LW_MARK_WARN;
}

/* Of the strongest degradation there is. */
static lw_mark say_validity(const mc_shown *m, lw_str *s)
{
    static const char *const kinds[][2] = {{"blur_r15", "blurred (radius 15)"},
                                           {"blur_r5", "blurred (radius 5)"}};
    const json_t *all = json_object_get(m->validity, "degradations");
    for (size_t i = 0; i < LW_COUNT(kinds); i++) {
        const json_t *one = json_object_get(json_object_get(all, kinds[i][0]), "trace_pre");
        double share = MC_NUMBER(one, "rises"), at[2];
        if (!isfinite(share) || !lw_mc_interval(one, at))
            continue;
        lw_str_addf(s, " When pictures are %s, trace_pre rises on **%.0f %%** of them [%.0f, %.0f]",
                    kinds[i][1], 100 * share, 100 * at[0], 100 * at[1]);
        if (at[1] < 0.5) {
            lw_str_add(s, ": **it falls where it should rise**, and so is no measure of how hard a "
                          "picture is to see, however steady.");
            return LW_MARK_BAD;
        }
        lw_str_add(s, at[0] > 0.5 ? ", as it should." : ", which is no more than chance.");
        return at[0] > 0.5 ? LW_MARK_GOOD : LW_MARK_WARN;
    }
    return LW_MARK_NONE;
}

/* The score that finds errors best. */
static const json_t *best_of(const json_t *scores, const char **name)
{
    const char *key;
    json_t *one;
    const json_t *best = NULL;
    json_object_foreach((json_t *)scores, key, one)
    {
        double v = MC_NUMBER(one, "auroc"), at[2];
        if (!isfinite(v) || !lw_mc_interval(one, at) || (best && v <= MC_NUMBER(best, "auroc")))
            continue;
        best = one;
        *name = key;
    }
    return best;
}

static void say_errors(const mc_shown *m, lw_str *s)
{
    const json_t *scores = json_object_get(m->errors, "scores");
    const json_t *one = json_object_get(scores, "trace_pre");
    const char *name = "";
    double auroc = MC_NUMBER(one, "auroc"), at[2];
    if (!isfinite(auroc) || !lw_mc_interval(one, at))
        return;
    lw_str_addf(s,
                " A wrongly classified picture scores above a right one with probability **%.2f** "
                "[%.2f, %.2f] (chance .50)",
                auroc, at[0], at[1]);
    const json_t *best = best_of(scores, &name);
    if (best && best != one && lw_mc_interval(best, at)) {
        lw_str_add(s, "; of the ");
        lw_str_addf(s, "%zu scores measured, ", json_object_size(scores));
        lw_str_add_clean(s, name, "");
        lw_str_addf(s, " does best: %.2f [%.2f, %.2f]", MC_NUMBER(best, "auroc"), at[0], at[1]);
    }
    lw_str_add(s, ".");
}

static void say_sites(const mc_shown *m, lw_str *s)
{
    const json_t *sites = json_object_get(m->exp0, "sites");
    const json_t *c = contract_of(m);
    double all = MC_NUMBER(sites, "sites"), live = MC_NUMBER(sites, "live");
    LW_CLEANUP(lw_str_clear) lw_str list = {0};
    char kind[32], stored[160];
    if (!isfinite(all) || !isfinite(live))
        return;
    lw_str_add_clean(&list, lw_mc_text(sites, "list", "unknown"), "");
    lw_clean(kind, sizeof kind, lw_mc_text(c, "perturb", "noise"));
    lw_str_addf(s, " Noise: %s %g at %.0f site%s (`%s`), %.0f live and %.0f dead.", kind,
                MC_NUMBER(c, "dropout"), all, all == 1 ? "" : "s", lw_str_c(&list), live,
                all - live);
    if (m->run) {
        lw_clean(stored, sizeof stored, lw_mc_text(m->run, "stored_dropout", "no dropout"));
        lw_str_addf(s, " The network's own files say: %s.", stored);
    }
}

static void say_apart(const mc_shown *m, lw_str *s)
{
    if (m->apart.len)
        lw_str_addf(s,
                    " Left out, because other noise gave it: %s; `--only %s` with the options of "
                    "now measures it.",
                    lw_str_c(&m->apart), lw_str_c(&m->apart));
}

/* For a terminal: without the marks of bold and of code. */
static void add_plain(lw_str *out, const char *marked)
{
    for (const char *c = marked; *c; c++)
        if (*c != '*' && *c != '`')
            lw_str_add_n(out, c, 1);
    lw_str_add(out, "\n");
}

void lw_mc_page_answer(mc_page *p, lw_str *plain)
{
    for (size_t i = 0; i < p->n; i++) {
        const mc_shown *m = &p->model[i];
        LW_CLEANUP(lw_str_clear) lw_str s = {0};
        lw_str_addf(&s, "**%s**: ", m->label);
        lw_mark again = say_reliability(m, &s), about = say_validity(m, &s);
        say_errors(m, &s);
        say_sites(m, &s);
        say_apart(m, &s);
        add_plain(plain, lw_str_c(&s));
        bool bad = again == LW_MARK_BAD || about == LW_MARK_BAD;
        bool warn = again == LW_MARK_WARN || about == LW_MARK_WARN;
        lw_html_note(p->html, bad ? LW_MARK_BAD : warn ? LW_MARK_WARN : LW_MARK_GOOD, lw_str_c(&s));
    }
}

/* ---- what it cost ------------------------------------------------------------------------------ */

static void number_cell(double v, const char *unit, lw_table *t)
{
    if (isfinite(v))
        lw_table_cell(t, "%.4g%s", v, unit);
    else
        lw_table_cell(t, "-");
}

static void cost_cells(const mc_shown *m, lw_table *t)
{
    char b[2][32], s[5][32];
    double once = MC_NUMBER(m->run, "once_flops"), pass = MC_NUMBER(m->run, "pass_flops");
    static const char *const seconds[] = {"decode_seconds", "prefix_seconds", "pass_seconds",
                                          "score_seconds", "seconds"};
    lw_table_cell(t, "%s", m->label);
    number_cell(MC_NUMBER(m->run, "parameters") / 1e6, " M", t);
    lw_table_number(t, once / 1e9, 3);
    lw_table_number(t, pass / 1e9, 3);
    lw_table_percent(t, once / (once + pass), 0);
    for (size_t i = 0; i < LW_COUNT(seconds); i++) {
        double v = MC_NUMBER(m->run, seconds[i]);
        lw_table_cell(t, "%s", isfinite(v) ? lw_fmt_time(s[i], v) : "-");
    }
    double kept = MC_NUMBER(m->run, "kept_bytes"), pixels = MC_NUMBER(m->run, "pixel_bytes");
    lw_table_cell(t, "%s", kept >= 0 && kept < 1e18 ? lw_fmt_bytes(b[0], (uint64_t)kept) : "-");
    lw_table_cell(t, "%s",
                  pixels >= 0 && pixels < 1e18 ? lw_fmt_bytes(b[1], (uint64_t)pixels) : "-");
    number_cell(MC_NUMBER(m->run, "batch_size"), "", t);
}

void lw_mc_page_costs(mc_page *p)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    static const char *const names[] = {
        "model",          "parameters", "GFLOP, front", "GFLOP, a pass", "in front", "decode",
        "front",          "passes",     "scores",       "all",           "kept",     "pixels",
        "rows at a time", NULL};
    double pictures = 0, passes = 0;
    lw_table_columns(&t, names, 1);
    for (size_t i = 0; i < p->n; i++) {
        const mc_shown *m = &p->model[i];
        if (!m->run)
            continue;
        cost_cells(m, &t);
        pictures += MC_NUMBER(m->exp0, "num_images");
        for (int32_t k = 0; k < m->n_passes; k++)
            passes += MC_NUMBER(m->exp0, "num_images") * m->passes[k] * m->trials;
    }
    if (lw_table_rows(&t) == 0)
        return;
    char text[320];
    snprintf(text, sizeof text,
             "%.0f pictures were decoded. A loop that opens every picture in every pass, each T "
             "by itself, would have decoded %.0f.",
             pictures, passes);
    lw_html_section(p->html, "What it cost");
    lw_html_text(p->html, text);
    lw_html_table(p->html, &t, NULL,
                  "front: the part of the network before the first live site, computed once per "
                  "picture and kept. Decode and front are paid once, passes with every trial. "
                  "Times are of the last call on its machine; a call that went on with another's "
                  "trials made fewer passes.");
}

/* ---- what it means ----------------------------------------------------------------------------- */

static int64_t fewest(const mc_page *p)
{
    double n = (double)INFINITY;
    for (size_t i = 0; i < p->n; i++)
        n = fmin(n, MC_NUMBER(p->model[i].exp0, "num_images"));
    return isfinite(n) && n < 1e15 ? (int64_t)n : 0;
}

void lw_mc_page_meaning(mc_page *p)
{
    bool valid = false, errors = false;
    const char *items[8];
    char few[160];
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        valid = valid || p->model[i].validity;
        errors = errors || p->model[i].errors;
    }
    items[n++] = "**Shown**: whether the same pictures come out on top when all masks are drawn "
                 "again (`usable`, `marginal`, `failed`), for this noise at these sites, on these "
                 "pictures.";
    items[n++] =
        "**Not shown by that**: that a high score means a wrong or doubtful answer. A score "
        "can come out the same every time and mean nothing.";
    items[n++] =
        valid ? "Rising under blur is the least that a measure of uncertainty must do: it says "
                "nothing about pictures that are hard in another way, and nothing about how large "
                "an error is."
              : "Whether scores rise on spoilt pictures was not measured (`--only validity`).";
    items[n++] =
        errors ? "Finding errors is measured on the labels of this data alone; intervals are of "
                 "other pictures from the same source, not of other sources. Shuffled labels stand "
                 "beside it and must give .50."
               : "Whether scores find the network's errors was not measured (`--only errors`, for "
                 "networks with classes on data with labels).";
    items[n++] = "The noise was put in by this command. A network that was trained without dropout "
                 "has no posterior that these passes sample; another rate or other sites give "
                 "other scores.";
    items[n++] = "Scores of different T do not compare: the variance of few passes is smaller by "
                 "(T - 1) / T. Nor do scores of different networks, whose features have their own "
                 "units: only the order of pictures does.";
    if (fewest(p) < 200) {
        snprintf(few, sizeof few, "%lld pictures are few: rank correlations move by about %.2f.",
                 (long long)fewest(p), 1 / sqrt(fmax((double)fewest(p) - 1, 1)));
        items[n++] = few;
    }
    lw_html_section(p->html, "What this shows, and what it does not");
    lw_html_list(p->html, items, n);
}

/* ---- once more --------------------------------------------------------------------------------- */

static void add_sites(const mc_shown *m, lw_str *out)
{
    const json_t *sites = json_object_get(m->exp0, "sites"), *one;
    static const char *const keys[] = {"live_modules", "dead_modules"};
    size_t i;
    for (size_t k = 0; k < LW_COUNT(keys); k++)
        json_array_foreach(json_object_get(sites, keys[k]), i, one)
        {
            lw_str_addf(out, "%s  ", k ? "dead" : "live");
            lw_str_add_clean(out, json_is_string(one) ? json_string_value(one) : "?", "");
            lw_str_add(out, "\n");
        }
}

void lw_mc_page_again(mc_page *p)
{
    LW_CLEANUP(lw_str_clear) lw_str commands = {0};
    lw_html_section(p->html, "How to do it again");
    lw_html_text(p->html, "The same command, seed and version give the same bits of every score, "
                          "with any batch and number of threads.");
    for (size_t i = 0; i < p->n; i++) {
        const char *c = lw_mc_text(p->model[i].run, "command", "");
        LW_CLEANUP(lw_str_clear) lw_str line = {0};
        lw_str_add_clean(&line, c, "");
        lw_str_add(&line, "\n");
        if (*c && !strstr(lw_str_c(&commands), lw_str_c(&line)))
            lw_str_add(&commands, lw_str_c(&line));
    }
    if (commands.len)
        lw_html_fold(p->html, "Commands", lw_str_c(&commands));
    for (size_t i = 0; i < p->n; i++) {
        const mc_shown *m = &p->model[i];
        LW_CLEANUP(lw_str_clear) lw_str raw = {0}, about = {0}, sites = {0};
        char title[128];
        lw_json_dump(contract_of(m), 2, &raw);
        lw_str_add_clean(&about, lw_str_c(&raw), "\n");
        add_sites(m, &sites);
        snprintf(title, sizeof title, "%s: all that decides a bit of its scores", m->label);
        lw_html_fold(p->html, title, lw_str_c(&about));
        snprintf(title, sizeof title, "%s: its sites", m->label);
        if (sites.len)
            lw_html_fold(p->html, title, lw_str_c(&sites));
    }
}
