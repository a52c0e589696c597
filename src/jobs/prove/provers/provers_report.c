/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison as tables, JSON and CSV, and what it says in three sentences. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jobs/prove/provers/provers_job.h"

static const char *const metric_name[LW_PROVERS_METRICS] = {"MRR", "Hits@1", "Hits@10"};

static lw_provers_cell all_of(const lw_provers_context *c, int32_t row)
{
    return lw_provers_cell_of(c->p, row, c->o->eval.rank_rule, LW_PROVERS_ALL, 0);
}

static void number(lw_table *t, double mean, double deviation)
{
    if (isnan(deviation))
        lw_table_cell(t, "%.4f", mean);
    else
        lw_table_cell(t, "%.4f +- %.4f", mean, deviation);
}

int lw_provers_table(const lw_provers_context *c, lw_table *t)
{
    static const char *const heads[] = {"prover",      "MRR",          "Hits@1", "Hits@10",
                                        "true proved", "false proved", "s",      NULL};
    lw_table_columns(t, heads, 1);
    for (int32_t r = 0; r < c->p->n; r++) {
        const lw_prover *x = &c->p->row[r];
        const lw_provers_cell cell = all_of(c, r);
        lw_table_cell(t, "%s", x->name);
        for (int k = 0; k < LW_PROVERS_METRICS; k++)
            number(t, cell.mean[k], cell.deviation[k]);
        lw_table_percent(t, x->true_proved, 1);
        lw_table_percent(t, x->false_proved, 2);
        lw_table_number(t, x->seconds, 3);
    }
    return lw_table_ok(t);
}

int lw_provers_group_table(const lw_provers_context *c, lw_provers_by by, int32_t most, lw_table *t,
                           int32_t *of)
{
    LW_CLEANUP(lw_free) lw_provers_group *g = NULL;
    int32_t n;
    LW_TRY(lw_provers_groups(c->p, by, &g, &n));
    lw_table_column(t, lw_provers_by_title[by], LW_LEFT);
    lw_table_column(t, "lists", LW_RIGHT);
    for (int32_t r = 0; r < c->p->n; r++)
        lw_table_column(t, c->p->row[r].name, LW_RIGHT);
    for (int32_t i = 0; i < n && (most == 0 || i < most); i++) {
        lw_table_cell(t, "%s", lw_provers_group_name(&g[i]));
        lw_table_cell(t, "%lld", (long long)g[i].lists);
        for (int32_t r = 0; r < c->p->n; r++)
            lw_table_cell(t, "%.3f",
                          lw_provers_cell_of(c->p, r, c->o->eval.rank_rule, by, g[i].key).mean[0]);
    }
    *of = n;
    return lw_table_ok(t);
}

/* ---- three sentences --------------------------------------------------------------------------- */

/* The best MRR but the ceiling's. */
static int32_t best_row(const lw_provers_context *c)
{
    int32_t best = 0;
    for (int32_t r = 1; r < c->p->n; r++)
        if (r != c->p->ceiling_row && all_of(c, r).mean[0] > all_of(c, best).mean[0])
            best = r;
    return best;
}

/* Rows whose MRR is within two deviations of the best one's. */
static void say_level(const lw_provers_context *c, int32_t best, lw_str *out)
{
    const lw_provers_cell top = all_of(c, best);
    int32_t n = 0;
    for (int32_t r = 0; r < c->p->n && c->p->seeds > 1; r++) {
        const lw_provers_cell x = all_of(c, r);
        if (r != best && r != c->p->ceiling_row &&
            top.mean[0] - x.mean[0] <= 2 * fmax(top.deviation[0], x.deviation[0]))
            lw_str_addf(out, "%s%s", n++ ? ", " : " (not told apart from ", c->p->row[r].name);
    }
    lw_str_add(out, n ? ")" : "");
}

static void say_best(const lw_provers_context *c, lw_str *out)
{
    const int32_t best = best_row(c), ceiling = c->p->ceiling_row;
    const double mrr = all_of(c, best).mean[0];
    lw_str_addf(out, "The best row is %s with an MRR of %.3f", c->p->row[best].name, mrr);
    say_level(c, best, out);
    if (ceiling < 0) {
        lw_str_add(out, "; what any prover could reach is not known, as the least model does not "
                        "fit its memory.");
        return;
    }
    const double most = all_of(c, ceiling).mean[0];
    lw_str_addf(out,
                "; a prover that finds every proof and calls all equal would come to %.3f (%.1f %% "
                "of the queries have one)%s.",
                most, 100 * c->p->row[ceiling].true_proved,
                mrr > most ? ", so that row tells proofs apart or knows more than them" : "");
}

static void say_training(const lw_provers_context *c, lw_str *out)
{
    const lw_provers_cell before = all_of(c, LW_PROVERS_UNTRAINED);
    if (c->o->n_policies == 0) {
        lw_str_add(out, "No trained policy was compared: nothing is said about training.");
        return;
    }
    for (int32_t i = 0; i < c->o->n_policies; i++) {
        const int32_t row = LW_PROVERS_POLICY + i;
        const lw_provers_cell after = all_of(c, row);
        const double gain = after.mean[0] - before.mean[0],
                     noise = fmax(isnan(after.deviation[0]) ? 0 : after.deviation[0],
                                  isnan(before.deviation[0]) ? 0 : before.deviation[0]);
        lw_str_addf(out, "%s%s is %.3f %s the untrained network's %.3f, %s", i ? "; " : "",
                    c->p->row[row].name, fabs(gain), gain < 0 ? "below" : "above", before.mean[0],
                    c->p->seeds == 1 ? "of one seed only"
                    : fabs(gain) <= 2 * noise
                        ? "which is within two deviations: no difference shown"
                        : "more than two deviations");
    }
    lw_str_add(out, ".");
}

static void say_halves(const lw_provers_context *c, lw_str *out)
{
    const int32_t best = best_row(c), rule = c->o->eval.rank_rule, half = c->p->half_row;
    double seen = 0, unseen = 0;
    int64_t n[2] = {0, 0};
    for (int32_t key = 0; key < 4; key++) {
        const lw_provers_cell cell = lw_provers_cell_of(c->p, best, rule, LW_PROVERS_HALF, key);
        if (cell.lists == 0)
            continue;
        *(key & 1 ? &seen : &unseen) += cell.mean[0] * (double)cell.lists;
        n[key & 1] += cell.lists;
    }
    lw_str_addf(out, "Counting half links alone gives %.3f; ", all_of(c, half).mean[0]);
    if (n[0] == 0)
        lw_str_add(out, "every answer was seen in its place of the predicate before, so nothing is "
                        "shown about answers that were not");
    else
        lw_str_addf(out,
                    "of the %lld lists whose answer was never seen in its place of the predicate "
                    "%s makes %.3f",
                    (long long)n[0], c->p->row[best].name, unseen / (double)n[0]);
    if (n[0] > 0 && n[1] > 0)
        lw_str_addf(out, ", of the other %lld %.3f", (long long)n[1], seen / (double)n[1]);
    lw_str_add(out, ".");
}

void lw_provers_conclude(const lw_provers_context *c, lw_str sentence[3])
{
    say_best(c, &sentence[0]);
    say_training(c, &sentence[1]);
    say_halves(c, &sentence[2]);
}

void lw_provers_say_alone(const lw_provers_context *c, lw_str *out)
{
    if (c->p->alone > 0)
        lw_str_addf(out,
                    "%lld of %lld lists are ranked against nothing: there is no corruption of "
                    "them, and every row has rank 1 there.",
                    (long long)c->p->alone, (long long)c->p->n_modes * c->p->queries->n);
}

void lw_provers_say_stages(const lw_provers_context *c, lw_str *out)
{
    lw_prover_stages all = {0};
    for (int32_t r = 0; r < c->p->n; r++) {
        const lw_prover_stages *x = &c->p->row[r].stages;
        all.n += x->n;
        all.fell_back += x->fell_back;
        all.rows_bf16 += x->rows_bf16;
        all.rows_f32 += x->rows_f32;
        all.most_of_margin = fmax(all.most_of_margin, x->most_of_margin);
    }
    if (all.n == 0)
        return;
    lw_str_addf(
        out,
        "Two stages, margin measured and not proven (at most %.0f %% of it was seen): %lld rows "
        "in bf16, %lld in f32",
        100 * all.most_of_margin, (long long)all.rows_bf16, (long long)all.rows_f32);
    if (all.fell_back > 0)
        lw_str_addf(out, "; %d of %d evaluations were done again in f32 alone", (int)all.fell_back,
                    (int)all.n);
    lw_str_add(out, ".");
}

/* ---- outputs ----------------------------------------------------------------------------------- */

static json_t *cell_json(const lw_provers_cell *cell)
{
    json_t *j = json_pack("{s:I}", "lists", (json_int_t)cell->lists);
    for (int k = 0; k < LW_PROVERS_METRICS; k++)
        json_object_set_new(j, metric_name[k],
                            json_pack("{s:o, s:o}", "mean", lw_json_real(cell->mean[k]),
                                      "deviation", lw_json_real(cell->deviation[k])));
    return j;
}

/* null: not asked for, or no network. */
static json_t *stages_json(const lw_prover_stages *x)
{
    if (x->n == 0)
        return json_null();
    return json_pack("{s:b, s:i, s:i, s:I, s:I, s:I, s:o}", "certified", 0, "evaluations", x->n,
                     "fell_back", x->fell_back, "rows_bf16", (json_int_t)x->rows_bf16, "rows_f32",
                     (json_int_t)x->rows_f32, "walked_again", (json_int_t)x->again,
                     "most_of_margin", lw_json_real(x->most_of_margin));
}

static json_t *row_json(const lw_provers_context *c, int32_t r, lw_provers_group *const *g,
                        const int32_t *n)
{
    const lw_prover *x = &c->p->row[r];
    json_t *j = json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", lw_json_name(x->name), "true_proved",
                          lw_json_real(x->true_proved), "false_proved",
                          lw_json_real(x->false_proved), "seconds", lw_json_real(x->seconds),
                          "two_stage", stages_json(&x->stages));
    for (int by = 0; by < LW_PROVERS_BYS; by++) {
        json_t *groups = json_object();
        for (int32_t i = 0; i < n[by]; i++) {
            const lw_provers_cell cell = lw_provers_cell_of(c->p, r, c->o->eval.rank_rule,
                                                            (lw_provers_by)by, g[by][i].key);
            json_object_set_new(groups, lw_provers_group_name(&g[by][i]), cell_json(&cell));
        }
        json_object_set_new(j, lw_provers_by_title[by], groups);
    }
    return j;
}

json_t *lw_provers_json(const lw_provers_context *c)
{
    lw_provers_group *g[LW_PROVERS_BYS] = {NULL};
    int32_t n[LW_PROVERS_BYS] = {0};
    lw_str said[3] = {{0}};
    json_t *rows = json_array(), *sentences = json_array();
    for (int by = 0; by < LW_PROVERS_BYS; by++)
        if (lw_provers_groups(c->p, (lw_provers_by)by, &g[by], &n[by]) < 0)
            n[by] = 0;
    for (int32_t r = 0; r < c->p->n; r++)
        json_array_append_new(rows, row_json(c, r, g, n));
    lw_provers_conclude(c, said);
    for (int i = 0; i < 3; i++) {
        json_array_append_new(sentences, json_string(lw_str_c(&said[i])));
        lw_str_clear(&said[i]);
    }
    for (int by = 0; by < LW_PROVERS_BYS; by++)
        lw_free(&g[by]);
    return json_pack("{s:o, s:o, s:i, s:i, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o}", "dataset",
                     lw_json_name(c->dataset), "split", lw_json_name(c->split), "queries",
                     (int)c->p->queries->n, "seeds", (int)c->p->seeds, "n_corruptions",
                     (json_int_t)c->o->eval.corrupt.n, "candidates", (json_int_t)c->p->candidates,
                     "provable", (json_int_t)c->p->provable, "lists_without_corruptions",
                     (json_int_t)c->p->alone, "rank_rule",
                     lw_rank_rule_text((lw_rank_rule)c->o->eval.rank_rule), "seconds",
                     lw_json_real(c->p->seconds), "conclusions", sentences, "rows", rows);
}

int lw_provers_text(const lw_provers_context *c, lw_str *out)
{
    lw_str said[3] = {{0}};
    lw_str_addf(out, "%s, %s: %d queries, %d seed%s, rank %s\n", c->dataset, c->split,
                c->p->queries->n, c->p->seeds, c->p->seeds == 1 ? "" : "s",
                lw_rank_rule_text((lw_rank_rule)c->o->eval.rank_rule));
    for (int by = 0; by < LW_PROVERS_BYS; by++) {
        enum { MOST = 12 };
        LW_CLEANUP(lw_table_clear) lw_table t = {0};
        int32_t of = 0;
        LW_TRY(by == 0 ? lw_provers_table(c, &t)
                       : lw_provers_group_table(c, (lw_provers_by)by, MOST, &t, &of));
        lw_str_add(out, by ? "\nMRR\n" : "");
        lw_table_text(&t, out);
        if (of > MOST)
            lw_str_addf(out, "and %d more (--json has them all)\n", of - MOST);
    }
    lw_provers_conclude(c, said);
    for (int i = 0; i < 3; i++) {
        lw_str_addf(out, "%s%s\n", i ? "" : "\n", lw_str_c(&said[i]));
        lw_str_clear(&said[i]);
    }
    if (c->p->alone > 0) {
        lw_str_add(out, "warning: ");
        lw_provers_say_alone(c, out);
        lw_str_add(out, "\n");
    }
    const size_t end = out->len;
    lw_provers_say_stages(c, out);
    lw_str_add(out, out->len > end ? "\n" : "");
    return out->failed ? LW_ENOMEM : 0;
}

static int csv(const lw_provers_context *c, lw_str *out)
{
    lw_str_add(out, "prover,by,group,lists,metric,mean,deviation\n");
    for (int by = 0; by < LW_PROVERS_BYS; by++) {
        LW_CLEANUP(lw_free) lw_provers_group *g = NULL;
        int32_t n;
        LW_TRY(lw_provers_groups(c->p, (lw_provers_by)by, &g, &n));
        for (int32_t r = 0; r < c->p->n; r++)
            for (int32_t i = 0; i < n; i++) {
                const lw_provers_cell cell = lw_provers_cell_of(c->p, r, c->o->eval.rank_rule,
                                                                (lw_provers_by)by, g[i].key);
                for (int k = 0; k < LW_PROVERS_METRICS; k++) {
                    char lists[24], mean[32], deviation[32] = "";
                    snprintf(lists, sizeof lists, "%lld", (long long)cell.lists);
                    snprintf(mean, sizeof mean, "%.9g", cell.mean[k]);
                    if (!isnan(cell.deviation[k]))
                        snprintf(deviation, sizeof deviation, "%.6g", cell.deviation[k]);
                    const char *const cells[] = {c->p->row[r].name,
                                                 lw_provers_by_title[by],
                                                 lw_provers_group_name(&g[i]),
                                                 lists,
                                                 metric_name[k],
                                                 mean,
                                                 deviation};
                    lw_csv_row(out, cells, LW_COUNT(cells));
                }
            }
    }
    return out->failed ? LW_ENOMEM : 0;
}

int lw_provers_save(const lw_provers_context *c, const char *dir)
{
    LW_CLEANUP(lw_new_dir_drop) lw_new_dir d = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = lw_provers_json(c);
    LW_CLEANUP(lw_str_clear) lw_str path = {0}, rows = {0};
    LW_TRY(lw_new_dir_begin(&d, dir, false));
    lw_path_join(&path, lw_str_c(&d.tmp), "summary.json");
    LW_TRY(lw_json_save(lw_str_c(&path), j));
    LW_TRY(csv(c, &rows));
    lw_path_join(&path, lw_str_c(&d.tmp), "compare.csv");
    LW_TRY(lw_file_write(lw_str_c(&path), lw_str_c(&rows), rows.len));
    lw_path_join(&path, lw_str_c(&d.tmp), "report.html");
    LW_TRY(lw_provers_page(c, lw_str_c(&path)));
    return lw_new_dir_finish(&d);
}
