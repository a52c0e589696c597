/* SPDX-License-Identifier: Apache-2.0 */
/* An evaluation as one page: what came out, where it is good, how far proofs went, which limits
 * were met. */
#include <math.h>
#include <stdio.h>

#include "jobs/prove/rank/prove_eval_tables.h"

/* ---- the top --------------------------------------------------------------------------------- */

static void add_facts(const lw_prove_context *c, const lw_prove_eval *e, lw_html *h)
{
    char queries[32], threads[32];
    snprintf(queries, sizeof queries, "%d of %s", e->n_queries, c->split);
    snprintf(threads, sizeof threads, "%d", e->threads);
    const char *const facts[] = {"Dataset",   c->dataset,        "Queries",   queries,
                                 "Policy",    c->policy,         "Precision", c->precision,
                                 "Processor", lw_machine_name(), "Threads",   threads,
                                 "Leeway",    lw_build_version()};
    lw_html_facts(h, facts, LW_COUNT(facts) / 2);
}

static const char *number(char buf[32], double v)
{
    if (isnan(v))
        return "-";
    snprintf(buf, 32, "%.3f", v);
    return buf;
}

static void add_cards(const lw_prove_context *c, const lw_prove_eval *e, lw_html *h)
{
    lw_prove_means m = lw_prove_eval_means(e, c->o->rank_rule, -1, NULL, NULL);
    char mrr[32], at1[32], at10[32], proved[32], each[32], note[2][96];
    if (m.lists > 0)
        snprintf(proved, sizeof proved, "%.1f %%",
                 100 * (double)m.positives_proved / (double)m.lists);
    else
        snprintf(proved, sizeof proved, "-");
    snprintf(each, sizeof each, "%.3g ms", 1e3 * e->seconds / (double)LW_MAX(e->candidates, 1));
    if (isnan(m.false_proved) && !e->ranks_only)
        snprintf(note[0], sizeof note[0], "no corruption was walked to its end");
    else if (isnan(m.false_proved))
        snprintf(note[0], sizeof note[0], "corruptions were walked for ranks only");
    else
        snprintf(note[0], sizeof note[0], "of corruptions %.1f %%", 100 * m.false_proved);
    snprintf(note[1], sizeof note[1], "%lld candidates in %.3g s", (long long)e->candidates,
             e->seconds);
    const lw_card cards[] = {
        {"MRR", number(mrr, m.rank.mrr), lw_rank_rule_text((lw_rank_rule)c->o->rank_rule),
         LW_MARK_STRONG},
        {"Hits@1", number(at1, m.rank.hits[0]), NULL, LW_MARK_NONE},
        {"Hits@10", number(at10, m.rank.hits[2]), NULL, LW_MARK_NONE},
        {"Queries proved", proved, note[0], LW_MARK_NONE},
        {"A candidate", each, note[1], LW_MARK_NONE},
    };
    lw_html_cards(h, cards, LW_COUNT(cards));
}

static void add_rules(const lw_prove_context *c, const lw_prove_eval *e, lw_html *h)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_str_add(&text, "**Ranked**: ");
    lw_prove_candidates_rule(c, e, &text);
    lw_str_addf(&text,
                ". **Rank** %s. **Score**: ", lw_rank_rule_text((lw_rank_rule)c->o->rank_rule));
    lw_prove_score_rule(c->o, &text);
    lw_str_add(&text, ".");
    if (c->o->corrupt.n > 0)
        lw_str_add(&text, " Corruptions are a **sample**: these numbers are higher than those of a "
                          "full filtered evaluation and not comparable with them.");
    lw_html_text(h, lw_str_c(&text));
    lw_str_clear(&text);
    lw_prove_ceiling(c, e, &text);
    if (text.len > 0)
        lw_html_text(h, lw_str_c(&text));
    if (e->interrupted) {
        lw_str_clear(&text);
        lw_str_addf(&text, "**Partial**: the evaluation was interrupted. %d of %d are ranked.",
                    e->whole, e->n_lists);
        lw_html_note(h, LW_MARK_WARN, lw_str_c(&text));
    }
    if (lw_prove_alone(e) > 0) {
        lw_str_clear(&text);
        lw_str_addf(&text,
                    "%lld of %d are ranked against **nothing**: there is no corruption of "
                    "them. They count as rank 1.",
                    (long long)lw_prove_alone(e), e->whole);
        lw_html_note(h, LW_MARK_WARN, lw_str_c(&text));
    }
}

/* ---- plots ----------------------------------------------------------------------------------- */

/* Share of proofs that have ended after so many choices, and the share that proved. */
static int done_plot(const lw_prove_eval *e, lw_str *out)
{
    const size_t n = (size_t)e->depths;
    LW_CLEANUP(lw_free) double *y = lw_calloc(4 * n, sizeof *y);
    const lw_prove_ends *const of[] = {&e->positives, &e->negatives};
    static const char *const names[] = {"queries, ended", "queries, proved", "corruptions, ended",
                                        "corruptions, proved"};
    lw_series s[4];
    if (!y)
        return LW_ENOMEM;
    for (int k = 0; k < 4; k++) {
        const lw_prove_ends *ends = of[k / 2];
        int64_t sum = 0;
        for (size_t d = 0; d < n; d++) {
            sum += k % 2 ? ends->proved[d] : ends->at[d];
            y[(size_t)k * n + d] = 100 * (double)sum / (double)LW_MAX(ends->n, 1);
        }
        s[k] = (lw_series){
            .name = names[k], .y = y + (size_t)k * n, .n = n, .dashed = k % 2, .color = 1 + k / 2};
    }
    lw_plot_lines(&(lw_plot){.title = "Proofs done",
                             .x_label = "choices",
                             .y_label = "% of proofs",
                             .from_zero = true},
                  s, LW_COUNT(s), out);
    return out->failed ? LW_ENOMEM : 0;
}

/* Ranks in classes, as shares of all that are ranked. */
static int rank_plot(const lw_prove_context *c, const lw_prove_eval *e, lw_str *out)
{
    static const double upto[] = {1, 2, 3, 5, 10, 20, 50, 100, 1000, 1e300};
    static const char *const names[] = {"1",
                                        "above 1 to 2",
                                        "above 2 to 3",
                                        "above 3 to 5",
                                        "above 5 to 10",
                                        "above 10 to 20",
                                        "above 20 to 50",
                                        "above 50 to 100",
                                        "above 100 to 1000",
                                        "above 1000"};
    lw_bar bars[LW_COUNT(upto)];
    int64_t count[LW_COUNT(upto)] = {0};
    char text[LW_COUNT(upto)][48];
    size_t n = 0;
    for (int32_t i = 0; i < e->n_lists; i++) {
        size_t k = 0;
        while (lw_prove_rank(&e->list[i], c->o->rank_rule) > upto[k])
            k++;
        count[k] += e->list[i].whole;
    }
    for (size_t k = 0; k < LW_COUNT(upto); k++) {
        double share = 100 * (double)count[k] / (double)LW_MAX(e->whole, 1);
        snprintf(text[k], sizeof text[k], "%.1f %%", share);
        bars[k] = (lw_bar){.name = names[k], .value = share, .text = text[k]};
        if (count[k] > 0)
            n = k + 1;
    }
    lw_plot_bars(
        &(lw_plot){.title = "Ranks of the queries", .x_label = "% of ranked", .from_zero = true},
        bars, n, out);
    return out->failed ? LW_ENOMEM : 0;
}

/* MRR group by group, at most 24 bars. */
static int group_plot(const lw_prove_context *c, const lw_prove_eval *e, lw_prove_by by,
                      const char *title, lw_str *out)
{
    enum { MOST = 24 };
    LW_CLEANUP(lw_free) lw_prove_group *g = NULL;
    lw_bar bars[MOST];
    char text[MOST][64], largest[96];
    int32_t n;
    LW_TRY(lw_prove_groups(c, e, by, &g, &n));
    if (n > MOST) {
        snprintf(largest, sizeof largest, "%s, the %d largest of %d", title, MOST, n);
        title = largest;
    }
    lw_prove_keep_largest(g, &n, MOST);
    for (int32_t i = 0; i < n; i++) {
        snprintf(text[i], sizeof text[i], "%.3f  (%lld)", g[i].m.rank.mrr, (long long)g[i].m.lists);
        bars[i] =
            (lw_bar){.name = lw_prove_group_name(&g[i]), .value = g[i].m.rank.mrr, .text = text[i]};
    }
    lw_plot_bars(&(lw_plot){.title = title, .x_label = "MRR (how many)", .from_zero = true}, bars,
                 (size_t)n, out);
    return out->failed ? LW_ENOMEM : 0;
}

static int add_plots(const lw_prove_context *c, const lw_prove_eval *e, lw_html *h)
{
    LW_CLEANUP(lw_str_clear) lw_str ranks = {0}, done = {0}, predicates = {0}, depths = {0};
    bool published = c->queries->annotated > 0;
    LW_TRY(rank_plot(c, e, &ranks));
    LW_TRY(done_plot(e, &done));
    LW_TRY(group_plot(c, e, LW_PROVE_BY_PREDICATE, "By predicate", &predicates));
    LW_TRY(group_plot(
        c, e, published ? LW_PROVE_BY_PUBLISHED : LW_PROVE_BY_WALKED,
        published ? "By published depth of the query" : "By depth of the query's proof", &depths));
    const char *const svgs[] = {lw_str_c(&ranks), lw_str_c(&done), lw_str_c(&depths),
                                lw_str_c(&predicates)};
    lw_html_plots(h, svgs, NULL, LW_COUNT(svgs));
    return 0;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static int add_tables(const lw_prove_context *c, const lw_prove_eval *e, lw_html *h)
{
    static const char *const titles[] = {"By predicate", "By published depth",
                                         "By depth of the query's proof"};
    LW_CLEANUP(lw_table_clear) lw_table steps = {0}, cuts = {0};
    for (int by = 0; by < LW_PROVE_BYS; by++) {
        LW_CLEANUP(lw_table_clear) lw_table t = {0};
        if (by == LW_PROVE_BY_PUBLISHED && c->queries->annotated == 0)
            continue;
        int32_t of;
        LW_TRY(lw_prove_group_table(c, e, (lw_prove_by)by, 0, &t, &of));
        lw_html_section(h, titles[by]);
        lw_html_table(h, &t, NULL, NULL);
    }
    LW_TRY(lw_prove_step_table(e, &steps));
    LW_TRY(lw_prove_cut_table(e, true, &cuts));
    lw_html_section(h, "How far proofs went");
    lw_html_table(h, &steps, NULL, NULL);
    lw_html_section(h, "What the environment counted");
    lw_html_table(h, &cuts, NULL, NULL);
    return 0;
}

static void add_work(const lw_prove_context *c, const lw_prove_eval *e, lw_html *h)
{
    const lw_walks_counts *w = &e->walks;
    char text[512], bytes[32], rss[32];
    lw_html_section(h, "Work");
    snprintf(text, sizeof text,
             "%lld choices among %lld successors, of which the network computed **%lld** states%s; "
             "%lld runs of it. Deriving %.3g s, network %.3g s, choosing %.3g s. Batch %d, the "
             "evaluation held %s, the process at most %s.",
             (long long)w->query_steps, (long long)w->states_offered, (long long)w->states_scored,
             w->states_wanted > 0 ? " (the others were in the cache)" : "", (long long)w->plan_runs,
             w->engine_seconds, w->network_seconds, w->choice_seconds, e->used.fixed_batch_size,
             lw_fmt_bytes(bytes, e->bytes), lw_fmt_bytes(rss, lw_peak_rss()));
    lw_html_text(h, text);
    if (c->command)
        lw_html_fold(h, "Command", c->command);
    if (c->config)
        lw_html_fold(h, "All options (a --config file)", c->config);
}

int lw_prove_page(const lw_prove_context *c, const lw_prove_eval *e, const char *path)
{
    LW_CLEANUP(lw_html_free) lw_html *h = NULL;
    LW_CLEANUP(lw_table_clear) lw_table modes = {0};
    LW_TRY(lw_html_new("How well the policy proves", c->dataset, &h));
    add_facts(c, e, h);
    add_cards(c, e, h);
    add_rules(c, e, h);
    LW_TRY(lw_prove_mode_table(c, e, &modes));
    lw_html_table(h, &modes, NULL,
                  "MRR, Hits@k, mean rank: means over queries. AUC-PR: average precision over all "
                  "candidates together. true proved, false proved: shares of queries and of "
                  "corruptions whose walk ended in a proof.");
    LW_TRY(add_plots(c, e, h));
    LW_TRY(add_tables(c, e, h));
    add_work(c, e, h);
    return lw_html_save(h, path);
}
