/* SPDX-License-Identifier: Apache-2.0 */
/* Means over lists: of a mode, of a predicate, of a depth. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "jobs/prove/rank/prove_eval_tables.h"

typedef bool list_filter(const void *self, const lw_prove_list *l);

static double share_proved(const lw_prove_eval *e, const lw_prove_means *m)
{
    return e->ranks_only || m->negatives == 0 ? (double)NAN
                                              : (double)m->negatives_proved / (double)m->negatives;
}

static lw_prove_means of_mode(const lw_prove_eval *e, int32_t rule, int32_t slot, list_filter *of,
                              const void *self)
{
    lw_prove_means m = {.auc_pr = of ? (double)NAN : e->auc_pr[slot]};
    lw_rank_sum sum = {0}, ceiling = {0};
    for (int32_t i = 0; i < e->n_queries; i++) {
        const lw_prove_list *l = &e->list[slot * e->n_queries + i];
        if (!l->whole || (of && !of(self, l)))
            continue;
        lw_rank_sum_add(&sum, lw_prove_rank(l, rule));
        m.lists++;
        m.positives_proved += l->end == LW_PROOF_PROVED;
        m.negatives += l->negatives;
        m.negatives_proved += l->proved;
        m.known += l->known;
        m.missing += l->missing;
        lw_rank_sum_add(&ceiling, lw_rank_value(&l->ceiling, (lw_rank_rule)rule));
        m.positives_provable += l->provable;
        m.negatives_provable += l->provable ? l->ceiling.ties : l->ceiling.higher;
    }
    m.rank = lw_rank_sum_means(&sum);
    m.ceiling = lw_rank_sum_means(&ceiling);
    m.false_proved = share_proved(e, &m);
    return m;
}

/* Counts are added, ranks averaged over the modes that have any. */
static void join_ranks(lw_rank_metrics *all, const lw_rank_metrics *one, double share)
{
    all->n += one->n;
    all->mrr += share * one->mrr;
    all->mean_rank += share * one->mean_rank;
    for (int k = 0; k < LW_RANK_HITS; k++)
        all->hits[k] += share * one->hits[k];
}

static void join(lw_prove_means *all, const lw_prove_means *one, int32_t modes)
{
    double share = 1.0 / modes;
    join_ranks(&all->rank, &one->rank, share);
    join_ranks(&all->ceiling, &one->ceiling, share);
    all->positives_provable += one->positives_provable;
    all->negatives_provable += one->negatives_provable;
    all->auc_pr += share * one->auc_pr;
    all->lists += one->lists;
    all->positives_proved += one->positives_proved;
    all->negatives += one->negatives;
    all->negatives_proved += one->negatives_proved;
    all->known += one->known;
    all->missing += one->missing;
}

/* The mean over modes that have lists; one mode is the mean over itself. */
lw_prove_means lw_prove_eval_means(const lw_prove_eval *e, int32_t rule, int32_t mode,
                                   list_filter *of, const void *self)
{
    lw_prove_means one[LW_CORRUPT_MODES], all = {0};
    int32_t n = 0, with = 0;
    for (int32_t s = 0; s < e->n_modes; s++)
        if (mode < 0 || e->modes[s] == mode) {
            one[n] = of_mode(e, rule, s, of, self);
            with += one[n++].lists > 0;
        }
    if (with == 0)
        return n > 0 ? one[0] : all; /* NaN */
    for (int32_t s = 0; s < n; s++)
        if (one[s].lists > 0)
            join(&all, &one[s], with);
    all.false_proved = share_proved(e, &all);
    return all;
}

/* ---- groups ---------------------------------------------------------------------------------- */

typedef struct grouping {
    const lw_prove_context *c;
    lw_prove_by by;
    int32_t key;
} grouping;

enum { KEY_NONE = INT32_MAX - 1, KEY_UNKNOWN = INT32_MAX };

static int32_t key_of(const lw_prove_context *c, lw_prove_by by, const lw_prove_list *l)
{
    if (by == LW_PROVE_BY_PREDICATE)
        return c->queries->atom[l->query].p;
    if (by == LW_PROVE_BY_WALKED)
        return l->end == LW_PROOF_PROVED ? l->depth : KEY_NONE;
    int32_t d = c->queries->published ? c->queries->published[l->query] : LW_DEPTH_UNKNOWN;
    return d == LW_DEPTH_UNKNOWN ? KEY_UNKNOWN : d < 0 ? KEY_NONE : d;
}

static bool in_group(const void *self, const lw_prove_list *l)
{
    const grouping *g = self;
    return key_of(g->c, g->by, l) == g->key;
}

static int by_key(const void *va, const void *vb)
{
    int32_t a = *(const int32_t *)va, b = *(const int32_t *)vb;
    return (a > b) - (a < b);
}

static void name_group(const lw_prove_context *c, lw_prove_by by, lw_prove_group *g)
{
    if (by == LW_PROVE_BY_PREDICATE)
        g->predicate = c->kb->predicates.name[g->key];
    else if (g->key >= KEY_NONE)
        snprintf(g->other, sizeof g->other, "%s",
                 g->key == KEY_NONE ? "no proof" : "not annotated");
    else
        snprintf(g->other, sizeof g->other, "%d", g->key);
}

const char *lw_prove_group_name(const lw_prove_group *g)
{
    return g->predicate ? g->predicate : g->other;
}

int lw_prove_groups(const lw_prove_context *c, const lw_prove_eval *e, lw_prove_by by,
                    lw_prove_group **out, int32_t *n)
{
    LW_CLEANUP(lw_free) int32_t *key = lw_calloc((size_t)e->n_lists + 1, sizeof *key);
    LW_CLEANUP(lw_free) lw_prove_group *g = NULL;
    int32_t keys = 0, distinct = 0;
    if (!key)
        return LW_ENOMEM;
    for (int32_t i = 0; i < e->n_lists; i++)
        if (e->list[i].whole)
            key[keys++] = key_of(c, by, &e->list[i]);
    qsort(key, (size_t)keys, sizeof *key, by_key);
    for (int32_t i = 0; i < keys; i++)
        if (i == 0 || key[i] != key[i - 1])
            key[distinct++] = key[i];
    g = lw_calloc((size_t)distinct + 1, sizeof *g);
    if (!g)
        return LW_ENOMEM;
    for (int32_t i = 0; i < distinct; i++) {
        const grouping of = {c, by, key[i]};
        g[i].key = key[i];
        name_group(c, by, &g[i]);
        g[i].m = lw_prove_eval_means(e, c->o->rank_rule, -1, in_group, &of);
    }
    *out = lw_steal(&g);
    *n = distinct;
    return 0;
}
