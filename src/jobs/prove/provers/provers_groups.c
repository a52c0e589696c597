/* SPDX-License-Identifier: Apache-2.0 */
/* Queries in groups, and a row's numbers of one over the seeds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "jobs/prove/provers/provers_job.h"

const char *const lw_provers_by_title[LW_PROVERS_BYS] = {"all", "predicate", "depth", "half links"};

static int32_t key_of(const lw_provers *p, lw_provers_by by, int32_t list)
{
    const int32_t query = list % p->queries->n;
    switch (by) {
    case LW_PROVERS_PREDICATE:
        return p->queries->atom[query].p;
    case LW_PROVERS_DEPTH:
        return p->depth[query];
    case LW_PROVERS_HALF:
        return p->half[list];
    default:
        return 0;
    }
}

static void name_group(const lw_provers *p, lw_provers_by by, lw_provers_group *g)
{
    static const char *const half[] = {"neither seen", "answer's seen", "question's seen",
                                       "both seen"};
    if (by == LW_PROVERS_PREDICATE)
        g->predicate = p->kb->predicates.name[g->key];
    else if (by == LW_PROVERS_HALF)
        snprintf(g->other, sizeof g->other, "%s", half[g->key]);
    else if (by == LW_PROVERS_DEPTH && g->key < 0)
        snprintf(g->other, sizeof g->other, "%s",
                 g->key == LW_DEPTH_NONE ? "no proof" : "not known");
    else if (by == LW_PROVERS_DEPTH)
        snprintf(g->other, sizeof g->other, "%d", g->key);
    else
        snprintf(g->other, sizeof g->other, "all");
}

const char *lw_provers_group_name(const lw_provers_group *g)
{
    return g->predicate ? g->predicate : g->other;
}

static int largest_first(const void *va, const void *vb)
{
    const lw_provers_group *a = va, *b = vb;
    if (a->lists != b->lists)
        return a->lists < b->lists ? 1 : -1;
    return (a->key > b->key) - (a->key < b->key);
}

static int by_number(const void *va, const void *vb)
{
    const int32_t a = *(const int32_t *)va, b = *(const int32_t *)vb;
    return (a > b) - (a < b);
}

int lw_provers_groups(const lw_provers *p, lw_provers_by by, lw_provers_group **out, int32_t *n)
{
    const int32_t lists = p->n_modes * p->queries->n;
    LW_CLEANUP(lw_free) int32_t *key = lw_calloc((size_t)lists + 1, sizeof *key);
    LW_CLEANUP(lw_free) lw_provers_group *g = lw_calloc((size_t)lists + 1, sizeof *g);
    if (!key || !g)
        return LW_ENOMEM;
    for (int32_t i = 0; i < lists; i++)
        key[i] = key_of(p, by, i);
    qsort(key, (size_t)lists, sizeof *key, by_number);
    *n = 0;
    for (int32_t i = 0; i < lists; i++) {
        if (i == 0 || key[i] != key[i - 1])
            g[(*n)++].key = key[i];
        g[*n - 1].lists++;
    }
    for (int32_t i = 0; i < *n; i++)
        name_group(p, by, &g[i]);
    if (by != LW_PROVERS_DEPTH)
        qsort(g, (size_t)*n, sizeof *g, largest_first);
    *out = lw_steal(&g);
    return 0;
}

lw_provers_cell lw_provers_cell_of(const lw_provers *p, int32_t row, int32_t rank_rule,
                                   lw_provers_by by, int32_t key)
{
    const int32_t lists = p->n_modes * p->queries->n;
    lw_provers_cell cell = {.lists = 0};
    double sum[LW_PROVERS_METRICS] = {0}, square[LW_PROVERS_METRICS] = {0};
    for (int32_t s = 0; s < p->seeds; s++) {
        lw_rank_sum one = {0};
        for (int32_t i = 0; i < lists; i++)
            if (by == LW_PROVERS_ALL || key_of(p, by, i) == key)
                lw_rank_sum_add(
                    &one, lw_rank_value(&p->row[row].rank[(size_t)s * (size_t)lists + (size_t)i],
                                        (lw_rank_rule)rank_rule));
        const lw_rank_metrics m = lw_rank_sum_means(&one);
        const double value[LW_PROVERS_METRICS] = {m.mrr, m.hits[0], m.hits[2]};
        cell.lists = one.n;
        for (int k = 0; k < LW_PROVERS_METRICS; k++) {
            sum[k] += value[k];
            square[k] += value[k] * value[k];
        }
    }
    for (int k = 0; k < LW_PROVERS_METRICS; k++) {
        const double mean = sum[k] / p->seeds;
        cell.mean[k] = mean;
        cell.deviation[k] = p->seeds > 1
                                ? sqrt(fmax(0, square[k] - p->seeds * mean * mean) / (p->seeds - 1))
                                : (double)NAN;
    }
    return cell;
}
