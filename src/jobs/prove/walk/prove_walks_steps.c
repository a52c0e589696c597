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

static void give_up(lw_walker *me)
{
    if (me->walk.give_up < 0 && me->log_prob < me->walk.give_up && me->path->end == LW_PROOF_OPEN)
        me->path->end = LW_PROOF_ABANDONED;
}

static void keep_moves(lw_lane *lane, const lw_moves *m)
{
    lane->n = m->n;
    lane->next_var = m->next_var;
    memcpy(lane->first, m->first, ((size_t)m->n + 1) * sizeof *lane->first);
    memcpy(lane->atoms, m->atoms, (size_t)m->first[m->n] * sizeof *lane->atoms);
    for (int32_t k = 0; k < m->n; k++)
        lane->hash[k] = lw_state_rows_hash(m->atoms + m->first[k], m->first[k + 1] - m->first[k]);
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
        if (m.n > 1 && w->rows) {
            keep_moves(lane, &m);
            return;
        }
        lw_env_take(w->env[worker], me->path, &m, m.n > 1 ? choose_uniform(w, me, m.n) : 0);
        give_up(me);
    }
}

/* ---- features -------------------------------------------------------------------------------- */

static bool hold_endf(lw_walks *w)
{
    const lw_atom endf = {lw_kb_endf(w->kb), {0, 0}};
    if (w->endf < 0)
        w->endf = lw_state_rows_hold(w->rows, &endf, 1, lw_state_rows_hash(&endf, 1));
    return w->endf >= 0;
}

static void need(lw_walks *w, lw_walker *me, int32_t slot)
{
    me->needs = LW_MAX(me->needs, lw_state_rows_ticket(w->rows, slot));
}

/* The state the choice is made in: last step's successor, or one that was never scored. */
static bool hold_current(lw_walks *w, lw_walker *me)
{
    if (me->current >= 0 && me->current_for != me->path->n_states) {
        lw_state_rows_drop(w->rows, me->current);
        me->current = -1;
    }
    if (me->current < 0) {
        int32_t n;
        const lw_atom *state = lw_path_state(me->path, &w->o.env, &n);
        me->current = lw_state_rows_hold(w->rows, state, n, lw_state_rows_hash(state, n));
        me->current_for = me->path->n_states;
    }
    if (me->current < 0)
        return false;
    need(w, me, me->current);
    return true;
}

static int32_t hold_successor(lw_walks *w, const lw_lane *lane, int32_t k)
{
    const lw_atom *state = lane->atoms + lane->first[k];
    if (state->p == lw_kb_endf(w->kb)) {
        if (!hold_endf(w))
            return -1;
        w->counts.ends_offered++;
        lw_state_rows_hold_again(w->rows, w->endf);
        return w->endf;
    }
    return lw_state_rows_hold(w->rows, state, lane->first[k + 1] - lane->first[k], lane->hash[k]);
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
        me->next_var = lane->next_var;
        lane->at = 0;
    }
    for (; lane->at < lane->n; lane->at++) {
        if (lane->at + AHEAD < lane->n)
            lw_state_rows_prefetch(w->rows, lane->hash[lane->at + AHEAD]);
        int32_t slot = hold_successor(w, lane, lane->at);
        if (slot < 0)
            return false;
        me->slot[lane->at] = slot;
        need(w, me, slot);
    }
    lw_walk_push(&w->waiting, lane->walker);
    return true;
}

bool lw_walks_look_up(lw_walks *w)
{
    lw_lanes *l = &w->looked_up;
    for (; l->at < l->n; l->at++)
        if (l->lane[l->at].n > 0 && !look_up_lane(w, &l->lane[l->at]))
            return false;
    return true;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* exp(logit - most) summed in double, in order; NaN when a logit is not finite. */
static double sum_exp(const float *logit, int32_t n, float most)
{
    double sum = 0;
    for (int32_t k = 0; k < n; k++)
        sum += isfinite(logit[k]) ? exp((double)logit[k] - (double)most) : (double)NAN;
    return sum;
}

static int32_t first_of_most(const float *logit, int32_t n)
{
    int32_t best = 0;
    for (int32_t k = 1; k < n; k++)
        if (logit[k] > logit[best])
            best = k;
    return best;
}

/* The first k whose share of the sum, and those before it, pass a uniform draw. */
static int32_t draw(const lw_walks *w, const lw_walker *me, const float *logit, float most,
                    double sum)
{
    double left = sum * lw_rng_uniform(w->key, (uint32_t)me->path->depth, (uint64_t)me->walk.id, 0);
    int32_t k = 0;
    for (; k < me->n - 1; k++) {
        left -= exp((double)logit[k] - (double)most);
        if (left < 0)
            break;
    }
    return k;
}

static void choose(lw_walks *w, lw_walker *me, const float *query, int worker)
{
    float *logit = w->logit[worker];
    int32_t width, n_atoms, n = me->n;
    const float *features = lw_state_rows_features(w->rows, &width);
    w->dots(logit, query, features, me->slot, n, width);
    int32_t k = first_of_most(logit, n);
    float most = logit[k];
    double sum = sum_exp(logit, n, most);
    me->bad = isnan(sum);
    if (w->o.sample)
        k = draw(w, me, logit, most, sum);
    me->log_prob += (double)logit[k] - (double)most - log(sum);
    me->chosen = k;
    const lw_atom *atoms = lw_state_rows_atoms(w->rows, me->slot[k], &n_atoms);
    const int32_t first[2] = {0, n_atoms};
    const uint64_t hash = lw_state_hash(atoms, n_atoms);
    const lw_moves move = {
        .n = 1, .atoms = atoms, .first = first, .hash = &hash, .next_var = me->next_var};
    lw_env_take(w->env[worker], me->path, &move, 0);
    give_up(me);
}

void lw_walks_let_go(lw_walks *w, lw_walker *me)
{
    int32_t to = me->slot[me->chosen];
    lw_state_rows_hold_again(w->rows, to);
    for (int32_t k = 0; k < me->n; k++)
        lw_state_rows_drop(w->rows, me->slot[k]);
    lw_state_rows_drop(w->rows, me->current);
    me->current = to;
    me->current_for = me->path->n_states;
    me->n = 0;
}

/* Their queries are one product. */
void lw_walks_choose(lw_walks *w, int64_t group, int worker)
{
    const int32_t *ready = w->ready + group * LW_STATE_QUERIES;
    int32_t slot[LW_STATE_QUERIES], width,
        n = (int32_t)LW_MIN((int64_t)LW_STATE_QUERIES, w->n_ready - group * LW_STATE_QUERIES);
    lw_state_rows_features(w->rows, &width);
    for (int32_t i = 0; i < n; i++)
        slot[i] = w->walker[ready[i]].current;
    const float *query = lw_state_rows_query(w->rows, worker, slot, n);
    for (int32_t i = 0; i < n; i++)
        choose(w, &w->walker[ready[i]], query + (ptrdiff_t)i * width, worker);
    w->part[worker].query_rows += n;
    w->part[worker].query_runs++;
}
