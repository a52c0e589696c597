/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bf16 first, f32 where that leaves a choice open. Logits of a choice matter by their differences alone, and a
 * margin m says by how much such a difference may change from bf16 to f32. A successor that bf16 puts more than m
 * below the best one is not the best in f32 either; the others are compared in f32. A draw by u takes the successor
 * at which the shares add up to more than u; shares before, A, and behind, B, become A / (A + B e^d) with |d| <= m.
 */
#include <math.h>
#include <string.h>

#include "jobs/prove/walk/prove_walks_parts.h"

static bool all_finite(const float *logit, int32_t n)
{
    return lw_first_not_finite(logit, n) == n;
}

/* ---- is it open? ----------------------------------------------------------------------------- */

/* What looks the same to the network (under --constants roles many states do) ties in f32 as well, where the first
 * is taken. */
static bool ties_with_one_before(const lw_walks *w, const lw_walker *me, const float *logit,
                                 int32_t k)
{
    const lw_contest *c = &me->contest;
    for (int32_t i = 0; i < c->n; i++)
        if (logit[c->of[i]] == logit[k] &&
            lw_state_rows_alike(w->stage[me->stage].rows, me->slot[c->of[i]], me->slot[k]))
            return true;
    return false;
}

/* The successors that f32 may find best. */
static void near_best(const lw_walks *w, lw_walker *me, const float *logit, double margin)
{
    lw_contest *c = &me->contest;
    const int32_t n = me->n;
    double most = (double)logit[0];
    for (int32_t k = 1; k < n; k++)
        most = LW_MAX(most, (double)logit[k]);
    c->n = 0;
    for (int32_t k = 0; k < n; k++)
        if ((double)logit[k] >= most - margin && !ties_with_one_before(w, me, logit, k))
            c->of[c->n++] = k;
}

/* Whether f32 draws the same by u. Sums of n shares are rounded: u must lie off the bounds by more than that. */
static bool sure_draw(const float *logit, int32_t n, double u, double margin)
{
    const double wider = exp(margin), rounding = 1e-13 * n;
    double log_prob, sum = 0, before = 0;
    int32_t k = lw_logits_choose(logit, n, u, &log_prob);
    for (int32_t i = 0; i < n; i++) {
        const double share = exp((double)logit[i] - (double)logit[k]);
        before += i < k ? share : 0;
        sum += share;
    }
    double low = before / (before + (sum - before) / wider),
           high = (before + 1) / (before + 1 + (sum - before - 1) * wider);
    return (k == 0 || low + rounding < u) && (k == n - 1 || u < high - rounding);
}

static void all_of(lw_contest *c, int32_t n)
{
    for (c->n = 0; c->n < n; c->n++)
        c->of[c->n] = c->n;
}

bool lw_contest_open(const lw_walks *w, lw_walker *me, const float *logit, double u)
{
    lw_contest *c = &me->contest;
    const double margin = me->walk.how == LW_WALK_FIRST ? w->margin.logit : (double)INFINITY;
    if (!isfinite(margin) || !all_finite(logit, me->n))
        all_of(c, me->n);
    else if (u < 0)
        near_best(w, me, logit, margin);
    else if (sure_draw(logit, me->n, u, margin))
        c->n = 1;
    else
        all_of(c, me->n);
    if (c->n == 1)
        return false;
    memcpy(c->logit, logit, (size_t)me->n * sizeof *logit);
    c->open = true;
    c->at = c->current = -1;
    return true;
}

/* ---- its rows -------------------------------------------------------------------------------- */

/* The same state in the last stage's table; -1: no slot. */
static int32_t hold_too(lw_walks *w, lw_walker *me, int32_t slot)
{
    lw_state_rows *exact = w->stage[w->stages - 1].rows;
    int32_t n;
    uint64_t hash;
    const lw_atom *atoms = lw_state_rows_atoms(w->stage[me->stage].rows, slot, &n, &hash);
    int32_t to = lw_state_rows_hold(exact, atoms, n, hash, me->path->query);
    if (to >= 0)
        me->needs = LW_MAX(me->needs, lw_state_rows_ticket(exact, to));
    return to;
}

bool lw_contest_look_up(lw_walks *w, int32_t walker)
{
    lw_walker *me = &w->walker[walker];
    lw_contest *c = &me->contest;
    if (c->at < 0) {
        me->needs = -1;
        c->current = hold_too(w, me, me->current);
        if (c->current < 0)
            return false;
        c->at = 0;
    }
    for (; c->at < c->n; c->at++) {
        c->slot[c->at] = hold_too(w, me, me->slot[c->of[c->at]]);
        if (c->slot[c->at] < 0)
            return false;
    }
    lw_walk_push(&w->stage[w->stages - 1].waiting, walker);
    return true;
}

void lw_contest_let_go(lw_walks *w, lw_walker *me)
{
    lw_contest *c = &me->contest;
    lw_state_rows *exact = w->stage[w->stages - 1].rows;
    if (c->current < 0)
        return;
    for (int32_t k = 0; k < c->n; k++)
        lw_state_rows_drop(exact, c->slot[k]);
    lw_state_rows_drop(exact, c->current);
    c->current = -1;
}

/* ---- the decision ---------------------------------------------------------------------------- */

/* By how much the differences of these logits changed at most. */
static double changed(const lw_contest *c, const float *logit)
{
    double least = (double)INFINITY, most = -(double)INFINITY;
    for (int32_t k = 0; k < c->n; k++) {
        const double d = (double)c->logit[c->of[k]] - (double)logit[k];
        least = LW_MIN(least, d);
        most = LW_MAX(most, d);
    }
    return most - least;
}

static void measure(lw_walker *me, double difference, lw_walks_seen *seen)
{
    me->measured++;
    me->difference += difference;
    seen->choices++;
    seen->logits += me->n;
    seen->most.score = LW_MAX(seen->most.score, fabs(difference));
    seen->most.score = LW_MAX(seen->most.score, fabs(me->difference) / sqrt(me->measured));
}

int32_t lw_contest_decide(lw_walks *w, lw_walker *me, const float *logit, double u, int worker,
                          double *log_prob)
{
    lw_contest *c = &me->contest;
    lw_walks_seen *seen = &w->seen[worker];
    const int32_t k = lw_logits_choose(logit, c->n, u, log_prob), chosen = c->of[k];
    const double first = lw_logits_log_prob(c->logit, me->n, chosen);
    seen->most.logit = LW_MAX(seen->most.logit, changed(c, logit));
    c->open = false;
    if (me->walk.how == LW_WALK_BOTH)
        measure(me, first - *log_prob, seen);
    if (c->n < me->n && !isnan(*log_prob)) { /* some shares are known by bf16 alone */
        *log_prob = first;
        me->inexact++;
    }
    return chosen;
}

/* ---- the margin ------------------------------------------------------------------------------ */

void lw_walks_trust(lw_walks *w, lw_walks_margin margin)
{
    w->margin = margin;
}

lw_walks_seen lw_walks_see(const lw_walks *w)
{
    lw_walks_seen all = {0};
    for (int i = 0; i < w->workers; i++) {
        const lw_walks_seen *one = &w->seen[i];
        all.choices += one->choices;
        all.logits += one->logits;
        all.most.logit = LW_MAX(all.most.logit, one->most.logit);
        all.most.score = LW_MAX(all.most.score, one->most.score);
    }
    return all;
}
