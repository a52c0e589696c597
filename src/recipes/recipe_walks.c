/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up of walks, the stream of proofs, and the uniform policy. */
#include "recipes/recipe_walks.h"

#include <math.h>

#include "recipes/recipe_walks_parts.h"

lw_walks_options lw_walks_defaults(void)
{
    return (lw_walks_options){.env = lw_env_defaults(),
                              .fixed_batch_size = 512,
                              .rows = 1024,
                              .cache_bytes = (size_t)256 << 20,
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
    return 0;
}

int lw_walks_new(const lw_kb *kb, lw_device *dev, const lw_policy_source *policy,
                 const lw_walks_options *o, lw_walks **out)
{
    LW_TRY(check_options(o));
    if (policy && policy->config)
        return lw_fail(LW_EUNSUPPORTED, "walks by a network");
    LW_CLEANUP(lw_walks_free) lw_walks *w = lw_calloc(1, sizeof *w);
    if (!w)
        return LW_ENOMEM;
    w->kb = kb;
    w->dev = dev;
    w->o = *o;
    w->key = lw_rng_key_of(o->seed, lw_hash_name("walks"));
    w->workers = LW_MIN(dev->workers(dev->self), (int)LW_WALKS_MOST_WORKERS);
    for (int i = 0; i < w->workers; i++)
        LW_TRY(lw_env_new(kb, &o->env, &w->env[i]));
    LW_TRY(lw_paths_new(&o->env, o->fixed_batch_size, &w->paths));
    w->walker = lw_calloc((size_t)o->fixed_batch_size, sizeof *w->walker);
    if (!w->walker)
        return LW_ENOMEM;
    for (int32_t i = 0; i < o->fixed_batch_size; i++)
        w->walker[i].path = &w->paths[i];
    w->bytes = sizeof *w +
               (size_t)o->fixed_batch_size * (lw_path_bytes(&o->env) + sizeof *w->walker);
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
    lw_paths_free(&w->paths);
    lw_free(&w->walker);
    lw_free(pp);
}

const lw_walks_counts *lw_walks_counted(const lw_walks *w)
{
    return &w->counts;
}

size_t lw_walks_bytes(const lw_walks *w)
{
    return w->bytes;
}

/* ---- one walk -------------------------------------------------------------------------------- */

/* Uniform: a proof depends on nobody, so a worker walks it to its end. */
static void walk_uniform(void *arg, int64_t i, int worker)
{
    lw_walks *w = arg;
    lw_walker *me = &w->walker[i];
    lw_walks_counts *c = &w->worker_counts[worker];
    lw_moves m;
    if (!me->alive)
        return;
    for (lw_env_moves(w->env[worker], me->path, &m); m.n > 0;
         lw_env_moves(w->env[worker], me->path, &m)) {
        int32_t k = 0;
        if (m.n > 1) {
            k = (int32_t)lw_rng_below(w->key, (uint32_t)me->path->depth, (uint64_t)me->walk.id, 0,
                                      (uint32_t)m.n);
            me->log_prob -= log((double)m.n);
        }
        c->forced += m.n == 1;
        c->query_steps++;
        c->states_offered += m.n;
        lw_env_take(w->env[worker], me->path, &m, k);
    }
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
    bool (*next)(void *self, lw_walk *out);
    int (*done)(void *self, const lw_walk_result *r);
    void *self;
    bool dry;
    int32_t alive;
    double outside; /* seconds in next and done */
} stream;

/* Reports proofs that ended and fills their places. */
static int turn_over(lw_walks *w, stream *s)
{
    double began = lw_now();
    for (int32_t i = 0; i < w->o.fixed_batch_size; i++) {
        lw_walker *me = &w->walker[i];
        if (me->alive && me->path->end != LW_PROOF_OPEN) {
            me->alive = false;
            s->alive--;
            w->counts.walks++;
            LW_TRY(s->done(s->self, &(lw_walk_result){me->walk, me->path->end, me->path->depth,
                                                      me->log_prob}));
        }
        if (me->alive || s->dry)
            continue;
        s->dry = !s->next(s->self, &me->walk);
        if (s->dry)
            continue;
        LW_TRY(check_query(w->kb, &me->walk));
        lw_env_begin(w->env[0], me->path, me->walk.query);
        me->log_prob = 0;
        me->alive = true;
        s->alive++;
    }
    s->outside += lw_now() - began;
    return 0;
}

static void sum_counts(lw_walks *w)
{
    w->counts.env = (lw_env_counts){0};
    for (int i = 0; i < w->workers; i++) {
        const lw_walks_counts *more = &w->worker_counts[i];
#define C(field, what) w->counts.field += more->field;
        LW_WALKS_COUNTS(C)
#undef C
        w->worker_counts[i] = (lw_walks_counts){0};
        lw_env_counts_add(&w->counts.env, lw_env_counted(w->env[i]));
    }
}

static int run(lw_walks *w, stream *s)
{
    LW_TRY(turn_over(w, s));
    while (s->alive > 0) {
        double began = lw_now();
        w->dev->parallel(w->dev->self, w->o.fixed_batch_size, walk_uniform, w);
        w->counts.engine_seconds += lw_now() - began;
        LW_TRY(turn_over(w, s));
    }
    return 0;
}

int lw_walks_run(lw_walks *w, bool (*next)(void *self, lw_walk *out),
                 int (*done)(void *self, const lw_walk_result *r), void *self)
{
    stream s = {.next = next, .done = done, .self = self};
    double began = lw_now();
    for (int32_t i = 0; i < w->o.fixed_batch_size; i++)
        w->walker[i].alive = false;
    int rc = run(w, &s);
    sum_counts(w);
    w->counts.seconds += lw_now() - began - s.outside;
    return rc;
}
