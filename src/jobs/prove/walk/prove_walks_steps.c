/* SPDX-License-Identifier: Apache-2.0 */
/* The stations of a step: successors, their features, the choice. */
#include <math.h>
#include <string.h>

#include "jobs/prove/walk/prove_walks_parts.h"

/* ---- successors ------------------------------------------------------------------------------ */

static int32_t choose_uniform(const lw_walks *w, lw_walker *me, int32_t n)
{
    me->log_prob -= log((double)n);
    return (int32_t)lw_rng_below(w->key, (uint32_t)me->path->depth, (uint64_t)me->walk.id, 0,
                                 (uint32_t)n);
}

/* slack: how far the log-probability of f32 may lie above. */
static void give_up(lw_walker *me, double slack)
{
    if (me->walk.give_up < 0 && me->log_prob + slack < me->walk.give_up &&
        me->path->end == LW_PROOF_OPEN)
        me->path->end = LW_PROOF_ABANDONED;
}

void lw_walks_derive(lw_walks *w, lw_lane *lane, int worker)
{
    lw_walker *me = &w->walker[lane->walker];
    lw_walks_counts *c = &w->part[worker];
    lw_moves m;
    lane->n = 0;
    lane->at = -1;
    for (int32_t step = 0; step < LW_WALKS_STEPS; step++) {
        lw_env_moves(w->env[worker], me->path, &m);
        if (m.n == 0)
            return;
        c->query_steps++;
        c->states_offered += m.n;
        c->forced += m.n == 1;
        if (m.n > 1 && w->stages > 0) {
            lane->n = m.n;
            lw_moves_copy(&m, lane->moves);
            return;
        }
        lw_env_take(w->env[worker], me->path, &m, m.n > 1 ? choose_uniform(w, me, m.n) : 0);
        give_up(me, lw_walks_slack(w, me));
    }
}

/* ---- features -------------------------------------------------------------------------------- */

static lw_state_rows *rows_of(const lw_walks *w, const lw_walker *me)
{
    return w->stage[me->stage].rows;
}

static bool hold_endf(const lw_walks *w, lw_walk_stage *s)
{
    const lw_atom endf = {lw_kb_endf(w->kb), {0, 0}};
    if (s->endf < 0)
        s->endf = lw_state_rows_hold(s->rows, &endf, 1, lw_state_hash(&endf, 1), endf);
    return s->endf >= 0;
}

static void need(const lw_walks *w, lw_walker *me, int32_t slot)
{
    me->needs = LW_MAX(me->needs, lw_state_rows_ticket(rows_of(w, me), slot));
}

/* The state the choice is made in: last step's successor, or one that was never scored. */
static bool hold_current(lw_walks *w, lw_walker *me)
{
    if (me->current >= 0 && me->current_for != me->path->n_states) {
        lw_state_rows_drop(rows_of(w, me), me->current);
        me->current = -1;
    }
    if (me->current < 0) {
        int32_t n;
        const lw_atom *state = lw_path_state(me->path, &w->o.env, &n);
        me->current = lw_state_rows_hold(rows_of(w, me), state, n,
                                         me->path->hash[me->path->n_states - 1], me->path->query);
        me->current_for = me->path->n_states;
    }
    if (me->current < 0)
        return false;
    need(w, me, me->current);
    return true;
}

static int32_t hold_successor(lw_walks *w, const lw_lane *lane, int32_t k)
{
    const lw_moves *m = lane->moves;
    const lw_atom *state = m->atoms + m->first[k];
    lw_walk_stage *s = &w->stage[w->walker[lane->walker].stage];
    if (state->p == lw_kb_endf(w->kb)) {
        if (!hold_endf(w, s))
            return -1;
        w->counts.ends_offered++;
        lw_state_rows_hold_again(s->rows, s->endf);
        return s->endf;
    }
    return lw_state_rows_hold(s->rows, state, m->first[k + 1] - m->first[k], m->hash[k],
                              w->walker[lane->walker].path->query);
}

static bool look_up_lane(lw_walks *w, lw_lane *lane)
{
    enum { AHEAD = 4 };
    lw_walker *me = &w->walker[lane->walker];
    if (lane->at < 0) {
        me->needs = -1;
        if (!hold_current(w, me))
            return false;
        me->n = lane->n;
        me->next_var = lane->moves->next_var;
        lane->at = 0;
    }
    for (; lane->at < lane->n; lane->at++) {
        if (lane->at + AHEAD < lane->n)
            lw_state_rows_prefetch(rows_of(w, me), lane->moves->hash[lane->at + AHEAD]);
        int32_t slot = hold_successor(w, lane, lane->at);
        if (slot < 0)
            return false;
        me->slot[lane->at] = slot;
        need(w, me, slot);
    }
    lw_walk_push(&w->stage[me->stage].waiting, lane->walker);
    return true;
}

bool lw_walks_look_up(lw_walks *w)
{
    lw_lanes *l = &w->looked_up;
    for (; w->contested.n > 0; lw_walk_pop(&w->contested))
        if (!lw_contest_look_up(w, w->contested.of[w->contested.head]))
            return false;
    for (; l->at < l->n; l->at++)
        if (l->lane[l->at].n > 0 && !look_up_lane(w, &l->lane[l->at]))
            return false;
    return true;
}

/* ---- the choice ------------------------------------------------------------------------------ */

static void go(lw_walks *w, lw_walker *me, double log_prob, int worker)
{
    int32_t n_atoms;
    uint64_t hash;
    me->bad = isnan(log_prob);
    me->log_prob += log_prob;
    const lw_atom *atoms = lw_state_rows_atoms(rows_of(w, me), me->slot[me->chosen], &n_atoms,
                                               &hash);
    lw_env_go(w->env[worker], me->path, atoms, n_atoms, hash, me->next_var);
    give_up(me, lw_walks_slack(w, me));
}

static void choose(lw_walks *w, lw_walker *me, int stage, int32_t i, int worker)
{
    lw_state_rows *rows = w->stage[stage].rows;
    double log_prob, u = -1.0;
    if (w->o.sample)
        u = lw_rng_uniform(w->key, (uint32_t)me->path->depth, (uint64_t)me->walk.id, 0);
    if (me->contest.open) {
        const float *logit = lw_state_rows_logits(rows, worker, i, me->contest.slot, me->contest.n);
        me->chosen = lw_contest_decide(w, me, logit, u, worker, &log_prob);
    } else {
        const float *logit = lw_state_rows_logits(rows, worker, i, me->slot, me->n);
        if (stage < w->stages - 1 && lw_contest_open(w, me, logit, u)) {
            w->part[worker].contested++;
            return;
        }
        me->chosen = lw_logits_choose(logit, me->n, u, &log_prob);
        me->inexact += stage < w->stages - 1;
    }
    go(w, me, log_prob, worker);
}

void lw_walks_let_go(lw_walks *w, lw_walker *me)
{
    lw_state_rows *rows = rows_of(w, me);
    int32_t to = me->slot[me->chosen];
    lw_contest_let_go(w, me);
    lw_state_rows_hold_again(rows, to);
    for (int32_t k = 0; k < me->n; k++)
        lw_state_rows_drop(rows, me->slot[k]);
    lw_state_rows_drop(rows, me->current);
    me->current = to;
    me->current_for = me->path->n_states;
    me->n = 0;
}

/* Their queries are one product. */
void lw_walks_choose(lw_walks *w, int stage, int64_t group, int worker)
{
    const lw_walk_stage *s = &w->stage[stage];
    const int32_t *ready = s->ready + group * LW_STATE_QUERIES;
    int32_t slot[LW_STATE_QUERIES] = {0},
            n = (int32_t)LW_MIN((int64_t)LW_STATE_QUERIES, s->n_ready - group * LW_STATE_QUERIES);
    for (int32_t i = 0; i < n; i++) {
        const lw_walker *me = &w->walker[ready[i]];
        slot[i] = me->contest.open ? me->contest.current : me->current;
    }
    lw_state_rows_query(s->rows, worker, slot, n);
    for (int32_t i = 0; i < n; i++)
        choose(w, &w->walker[ready[i]], stage, i, worker);
    w->part[worker].query_rows += n;
    w->part[worker].query_runs++;
}
