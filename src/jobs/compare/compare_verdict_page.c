/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict's section of the page. */
#include "jobs/compare/compare_verdict.h"

#include <math.h>
#include <stdio.h>

#include "base/base.h"
#include "session/session.h"

static const char *name_of(const compare_verdict *v, int32_t k)
{
    return lw_battery_at(v->battery, v->result->network[k])->name;
}

/* ---- the one number -------------------------------------------------------------------------- */

static bool is_suspect(const compare_verdict *v, int32_t i)
{
    return lw_verdict_suspect(v->result, i, &v->copies[i]);
}

static void number_cells(const compare_verdict *v, int32_t i, lw_table *t)
{
    const lw_verdict_row *r = &v->result->row[i];
    const int32_t place = lw_verdict_place(v->row, v->copies, v->result, i);
    const bool counts = !is_suspect(v, i);
    if (place)
        lw_table_cell(t, "%d", (int)place);
    else
        lw_table_cell(t, "-");
    lw_table_cell(t, counts ? "%.2f" : "(%.2f)", exp(r->number.value));
    lw_table_mark(t, counts ? LW_MARK_STRONG : LW_MARK_MUTED);
    lw_table_cell(t, "%.2f .. %.2f", exp(r->number.low), exp(r->number.high));
    lw_table_mark(t, LW_MARK_MUTED);
}

/* Times as far as real pictures, network by network; the one that alone sees a row near is marked. */
static void network_cells(const compare_verdict *v, int32_t i, lw_table *t)
{
    const lw_verdict_row *r = &v->result->row[i];
    for (int32_t k = 0; k < v->result->networks; k++) {
        lw_table_cell(t, "%.2f", exp(r->level[k]));
        if (r->suspect && r->lowest == k)
            lw_table_mark(t, LW_MARK_BAD);
        else if (r->apart == k)
            lw_table_mark(t, LW_MARK_WARN);
    }
}

static void row_cells(const compare_verdict *v, int32_t i, lw_table *t)
{
    LW_CLEANUP(lw_str_clear) lw_str honesty = {0};
    const lw_verdict_row *r = &v->result->row[i];
    bool planted = v->row[i].part == LW_VERDICT_PLANTED;
    lw_table_cell(t, "%s%s", planted ? "planted: " : "", v->name[i]);
    if (planted)
        lw_table_mark(t, LW_MARK_MUTED);
    number_cells(v, i, t);
    lw_verdict_honesty(v->battery, v->result, i, &v->copies[i], &honesty);
    lw_table_cell(t, "%s", lw_str_c(&honesty));
    if (is_suspect(v, i))
        lw_table_mark(t, planted ? LW_MARK_GOOD : LW_MARK_BAD);
    if (r->apart >= 0)
        lw_table_cell(t, "%s (%g, else %g)", name_of(v, r->apart), r->rank, r->rank_rest);
    else
        lw_table_cell(t, "none");
    network_cells(v, i, t);
}

static void add_rows(const compare_verdict *v, lw_html *page)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    lw_table_column(&t, "pictures", LW_LEFT);
    lw_table_column(&t, "place", LW_RIGHT);
    lw_table_column(&t, "times real", LW_RIGHT);
    lw_table_column(&t, "95 %", LW_RIGHT);
    lw_table_column(&t, "honest?", LW_LEFT);
    lw_table_column(&t, "who disagrees", LW_LEFT);
    for (int32_t k = 0; k < v->result->networks; k++)
        lw_table_column(&t, name_of(v, k), LW_RIGHT);
    for (int32_t i = 0; i < v->rows; i++)
        row_cells(v, i, &t);
    lw_html_table(
        page, &t, "Verdict",
        "How many times as far from real pictures as other real pictures are: 1 cannot "
        "be told from them. **times real** is the mean over the networks and over two "
        "measures (the root of the Frechet distance, and sliced Wasserstein), of "
        "logarithms; its interval is of other pictures from the same generators; in grey and "
        "parentheses it counts for nothing, because the row is suspect. **place** is among "
        "the generators' rows that count. **who "
        "disagrees**: under which network the row's rank is farthest from its rank under "
        "the others.");
}

static void add_bars(const compare_verdict *v, lw_html *page)
{
    LW_CLEANUP(lw_str_clear) lw_str svg = {0};
    lw_bar bars[LW_VERDICT_ROWS];
    char text[LW_VERDICT_ROWS][48];
    for (int32_t i = 0; i < v->rows; i++) {
        const lw_verdict_row *r = &v->result->row[i];
        snprintf(text[i], sizeof text[i], "%.2f%s", exp(r->number.value),
                 is_suspect(v, i) ? " suspect, does not count" : "");
        bars[i] = (lw_bar){.name = v->name[i],
                           .value = exp(r->number.value),
                           .low = exp(r->number.low),
                           .high = exp(r->number.high),
                           .text = text[i],
                           .muted = is_suspect(v, i),
                           .color = v->row[i].part == LW_VERDICT_MADE ? 1 : 3};
    }
    const lw_plot p = {.title = "Times as far as real pictures, all networks",
                       .x_label = "logarithmic; 1: as far as other real pictures",
                       .log_x = true,
                       .dots = true,
                       .width = 720};
    lw_plot_bars(&p, bars, (size_t)v->rows, &svg);
    const char *const svgs[] = {lw_str_c(&svg)};
    lw_html_plots(page, svgs, NULL, 1);
}

/* ---- the networks ---------------------------------------------------------------------------- */

static void add_networks(const compare_verdict *v, lw_html *page)
{
    LW_CLEANUP(lw_table_clear) lw_table t = {0};
    static const char *const names[] = {"network",    "family",   "trained", "counts",
                                        "parameters", "features", NULL};
    lw_table_columns(&t, names, 4);
    for (int32_t i = 0; i < lw_battery_count(v->battery); i++) {
        const lw_battery_net *net = lw_battery_at(v->battery, i);
        LW_CLEANUP(lw_str_clear) lw_str trained = {0};
        lw_lineage_text(&net->lineage, &trained);
        lw_table_cell(&t, "%s", net->name);
        lw_table_cell(&t, "%s", net->lineage.link[0].family);
        lw_table_cell(&t, "%s", lw_str_c(&trained));
        lw_table_cell(&t, "%s%s", net->left_out ? "no: " : "yes",
                      net->left_out ? net->left_out : "");
        lw_table_mark(&t, net->left_out ? LW_MARK_MUTED : LW_MARK_GOOD);
        lw_table_cell(&t, "%lld", (long long)net->parameters);
        lw_table_cell(&t, "%d", (int)net->dim);
    }
    lw_html_table(page, &t, "The battery",
                  "Kin of an encoder that any training of the table used count for no row: the "
                  "same weights, the same family with the same objective and data, or teacher and "
                  "student.");
}

/* ---- how it was decided ----------------------------------------------------------------------- */

static void add_rule(const compare_verdict *v, lw_html *page)
{
    const lw_verdict_rule *r = &v->result->rule;
    char text[1024];
    if (r->sets == 0)
        snprintf(text, sizeof text,
                 "Fewer than %d networks count, so nobody is accused or cleared of cheating: two "
                 "cannot outvote one.",
                 LW_VERDICT_LEAST);
    else
        snprintf(text, sizeof text,
                 "**suspect** is a row that one network sees nearer to real pictures than the "
                 "others by more than %d honest bad sets show (real pictures damaged in ten ways, "
                 "and draws of whole ones; %lld pictures each): its shortfall is over %.2f, the "
                 "larger of their largest (%.2f) and what one normal value in a thousand exceeds "
                 "(mean %.2f, sd %.2f). The rule was learnt from these alone.%s Suspect is also a "
                 "row whose pictures lie on training pictures: nearer, over their distance to "
                 "the nearest held-out picture, than nine in ten unseen real ones, and that for "
                 "surely over 30 %% of the training pictures they lie nearest to.",
                 (int)r->sets, (long long)v->result->honest, r->limit, r->worst, r->mean, r->sd,
                 r->blind ? " On this battery it can expose **nobody**: the networks disagree too "
                            "much by themselves."
                          : "");
    lw_html_text(page, text);
}

/* Planted cheaters must be exposed, the others must not be accused. */
static void add_planted(const compare_verdict *v, lw_html *page)
{
    int32_t planted = 0, exposed = 0, accused = 0;
    char text[256];
    for (int32_t i = 0; i < v->rows; i++) {
        bool of_ours = v->row[i].part == LW_VERDICT_PLANTED;
        planted += of_ours;
        exposed += of_ours && is_suspect(v, i);
        accused += v->row[i].part == LW_VERDICT_MADE && is_suspect(v, i);
    }
    if (planted > 0) {
        snprintf(text, sizeof text,
                 "%d of %d planted cheaters %s exposed. They were made to look good to one "
                 "measure, not to be good.",
                 (int)exposed, (int)planted, planted == 1 ? "is" : "are");
        lw_html_note(page, exposed == planted ? LW_MARK_GOOD : LW_MARK_BAD, text);
    }
    if (accused > 0) {
        snprintf(text, sizeof text, "%d of the generators' rows %s **suspect**: see the table.",
                 (int)accused, accused == 1 ? "is" : "are");
        lw_html_note(page, LW_MARK_WARN, text);
    }
}

void lw_compare_verdict_page(const comparing *w, lw_html *page)
{
    const compare_verdict *v = w->verdict;
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    if (!v || !v->result)
        return;
    lw_html_section(page, "Verdict of networks no training saw");
    lw_verdict_count(v->result, &text);
    lw_str_addf(&text,
                " look at the same pictures, against %lld held-out ones and as many others as a "
                "row has. Networks are counted, not layers; each sees what its files say "
                "(pictures are rounded to bytes first, as in a file).",
                (long long)v->result->reference);
    lw_html_text(page, lw_str_c(&text));
    add_planted(v, page);
    add_rows(v, page);
    add_bars(v, page);
    add_rule(v, page);
    add_networks(v, page);
}
