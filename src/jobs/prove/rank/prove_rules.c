/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks by rules: a goal's answers are found once and count for all its queries; the constants that no rule
 * gives are never looked at. */
#include <stdlib.h>

#include "base/base.h"
#include "jobs/prove/rank/rank_job.h"

/* Queries [first, first + n) of the order are one goal. */
typedef struct task {
    int32_t first, n;
} task;

typedef struct ranking {
    const lw_rule_plans *plans;
    const lw_rules_rank_options *o;
    const lw_atom *query;
    lw_corrupt_mode mode;
    int32_t *order; /* queries, those of one goal together */
    task *task;
    int64_t n_tasks, at;   /* first task of this round */
    lw_rule_asker **asker; /* of each worker */
    lw_rank *rank;         /* [queries] */
    int64_t *candidates;   /* [queries] */
    double *value;         /* [queries]: the query's own score */
} ranking;

static void ranking_clear(ranking *r)
{
    lw_free(&r->order);
    lw_free(&r->task);
    lw_free(&r->candidates);
}

/* ---- one list ---------------------------------------------------------------------------------- */

static void count(lw_rank *r, int compared, int64_t n)
{
    r->higher += compared > 0 ? n : 0;
    r->ties += compared == 0 ? n : 0;
    r->lower += compared < 0 ? n : 0;
}

/* All corruptions of one side: those with a score one by one, the others as a number. */
static void count_all(const ranking *r, lw_rule_asker *q, lw_atom a, int side, int32_t i)
{
    const int32_t *constant, n = lw_rule_answers(q, &constant);
    int64_t left = lw_corruptor_count(r->o->pool, a, side);
    r->candidates[i] += left;
    for (int32_t k = 0; k < n; k++) {
        if (!lw_corruptor_may(r->o->pool, a, side, constant[k]))
            continue;
        count(&r->rank[i], lw_rule_compare_kept(q, constant[k]), 1);
        left--;
    }
    /* 0 is no constant: it stands for all that have no rule */
    count(&r->rank[i], lw_rule_compare_kept(q, 0), left);
}

/* Drawn corruptions of this side. */
static void count_drawn(const ranking *r, lw_rule_asker *q, lw_atom a, int side, int32_t i)
{
    lw_corruptions c;
    lw_atom x;
    lw_corruptions_begin(r->o->pool, a, r->mode, &c);
    while (lw_corruptions_next(r->o->pool, &c, &x)) {
        if (x.arg[!side] != a.arg[!side]) /* one of the other side */
            continue;
        count(&r->rank[i], lw_rule_compare_kept(q, x.arg[side]), 1);
        r->candidates[i]++;
    }
}

/* Query i against one side, whose answers the asker has; `own`: the query is a fact, which must not prove it. */
static int rank_side(const ranking *r, lw_rule_asker *q, int32_t i, int side)
{
    const lw_atom a = r->query[i];
    const bool own = lw_facts_find(&r->o->kb->facts, a) >= 0;
    if (own)
        LW_TRY(lw_rule_ask(q, a, side, true));
    LW_TRY(lw_rule_keep(q, a.arg[side]));
    r->value[i] = lw_rule_value(q, a.arg[side]);
    if (own)
        LW_TRY(lw_rule_ask(q, a, side, false));
    if (r->o->drawn)
        count_drawn(r, q, a, side, i);
    else
        count_all(r, q, a, side, i);
    return 0;
}

static int rank_goal(void *arg, int64_t number, int worker)
{
    const ranking *r = arg;
    const task t = r->task[r->at + number];
    lw_rule_asker *q = r->asker[worker];
    for (int32_t k = t.first; k < t.first + t.n; k++) { /* a task may be run twice */
        r->rank[r->order[k]] = (lw_rank){0};
        r->candidates[r->order[k]] = 1;
    }
    for (int side = 0; side < 2; side++) {
        if ((side == 0 && r->mode == LW_CORRUPT_TAIL) || (side == 1 && r->mode == LW_CORRUPT_HEAD))
            continue;
        LW_TRY(lw_rule_ask(q, r->query[r->order[t.first]], side, false));
        for (int32_t k = t.first; k < t.first + t.n; k++)
            LW_TRY(rank_side(r, q, r->order[k], side));
    }
    return 0;
}

/* ---- all of them ------------------------------------------------------------------------------- */

typedef struct keyed {
    int32_t p, known, query;
} keyed;

static int by_goal(const void *x, const void *y)
{
    const keyed *a = x, *b = y;
    if (a->p != b->p)
        return a->p < b->p ? -1 : 1;
    if (a->known != b->known)
        return a->known < b->known ? -1 : 1;
    return (a->query > b->query) - (a->query < b->query);
}

static int make_tasks(ranking *r, int32_t n)
{
    LW_CLEANUP(lw_free) keyed *key = lw_calloc((size_t)n, sizeof *key);
    r->order = lw_calloc((size_t)n, sizeof *r->order);
    r->task = lw_calloc((size_t)n, sizeof *r->task);
    r->candidates = lw_calloc((size_t)n, sizeof *r->candidates);
    if (!key || !r->order || !r->task || !r->candidates)
        return LW_ENOMEM;
    for (int32_t i = 0; i < n; i++) /* with two sides a query is a goal of its own */
        key[i] = (keyed){
            r->query[i].p,
            r->mode == LW_CORRUPT_BOTH ? i : r->query[i].arg[r->mode == LW_CORRUPT_HEAD], i};
    qsort(key, (size_t)n, sizeof *key, by_goal);
    for (int32_t i = 0; i < n; i++) {
        const bool more = i > 0 && key[i].p == key[i - 1].p && key[i].known == key[i - 1].known;
        r->order[i] = key[i].query;
        if (!more)
            r->task[r->n_tasks++] = (task){i, 0};
        r->task[r->n_tasks - 1].n++;
    }
    return 0;
}

/* A round of goals, then a look at whoever watches. */
static int rank_mode(ranking *r, int32_t n, lw_pool *pool, const lw_observer *obs,
                     lw_rank_lists *out)
{
    enum { ROUND = 256 };
    LW_TRY(make_tasks(r, n));
    out->goals += r->n_tasks;
    for (r->at = 0; r->at < r->n_tasks; r->at += ROUND) {
        lw_observe_progress(obs, "goals", r->at, r->n_tasks, NULL);
        if (lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "stopped after %lld of %lld goals", (long long)r->at,
                           (long long)r->n_tasks);
        LW_TRY(lw_pool_try(pool, LW_MIN((int64_t)ROUND, r->n_tasks - r->at), rank_goal, r));
    }
    for (int32_t i = 0; i < n; i++) {
        out->candidates += r->candidates[i];
        lw_rank_lists_add(out, r->mode, &r->rank[i]);
    }
    return 0;
}

static int rank_modes(const lw_rule_plans *plans, const lw_rules_rank_options *o,
                      const lw_queries *queries, lw_pool *pool, lw_rule_asker **asker,
                      const lw_observer *obs, lw_rank_lists *out)
{
    for (int m = 0; m < LW_CORRUPT_MODES; m++) {
        if (!o->mode[m])
            continue;
        LW_CLEANUP(ranking_clear)
        ranking r = {.plans = plans,
                     .o = o,
                     .query = queries->atom,
                     .mode = (lw_corrupt_mode)m,
                     .asker = asker};
        LW_TRY(lw_rank_lists_keep(out, m, queries->n));
        r.rank = out->list[m];
        r.value = out->score[m];
        LW_TRY(rank_mode(&r, queries->n, pool, obs, out));
    }
    return 0;
}

int lw_rules_rank(const lw_rules_rank_options *o, const lw_queries *queries, int threads,
                  const lw_observer *obs, lw_rank_lists *out)
{
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    LW_CLEANUP(lw_rule_plans_free) lw_rule_plans *plans = NULL;
    LW_CLEANUP(lw_rank_lists_clear) lw_rank_lists r = {0};
    const double began = lw_now();
    LW_TRY(lw_pool_new(threads, &pool));
    LW_TRY(lw_rule_plans_new(o->kb, o->confidence, (lw_rule_score)o->score, &plans));
    LW_CLEANUP(lw_free) lw_rule_asker **asker = lw_calloc((size_t)threads, sizeof(lw_rule_asker *));
    if (!asker)
        return LW_ENOMEM;
    int rc = 0;
    for (int i = 0; i < threads && rc == 0; i++)
        rc = lw_rule_asker_new(plans, &asker[i]);
    if (rc == 0)
        rc = rank_modes(plans, o, queries, pool, asker, obs, &r);
    for (int i = 0; i < threads; i++)
        lw_rule_asker_free(&asker[i]);
    LW_TRY(rc);
    r.seconds = lw_now() - began;
    *out = r;
    r = (lw_rank_lists){0};
    return 0;
}
