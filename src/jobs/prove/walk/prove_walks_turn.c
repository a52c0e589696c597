/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: everything that can be done now, by all workers at once. While the network computes some
 * states, others are derived and looked up and choices are taken, so that only the end of a turn is
 * a barrier. What a turn consists of never depends on the number of workers.
 */
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
    int64_t n = lw_state_rows_queued(w->rows);
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
    if (l->n > 0 || (w->rows && ahead(w) >= RUNS_AHEAD * (int64_t)w->o.rows))
        return 0;
    for (; l->n < w->most_lanes && w->to_expand.n > 0; l->n++)
        l->lane[l->n].walker = lw_walk_pop(&w->to_expand);
    return l->n;
}

static int64_t take_ready(lw_walks *w)
{
    int64_t done = lw_state_rows_done(w->rows);
    for (w->n_ready = 0;
         w->waiting.n > 0 && w->walker[w->waiting.of[w->waiting.head]].needs < done;)
        w->ready[w->n_ready++] = lw_walk_pop(&w->waiting);
    return LW_CEIL_DIV(w->n_ready, (int32_t)LW_STATE_QUERIES);
}

static lw_turn plan_turn(lw_walks *w)
{
    lw_turn t = {0};
    if (!w->rows) {
        w->derived.n = 0;
        t.lanes = take_lanes(w);
        return t;
    }
    move_lanes(w);
    t.lanes = take_lanes(w);
    t.groups = take_ready(w);
    t.look_up = !looked_up_all(w) && !w->no_slots;
    /* The network's runs are full, unless nothing else can be done. */
    bool full = lw_state_rows_queued(w->rows) >= w->o.rows;
    if (full || t.lanes + t.groups + t.look_up == 0)
        t.parts = lw_state_rows_begin(w->rows);
    if (t.groups > 0)
        lw_state_rows_prepare(w->rows);
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
    if (i < t->parts) {
        lw_state_rows_part(w->rows, i, worker);
        return;
    }
    i -= t->parts;
    if (i < t->groups) {
        lw_walks_choose(w, i, worker);
        c->choice_seconds += lw_now() - began;
        return;
    }
    lw_walks_derive(w, &w->derived.lane[i - t->groups], worker);
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

int lw_walks_take_turn(lw_walks *w, const lw_walks_stream *s)
{
    w->turn = plan_turn(w);
    const lw_turn t = w->turn;
    int64_t tasks = t.look_up + t.parts + t.lanes + t.groups;
    LW_ASSERT(tasks > 0, "%d walks and nothing to do", w->o.fixed_batch_size - w->idle.n);
    lw_pool_run(w->dev->pool, tasks, task, w);
    if (t.parts > 0)
        lw_state_rows_end(w->rows);
    for (int32_t i = 0; i < (t.groups > 0 ? w->n_ready : 0); i++)
        lw_walks_let_go(w, &w->walker[w->ready[i]]);
    w->no_slots = w->no_slots && t.groups == 0;
    for (int32_t i = 0; i < (t.groups > 0 ? w->n_ready : 0); i++)
        LW_TRY(settle(w, w->ready[i], s));
    for (int32_t i = 0; i < t.lanes; i++)
        if (w->derived.lane[i].n == 0)
            LW_TRY(go_on(w, w->derived.lane[i].walker, s));
    return 0;
}
