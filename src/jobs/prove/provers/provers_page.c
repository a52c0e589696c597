/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison as a page. */
#include <stdio.h>

#include "jobs/prove/provers/provers_job.h"

static void add_facts(const lw_provers_context *c, lw_html *h)
{
    char queries[48], seeds[16], drawn[48];
    snprintf(queries, sizeof queries, "%d of %s", c->p->queries->n, c->split);
    snprintf(seeds, sizeof seeds, "%d", c->p->seeds);
    if (c->o->eval.corrupt.n > 0)
        snprintf(drawn, sizeof drawn, "%lld drawn for each list", (long long)c->o->eval.corrupt.n);
    else
        snprintf(drawn, sizeof drawn, "all");
    const char *const facts[] = {
        "Dataset",    c->dataset,
        "Queries",    queries,
        "Candidates", drawn,
        "Seeds",      seeds,
        "Rank",       lw_rank_rule_text((lw_rank_rule)c->o->eval.rank_rule),
        "Processor",  lw_machine_name(),
        "Leeway",     lw_build_version()};
    lw_html_facts(h, facts, LW_COUNT(facts) / 2);
}

static int mrr_plot(const lw_provers_context *c, lw_str *out)
{
    enum { MOST = 24 };
    lw_bar bars[MOST];
    char text[MOST][48];
    const int32_t n = LW_MIN(c->p->n, (int32_t)MOST);
    for (int32_t r = 0; r < n; r++) {
        const lw_provers_cell cell = lw_provers_cell_of(c->p, r, c->o->eval.rank_rule,
                                                        LW_PROVERS_ALL, 0);
        if (c->p->seeds > 1)
            snprintf(text[r], sizeof text[r], "%.3f +- %.3f", cell.mean[0], cell.deviation[0]);
        else
            snprintf(text[r], sizeof text[r], "%.3f", cell.mean[0]);
        bars[r] = (lw_bar){.name = c->p->row[r].name, .value = cell.mean[0], .text = text[r]};
    }
    lw_plot_bars(&(lw_plot){.title = "MRR", .from_zero = true}, bars, (size_t)n, out);
    return out->failed ? LW_ENOMEM : 0;
}

static int add_tables(const lw_provers_context *c, lw_html *h)
{
    static const char *const title[] = {NULL, "By predicate", "By length of the shortest proof",
                                        "By half links"};
    static const char *const note[] = {
        NULL, "MRR, mean over seeds; the most frequent predicates first.",
        "Steps of the shortest proof by the least model; where that does not fit its memory, the "
        "depths that came with the dataset.",
        "Of a query p(a,?) with the answer b: are there other facts p(.,b) (the answer's half "
        "link), "
        "and p(a,.) (the question's)? A model without them has little to go by but proofs."};
    for (int by = 1; by < LW_PROVERS_BYS; by++) {
        enum { MOST = 40 };
        LW_CLEANUP(lw_table_clear) lw_table t = {0};
        LW_CLEANUP(lw_str_clear) lw_str text = {0};
        int32_t of;
        LW_TRY(lw_provers_group_table(c, (lw_provers_by)by, MOST, &t, &of));
        lw_str_add(&text, note[by]);
        if (of > MOST)
            lw_str_addf(&text, " %d of %d are shown; compare.csv has them all.", MOST, of);
        lw_html_section(h, title[by]);
        lw_html_table(h, &t, NULL, lw_str_c(&text));
    }
    return 0;
}

int lw_provers_page(const lw_provers_context *c, const char *path)
{
    LW_CLEANUP(lw_html_free) lw_html *h = NULL;
    LW_CLEANUP(lw_table_clear) lw_table all = {0};
    LW_CLEANUP(lw_str_clear) lw_str plot = {0};
    lw_str said[3] = {{0}};
    LW_TRY(lw_html_new("Who proves what", c->dataset, &h));
    add_facts(c, h);
    lw_provers_conclude(c, said);
    const char *const items[] = {lw_str_c(&said[0]), lw_str_c(&said[1]), lw_str_c(&said[2])};
    lw_html_list(h, items, LW_COUNT(items));
    for (int i = 0; i < 3; i++)
        lw_str_clear(&said[i]);
    if (c->p->alone > 0) {
        LW_CLEANUP(lw_str_clear) lw_str alone = {0};
        lw_provers_say_alone(c, &alone);
        lw_html_note(h, LW_MARK_WARN, lw_str_c(&alone));
    }
    LW_TRY(lw_provers_table(c, &all));
    lw_html_table(
        h, &all, NULL,
        "Mean and standard deviation over seeds, each of which draws other candidates and "
        "walks anew. true proved, false proved: shares of queries and of corruptions whose "
        "walk ended in a proof. ceiling: a prover that finds every proof and calls all of them "
        "equal; rows that weigh proofs, or "
        "know more than them, can pass it. untrained: the "
        "first policy's network with the weights of a beginning. half links: how many facts "
        "the candidate's own argument has with the predicate.");
    LW_TRY(mrr_plot(c, &plot));
    const char *const svgs[] = {lw_str_c(&plot)};
    lw_html_plots(h, svgs, NULL, 1);
    LW_TRY(add_tables(c, h));
    if (c->command)
        lw_html_fold(h, "Command", c->command);
    if (c->config)
        lw_html_fold(h, "All options (a --config file)", c->config);
    return lw_html_save(h, path);
}
