/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of an evaluation, and the sentences that say how its numbers came about. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "jobs/prove/rank/prove_eval_tables.h"

static double share_of(int64_t n, int64_t of)
{
    return of > 0 ? (double)n / (double)of : (double)NAN;
}

static void ratio(lw_table *t, double v)
{
    if (isnan(v))
        lw_table_cell(t, "-");
    else
        lw_table_cell(t, "%.4f", v);
}

static void rank_columns(lw_table *t, const char *first)
{
    static const char *const columns[] = {"ranked", "MRR",     "Hits@1",
                                          "Hits@3", "Hits@10", "mean rank"};
    lw_table_column(t, first, LW_LEFT);
    for (size_t i = 0; i < LW_COUNT(columns); i++)
        lw_table_column(t, columns[i], LW_RIGHT);
}

static void rank_cells(lw_table *t, const char *name, const lw_prove_means *m)
{
    lw_table_cell(t, "%s", name);
    lw_table_cell(t, "%lld", (long long)m->lists);
    ratio(t, m->rank.mrr);
    for (int k = 0; k < LW_RANK_HITS; k++)
        ratio(t, m->rank.hits[k]);
    if (m->lists > 0)
        lw_table_cell(t, "%.2f", m->rank.mean_rank);
    else
        lw_table_cell(t, "-");
}

static void success_columns(lw_table *t)
{
    lw_table_column(t, "true proved", LW_RIGHT);
    lw_table_column(t, "corruptions", LW_RIGHT);
    lw_table_column(t, "false proved", LW_RIGHT);
}

static void success_cells(lw_table *t, const lw_prove_means *m)
{
    lw_table_percent(t, share_of(m->positives_proved, m->lists), 1);
    lw_table_cell(t, "%lld", (long long)m->negatives);
    lw_table_percent(t, m->false_proved, 1);
}

int lw_prove_mode_table(const lw_prove_context *c, const lw_prove_eval *e, lw_table *t)
{
    rank_columns(t, "corrupted");
    lw_table_column(t, "AUC-PR", LW_RIGHT);
    success_columns(t);
    for (int32_t s = 0; s <= e->n_modes; s++) {
        bool all = s == e->n_modes;
        if (all && e->n_modes == 1)
            break;
        lw_prove_means m = lw_prove_eval_means(e, c->o->rank_rule, all ? -1 : e->modes[s], NULL,
                                               NULL);
        rank_cells(t, all ? "mean" : lw_corrupt_mode_name((lw_corrupt_mode)e->modes[s]), &m);
        ratio(t, m.auc_pr);
        success_cells(t, &m);
    }
    return lw_table_ok(t);
}

static int largest_first(const void *va, const void *vb)
{
    const lw_prove_group *a = va, *b = vb;
    return a->m.lists != b->m.lists ? (a->m.lists < b->m.lists) - (a->m.lists > b->m.lists)
                                    : (a->key > b->key) - (a->key < b->key);
}

void lw_prove_keep_largest(lw_prove_group *g, int32_t *n, int32_t most)
{
    if (most == 0 || *n <= most)
        return;
    qsort(g, (size_t)*n, sizeof *g, largest_first);
    *n = most;
}

int lw_prove_group_table(const lw_prove_context *c, const lw_prove_eval *e, lw_prove_by by,
                         int32_t most, lw_table *t, int32_t *of)
{
    static const char *const first[] = {"predicate", "published depth", "depth walked"};
    LW_CLEANUP(lw_free) lw_prove_group *g = NULL;
    int32_t n;
    LW_TRY(lw_prove_groups(c, e, by, &g, &n));
    *of = n;
    lw_prove_keep_largest(g, &n, most);
    rank_columns(t, first[by]);
    success_columns(t);
    for (int32_t i = 0; i < n; i++) {
        rank_cells(t, lw_prove_group_name(&g[i]), &g[i].m);
        success_cells(t, &g[i].m);
    }
    return lw_table_ok(t);
}

int lw_prove_step_table(const lw_prove_eval *e, lw_table *t)
{
    int64_t ended = 0, all = e->positives.n + e->negatives.n;
    static const char *const columns[] = {"choices",     "ended",        "share ended",
                                          "true proved", "false proved", "still walking"};
    for (size_t i = 0; i < LW_COUNT(columns); i++)
        lw_table_column(t, columns[i], LW_RIGHT);
    for (int32_t d = 0; d < e->depths && ended < all; d++) {
        int64_t here = e->positives.at[d] + e->negatives.at[d];
        ended += here;
        lw_table_cell(t, "%d", d);
        lw_table_cell(t, "%lld", (long long)here);
        lw_table_percent(t, share_of(ended, all), 1);
        lw_table_cell(t, "%lld", (long long)e->positives.proved[d]);
        lw_table_cell(t, "%lld", (long long)e->negatives.proved[d]);
        lw_table_cell(t, "%lld", (long long)(all - ended));
    }
    return lw_table_ok(t);
}

int lw_prove_cut_table(const lw_prove_eval *e, bool all, lw_table *t)
{
    lw_table_column(t, "counted", LW_RIGHT);
    lw_table_column(t, "what", LW_LEFT);
#define C(field, what)                                                    \
    if (all || (e->walks.env.field > 0 && lw_str_ends(#field, "_cut"))) { \
        lw_table_cell(t, "%lld", (long long)e->walks.env.field);          \
        lw_table_cell(t, "%s", what);                                     \
    }
    LW_ENV_COUNTS(C)
#undef C
    return lw_table_ok(t);
}

void lw_prove_score_rule(const lw_prove_eval_options *o, lw_str *out)
{
    if (o->kge.log_score)
        lw_str_addf(out, "%g log %s, %+g when proved, %+g when not", o->kge.weight,
                    o->kge.name ? o->kge.name : "kge", o->kge.bonus, -o->kge.penalty);
    else
        lw_str_addf(out, "log-probability of the walk, -%g unless it proved", o->penalty);
}

/* Those with a whole list, once each however many modes corrupt them. */
static int64_t whole_queries(const lw_prove_eval *e, int64_t *provable)
{
    int64_t n = 0;
    *provable = 0;
    for (int32_t i = 0; i < e->n_queries; i++)
        for (int32_t s = 0; s < e->n_modes; s++) {
            const lw_prove_list *l = &e->list[s * e->n_queries + i];
            if (!l->whole)
                continue;
            n++;
            *provable += l->provable;
            break;
        }
    return n;
}

void lw_prove_ceiling(const lw_prove_context *c, const lw_prove_eval *e, lw_str *out)
{
    const lw_prove_means m = lw_prove_eval_means(e, c->o->rank_rule, -1, NULL, NULL);
    int64_t provable;
    if (e->least_atoms == 0 || m.lists == 0)
        return;
    const int64_t queries = whole_queries(e, &provable);
    lw_str_addf(out,
                "ceiling: %lld of %lld queries and %lld of %lld corruptions have a proof at all; a "
                "prover that finds every one has MRR %.4f, Hits@1 %.4f, Hits@10 %.4f\n",
                (long long)provable, (long long)queries, (long long)m.negatives_provable,
                (long long)m.negatives, m.ceiling.mrr, m.ceiling.hits[0], m.ceiling.hits[2]);
}

void lw_prove_candidates_rule(const lw_prove_context *c, const lw_prove_eval *e, lw_str *out)
{
    const lw_corrupt_options *k = &c->o->corrupt;
    lw_str_add(out, "each query against ");
    if (k->n > 0)
        lw_str_addf(out, "%lld drawn corruptions", (long long)k->n);
    else
        lw_str_add(out, "all corruptions");
    for (int32_t s = 0; s < e->n_modes; s++)
        lw_str_addf(out, "%s%s", s == 0 ? ", " : " and ",
                    e->modes[s] == LW_CORRUPT_HEAD   ? "heads"
                    : e->modes[s] == LW_CORRUPT_TAIL ? "tails"
                                                     : "heads and tails in one list");
    if (k->domains != LW_DOMAINS_NO && c->kb->domains.names.n > 0)
        lw_str_add(out, ", of the same domain");
    lw_str_add(out, k->filtered ? ", known positives passed over (filtered)"
                                : ", known positives among them (raw)");
}

double lw_prove_hit_rate(const lw_prove_eval *e)
{
    return share_of(e->walks.cache_hits, e->walks.states_wanted);
}

int64_t lw_prove_alone(const lw_prove_eval *e)
{
    int64_t n = 0;
    for (int32_t i = 0; i < e->n_lists; i++)
        n += e->list[i].whole && e->list[i].negatives == 0;
    return n;
}

int64_t lw_prove_total(const lw_prove_eval *e, int field)
{
    int64_t n = 0;
    for (int32_t i = 0; i < e->n_lists; i++)
        if (e->list[i].whole)
            n += field ? e->list[i].missing : e->list[i].known;
    return n;
}
