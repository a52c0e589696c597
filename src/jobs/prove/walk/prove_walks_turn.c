/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: everything that can be done now, by all workers at once. While the network computes some
 * states, others are derived and looked up and choices are taken, so that only the end of a turn is
 * a barrier. What a turn consists of never depends on the number of workers.
 */
#include "backend/backend.h"
#include "jobs/prove/walk/prove_walks_parts.h"

/* ---- what a turn consists of ----------------------------------------------------------------- */

static bool looked_up_all(const lw_walks *w)
{
    return w->looked_up.at == w->looked_up.n;
}

/* Lanes that are derived are looked up when those before them are through. */
static void move_lanes(lw_walks *w)
{
    if (!looked_up_all(w) || w->derived.n == 0)
        return;
    lw_lanes through = w->looked_up;
    w->looked_up = w->derived;
    w->derived = (lw_lanes){.lane = through.lane};
}

/* States that the network has to compute, but for those that turn out to be kept. */
static int64_t ahead(const lw_walks *w)
{
    int64_t n = 0;
    for (int s = 0; s < w->stages; s++)
        n += lw_state_rows_queued(w->stage[s].rows);
    for (int32_t i = w->looked_up.at; i < w->looked_up.n; i++)
        n += w->looked_up.lane[i].n;
    return n;
}

/* Walkers to derive for. Three runs of the network ahead are enough: this turn's, the next one's,
 * and that of the turn in which the new ones have been looked up. */
static int64_t take_lanes(lw_walks *w)
{
    enum { RUNS_AHEAD = 3 };
    lw_lanes *l = &w->derived;
    if (l->n > 0 || (w->stages > 0 && ahead(w) >= RUNS_AHEAD * (int64_t)w->o.rows))
        return 0;
    for (; l->n < w->most_lanes && w->to_expand.n > 0; l->n++)
        l->lane[l->n].walker = lw_walk_pop(&w->to_expand);
    return l->n;
}

static int64_t take_ready(const lw_walks *w, lw_walk_stage *s)
{
    int64_t done = lw_state_rows_done(s->rows);
    for (s->n_ready = 0;
         s->waiting.n > 0 && w->walker[s->waiting.of[s->waiting.head]].needs < done;)
        s->ready[s->n_ready++] = lw_walk_pop(&s->waiting);
    if (s->n_ready > 0)
        lw_state_rows_prepare(s->rows);
    return LW_CEIL_DIV(s->n_ready, (int32_t)LW_STATE_QUERIES);
}

static lw_turn plan_turn(lw_walks *w)
{
    lw_turn t = {0};
    if (w->stages == 0) {
        w->derived.n = 0;
        t.lanes = take_lanes(w);
        return t;
    }
    move_lanes(w);
    t.lanes = take_lanes(w);
    for (int s = 0; s < w->stages; s++)
        t.groups[s] = take_ready(w, &w->stage[s]);
    t.look_up = (w->contested.n > 0 || !looked_up_all(w)) && !w->no_slots;
    /* The network's runs are full, unless nothing else can be done. */
    const bool idle = t.lanes + t.groups[0] + t.groups[1] + t.look_up == 0;
    for (int s = 0; s < w->stages; s++)
        if (idle || lw_state_rows_queued(w->stage[s].rows) >= w->stage[s].full)
            t.parts[s] = lw_state_rows_begin(w->stage[s].rows);
    return t;
}

/* ---- the turn -------------------------------------------------------------------------------- */

/* The look-up goes first, being one task; small tasks come last, to fill the time until the last
 * worker is done. */
static void task(void *arg, int64_t i, int worker)
{
    lw_walks *w = arg;
    const lw_turn *t = &w->turn;
    lw_walks_counts *c = &w->part[worker];
    double began = lw_now();
    if (i < t->look_up) {
        w->no_slots = !lw_walks_look_up(w);
        c->lookup_seconds += lw_now() - began;
        return;
    }
    i -= t->look_up;
    for (int s = 0; s < w->stages; i -= t->parts[s++])
        if (i < t->parts[s]) {
            lw_state_rows_part(w->stage[s].rows, i, worker);
            return;
        }
    for (int s = 0; s < w->stages; i -= t->groups[s++])
        if (i < t->groups[s]) {
            lw_walks_choose(w, s, i, worker);
            c->choice_seconds += lw_now() - began;
            return;
        }
    lw_walks_derive(w, &w->derived.lane[i], worker);
    c->engine_seconds += lw_now() - began;
}

static int go_on(lw_walks *w, int32_t i, const lw_walks_stream *s)
{
    if (w->walker[i].path->end != LW_PROOF_OPEN)
        return s->ended(s->self, i);
    lw_walk_push(&w->to_expand, i);
    return 0;
}

static int settle(lw_walks *w, int32_t i, const lw_walks_stream *s)
{
    const lw_walker *me = &w->walker[i];
    if (me->bad)
        return lw_fail(LW_ENUMERIC, "walk %lld, choice %d: the policy's logits are not finite",
                       (long long)me->walk.id, me->path->depth);
    return go_on(w, i, s);
}

static void let_go(lw_walks *w, const lw_walk_stage *of)
{
    for (int32_t i = 0; i < of->n_ready; i++)
        if (!w->walker[of->ready[i]].contest.open)
            lw_walks_let_go(w, &w->walker[of->ready[i]]);
}

static int settle_all(lw_walks *w, const lw_walk_stage *of, const lw_walks_stream *s)
{
    for (int32_t i = 0; i < of->n_ready; i++) {
        if (w->walker[of->ready[i]].contest.open)
            lw_walk_push(&w->contested, of->ready[i]);
        else
            LW_TRY(settle(w, of->ready[i], s));
    }
    return 0;
}

int lw_walks_take_turn(lw_walks *w, const lw_walks_stream *s)
{
    w->turn = plan_turn(w);
    const lw_turn t = w->turn;
    int64_t groups = t.groups[0] + t.groups[1],
            tasks = t.look_up + t.parts[0] + t.parts[1] + t.lanes + groups;
    LW_ASSERT(tasks > 0, "%d walks and nothing to do", w->o.fixed_batch_size - w->idle.n);
    lw_pool_run(w->dev->pool, tasks, task, w);
    LW_TRY(lw_backend_failed_on(w->dev)); /* what it answers then is no number */
    for (int k = 0; k < w->stages; k++)
        if (t.parts[k] > 0)
            lw_state_rows_end(w->stage[k].rows);
    for (int k = 0; k < w->stages; k++)
        let_go(w, &w->stage[k]);
    w->no_slots = w->no_slots && groups == 0;
    for (int k = 0; k < w->stages; k++)
        LW_TRY(settle_all(w, &w->stage[k], s));
    for (int32_t i = 0; i < t.lanes; i++)
        if (w->derived.lane[i].n == 0)
            LW_TRY(go_on(w, w->derived.lane[i].walker, s));
    return 0;
}
