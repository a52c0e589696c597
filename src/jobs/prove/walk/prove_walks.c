/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up of walks, and the stream of proofs through them. */
#include "jobs/prove/walk/prove_walks.h"

#include "jobs/prove/walk/prove_walks_parts.h"

lw_walks_options lw_walks_defaults(void)
{
    return (lw_walks_options){.env = lw_env_defaults(),
                              .fixed_batch_size = 512,
                              .rows = 1024,
                              .cache_bytes = (size_t)64 << 20,
                              .precision = LW_NUM_F32};
}

static int check_options(const lw_walks_options *o)
{
    if (o->fixed_batch_size < 1 || o->fixed_batch_size > 1 << 20)
        return lw_fail(LW_EUSAGE, "fixed-batch-size is %d, it must be 1 to %d", o->fixed_batch_size,
                       1 << 20);
    if (o->rows < 1 || o->rows > 1 << 20)
        return lw_fail(LW_EUSAGE, "rows is %d, it must be 1 to %d", o->rows, 1 << 20);
    if (o->precision != LW_NUM_F32 && o->precision != LW_NUM_BF16)
        return lw_fail(LW_EUSAGE, "precision of a policy is f32 or bf16");
    if (o->two_stage && o->precision != LW_NUM_F32)
        return lw_fail(LW_EUSAGE, "two-stage finds what f32 does: precision must be f32");
    return 0;
}

static int check_policy(const lw_kb *kb, const lw_policy_config *c, const lw_env_options *env)
{
    if (c->constants != kb->n_constants || c->predicates != lw_kb_endf(kb))
        return lw_fail(LW_EUSAGE,
                       "the policy was made for %d constants and %d predicates, the dataset has %d "
                       "and %d",
                       c->constants, c->predicates, kb->n_constants, lw_kb_endf(kb));
    if (env->padding_atoms > c->max_atoms)
        return lw_fail(LW_EUSAGE, "padding-atoms is %d, the policy was made for at most %d",
                       env->padding_atoms, c->max_atoms);
    if (env->max_total_vars > c->variables)
        return lw_fail(LW_EUSAGE, "max-total-vars is %d, the policy was made for at most %d",
                       env->max_total_vars, c->variables);
    return 0;
}

/* ---- making ---------------------------------------------------------------------------------- */

static int new_queue(lw_walk_queue *q, int32_t cap)
{
    q->of = lw_calloc((size_t)cap, sizeof *q->of);
    q->cap = cap;
    return q->of ? 0 : LW_ENOMEM;
}

static int new_contests(lw_walks *w)
{
    size_t n = (size_t)w->o.fixed_batch_size, width = (size_t)w->o.env.padding_states;
    w->contest_words = lw_calloc(2 * n * width, sizeof *w->contest_words);
    w->contest_logits = lw_calloc(n * width, sizeof *w->contest_logits);
    if (!w->contest_words || !w->contest_logits)
        return LW_ENOMEM;
    for (size_t i = 0; i < n; i++)
        w->walker[i].contest = (lw_contest){.current = -1,
                                            .of = w->contest_words + 2 * i * width,
                                            .slot = w->contest_words + (2 * i + 1) * width,
                                            .logit = w->contest_logits + i * width};
    w->bytes += n * width * (2 * sizeof *w->contest_words + sizeof *w->contest_logits);
    return 0;
}

static int new_walkers(lw_walks *w)
{
    size_t n = (size_t)w->o.fixed_batch_size, width = (size_t)w->o.env.padding_states;
    LW_TRY(lw_paths_new(&w->o.env, w->o.fixed_batch_size, &w->paths));
    LW_TRY(new_queue(&w->idle, w->o.fixed_batch_size));
    LW_TRY(new_queue(&w->to_expand, w->o.fixed_batch_size));
    LW_TRY(new_queue(&w->contested, w->o.fixed_batch_size));
    w->walker = lw_calloc(n, sizeof *w->walker);
    w->slots = lw_calloc(w->stages > 0 ? n * width : 1, sizeof *w->slots);
    if (!w->walker || !w->slots)
        return LW_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        w->walker[i].path = &w->paths[i];
        w->walker[i].slot = w->stages > 0 ? w->slots + i * width : NULL;
    }
    w->bytes += n * (lw_path_bytes(&w->o.env) + sizeof *w->walker + 3 * sizeof *w->idle.of) +
                (w->stages > 0 ? n * width * sizeof *w->slots : 0);
    return w->stages > 1 ? new_contests(w) : 0;
}

/* As many lanes as a second cache holds; one a live proof at most. With a network one half of them
 * is derived while the other is looked up. */
static int new_lanes(lw_walks *w)
{
    enum { FEWEST = 16 };
    size_t each = w->stages > 0 ? lw_moves_bytes(&w->o.env) : 0, halves = w->stages > 0 ? 2 : 1,
           n = (size_t)w->o.fixed_batch_size;
    if (w->stages > 0)
        n = LW_MIN(n, LW_MAX(((size_t)1 << 20) / each, (size_t)FEWEST));
    w->most_lanes = (int32_t)n;
    w->lane = lw_calloc(halves * n, sizeof *w->lane);
    if (!w->lane)
        return LW_ENOMEM;
    if (w->stages > 0)
        LW_TRY(lw_moves_new(&w->o.env, (int64_t)(halves * n), &w->moves));
    for (size_t i = 0; w->stages > 0 && i < halves * n; i++)
        w->lane[i].moves = &w->moves[i];
    w->bytes += halves * n * (each + sizeof *w->lane);
    return 0;
}

/* One env a worker. */
static int new_workers(lw_walks *w)
{
    size_t states = (size_t)w->o.env.padding_states + 2;
    int workers = lw_pool_size(w->dev->pool);
    if (workers > LW_WALKS_MOST_WORKERS)
        return lw_fail(LW_EUSAGE, "walks on %d threads: %d at most", workers,
                       (int)LW_WALKS_MOST_WORKERS);
    w->workers = workers;
    for (int i = 0; i < w->workers; i++)
        LW_TRY(lw_env_new(w->kb, &w->o.env, &w->env[i]));
    w->bytes += (size_t)w->workers * states *
                (((size_t)w->o.env.padding_atoms + (size_t)w->kb->most_body) * sizeof(lw_atom) +
                 sizeof(uint64_t) + 3 * sizeof(int32_t));
    return 0;
}

/* Slots that guarantee progress: the current state of every proof and one whole step, of a lane and of a
 * contest; and those that keep the network's runs full. */
static int new_stage(lw_walks *w, const lw_policy_source *policy, int32_t precision)
{
    const lw_walks_options *o = &w->o;
    const int32_t stages = o->two_stage ? 2 : 1;
    lw_walk_stage *s = &w->stage[w->stages];
    int64_t steps = (int64_t)stages * (o->env.padding_states + 2),
            in_use = o->fixed_batch_size + LW_MAX(steps, 3 * (int64_t)o->rows);
    const lw_state_rows_options ro = {.rows = o->rows,
                                      .in_use = (int32_t)in_use,
                                      .cache_bytes = o->cache_bytes / (size_t)stages,
                                      .successors = o->env.padding_states,
                                      .precision = precision};
    w->stages++;
    s->full = o->rows;
    LW_TRY(new_queue(&s->waiting, o->fixed_batch_size));
    s->ready = lw_calloc((size_t)o->fixed_batch_size, sizeof *s->ready);
    if (!s->ready)
        return LW_ENOMEM;
    LW_TRY(lw_state_rows_new(w->dev, policy->config, policy->store, &ro, &s->rows));
    w->bytes += lw_state_rows_bytes(s->rows) + 2 * (size_t)o->fixed_batch_size * sizeof *s->ready;
    return 0;
}

/* Few rows are computed again: they do not wait until there are as many as fill a run. */
static int new_stages(lw_walks *w, const lw_policy_source *policy)
{
    LW_TRY(check_policy(w->kb, policy->config, &w->o.env));
    w->store = policy->store;
    if (!w->o.two_stage)
        return new_stage(w, policy, w->o.precision);
    w->margin = (lw_walks_margin){(double)INFINITY, (double)INFINITY};
    LW_TRY(new_stage(w, policy, LW_NUM_BF16));
    LW_TRY(new_stage(w, policy, LW_NUM_F32));
    w->stage[1].full = LW_CEIL_DIV(w->o.rows, 8);
    return 0;
}

int lw_walks_new(const lw_kb *kb, lw_device *dev, const lw_policy_source *policy,
                 const lw_walks_options *o, lw_walks **out)
{
    LW_TRY(check_options(o));
    LW_CLEANUP(lw_walks_free) lw_walks *w = lw_calloc(1, sizeof *w);
    if (!w)
        return LW_ENOMEM;
    w->kb = kb;
    w->dev = dev;
    w->o = *o;
    w->key = lw_rng_key_of(o->seed, lw_hash_name("walks"));
    w->bytes = sizeof *w;
    LW_TRY(new_workers(w));
    if (policy && policy->config)
        LW_TRY(new_stages(w, policy));
    LW_TRY(new_walkers(w));
    LW_TRY(new_lanes(w));
    *out = lw_steal(&w);
    return 0;
}

void lw_walks_free(lw_walks **pp)
{
    lw_walks *w = *pp;
    if (!w)
        return;
    for (int i = 0; i < w->workers; i++)
        lw_env_free(&w->env[i]);
    for (int s = 0; s < w->stages; s++) {
        lw_state_rows_free(&w->stage[s].rows);
        lw_free(&w->stage[s].waiting.of);
        lw_free(&w->stage[s].ready);
    }
    lw_paths_free(&w->paths);
    lw_free(&w->idle.of);
    lw_free(&w->to_expand.of);
    lw_free(&w->contested.of);
    lw_free(&w->contest_words);
    lw_free(&w->contest_logits);
    lw_free(&w->walker);
    lw_free(&w->slots);
    lw_free(&w->lane);
    lw_moves_free(&w->moves);
    lw_free(pp);
}

void lw_walks_observe(lw_walks *w, const lw_observer *obs)
{
    w->obs = obs;
}

const lw_walks_counts *lw_walks_counted(const lw_walks *w)
{
    return &w->counts;
}

size_t lw_walks_bytes(const lw_walks *w)
{
    return w->bytes;
}

/* ---- the stream ------------------------------------------------------------------------------ */

static int check_query(const lw_kb *kb, const lw_walk *walk)
{
    const lw_atom *q = &walk->query;
    if (q->p < 1 || q->p > kb->n_predicates || q->arg[0] < 1 || q->arg[1] < 1 ||
        q->arg[0] > kb->n_constants || q->arg[1] > kb->n_constants)
        return lw_fail(LW_EUSAGE, "walk %lld: (%d, %d, %d) is no ground atom of the dataset",
                       (long long)walk->id, q->p, q->arg[0], q->arg[1]);
    return 0;
}

typedef struct stream {
    lw_walks *w;
    bool (*next)(void *self, lw_walk *out);
    int (*done)(void *self, const lw_walk_result *r);
    void *self;
    bool dry;
    double outside; /* seconds in next and done */
} stream;

/* Proofs from the stream into idle places. */
static int fill(lw_walks *w, stream *s)
{
    double began = lw_now();
    while (w->idle.n > 0 && !s->dry) {
        lw_walk walk = {0};
        s->dry = !s->next(s->self, &walk);
        if (s->dry)
            break;
        LW_TRY(check_query(w->kb, &walk));
        int32_t i = lw_walk_pop(&w->idle);
        lw_walker *me = &w->walker[i];
        me->walk = walk;
        me->log_prob = 0;
        me->current = -1;
        me->stage = walk.how == LW_WALK_EXACT ? LW_MAX(w->stages - 1, 0) : 0;
        me->inexact = me->measured = 0;
        me->difference = 0;
        lw_env_begin(w->env[0], me->path, walk.query);
        lw_walk_push(&w->to_expand, i);
    }
    s->outside += lw_now() - began;
    return 0;
}

static int ended(void *self, int32_t i)
{
    stream *s = self;
    lw_walks *w = s->w;
    lw_walker *me = &w->walker[i];
    if (me->current >= 0)
        lw_state_rows_drop(w->stage[me->stage].rows, me->current);
    me->current = -1;
    w->counts.walks++;
    lw_walk_push(&w->idle, i);
    double began = lw_now();
    int rc = s->done(s->self, &(lw_walk_result){me->walk, me->path->end, me->path->depth,
                                                me->log_prob, lw_walks_slack(w, me)});
    s->outside += lw_now() - began;
    return rc;
}

static int run(lw_walks *w, stream *s)
{
    const lw_walks_stream out = {.ended = ended, .self = s};
    LW_TRY(fill(w, s));
    while (w->idle.n < w->o.fixed_batch_size) {
        if (lw_observe_stop(w->obs))
            return lw_fail(LW_ESTOPPED, "stopped with %d proofs under way",
                           w->o.fixed_batch_size - w->idle.n);
        LW_TRY(lw_walks_take_turn(w, &out));
        LW_TRY(fill(w, s));
    }
    return 0;
}

/* All places idle; kept features are good as long as nothing was left held and the weights are the
 * same. */
static void start_afresh(lw_walks *w)
{
    uint64_t version = w->store ? lw_store_version(w->store, LW_SLAB_PARAM) : 0;
    w->idle.n = w->to_expand.n = w->contested.n = 0;
    w->derived = (lw_lanes){.lane = w->lane};
    w->looked_up = (lw_lanes){.lane = w->stages > 0 ? w->lane + w->most_lanes : NULL};
    w->no_slots = false;
    for (int32_t i = 0; i < w->o.fixed_batch_size; i++)
        lw_walk_push(&w->idle, i);
    for (int s = 0; s < w->stages; s++) {
        w->stage[s].waiting.n = 0;
        if (w->clean && version == w->version)
            continue;
        lw_state_rows_forget(w->stage[s].rows);
        w->stage[s].endf = -1;
    }
    for (int32_t i = 0; i < w->o.fixed_batch_size; i++) {
        w->walker[i].contest.open = false;
        w->walker[i].contest.current = -1;
    }
    w->version = version;
    w->clean = false;
}

static void sum_counts(lw_walks *w)
{
    w->counts.env = (lw_env_counts){0};
    for (int i = 0; i < w->workers; i++) {
        lw_walks_counts *part = &w->part[i];
#define C(field, what) w->counts.field += part->field;
        LW_WALKS_COUNTS(C)
#undef C
        w->counts.engine_seconds += part->engine_seconds / w->workers;
        w->counts.lookup_seconds += part->lookup_seconds / w->workers;
        w->counts.choice_seconds += part->choice_seconds / w->workers;
        *part = (lw_walks_counts){0};
        lw_env_counts_add(&w->counts.env, lw_env_counted(w->env[i]));
    }
    w->counts.states_wanted = w->counts.cache_hits = w->counts.states_scored = 0;
    w->counts.plan_runs = w->counts.evicted = w->counts.first_scored = 0;
    w->counts.network_seconds = 0;
    for (int k = 0; k < w->stages; k++) {
        const lw_state_rows_counts *r = lw_state_rows_counted(w->stage[k].rows);
        w->counts.states_wanted += r->wanted;
        w->counts.cache_hits += r->hits;
        w->counts.states_scored += r->scored;
        w->counts.plan_runs += r->runs;
        w->counts.evicted += r->evicted;
        w->counts.network_seconds += r->network_seconds;
        w->counts.first_scored += k < w->stages - 1 ? r->scored : 0;
    }
}

int lw_walks_run(lw_walks *w, bool (*next)(void *self, lw_walk *out),
                 int (*done)(void *self, const lw_walk_result *r), void *self)
{
    stream s = {.w = w, .next = next, .done = done, .self = self};
    double began = lw_now();
    start_afresh(w);
    int rc = run(w, &s);
    w->clean = rc == 0;
    sum_counts(w);
    w->counts.seconds += lw_now() - began - s.outside;
    return rc;
}
