/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs of minibatches: parts, their gradients' sum, Adam. */
#include "jobs/prove/ppo/prove_ppo_update.h"

#include <math.h>

#include "plan/plan.h"
#include "base/base.h"
#include "jobs/prove/ppo/prove_ppo_part.h"
#include "train/train_schedule.h"

enum { MOST_STATES = 4096 }; /* of a plan: some 150 MiB with the published network */

struct lw_ppo_update {
    const lw_ppo_config *c;
    lw_store *store;
    lw_device *dev;
    lw_ppo_sizes size[LW_PPO_PLANS];
    lw_plan *plan[LW_PPO_PLANS];
    lw_exec *exec[LW_PPO_PLANS];
    lw_ppo_part part;
    float *sum;
    float *still; /* zeros in place of the gradient of rows that stay as they are; NULL: none do */
    int64_t still_from, still_n;
    double *work;
    int64_t floats;
};

/* One minibatch. */
typedef struct batch {
    lw_ppo_update *u;
    const lw_ppo_rollout *r;
    const lw_ppo_rates *rates;
    lw_rng_key order;
    uint32_t epoch;         /* of the whole run, key of the order */
    int64_t step, begin, n; /* places in the order */
    double mean, deviation; /* of the advantages, 0 and 1 when they stay as they are */
    int32_t parts;
    double *flops; /* when set, parts are counted instead of run */
    double loss, policy, value, entropy, divergence, clipped; /* means over the minibatch */
} batch;

/* ---- set-up ---------------------------------------------------------------------------------- */

static int open_plan(lw_ppo_update *u, int i)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    LW_TRY(lw_ppo_graph(u->c, u->store, u->size[i], true, g));
    LW_TRY(lw_train_compile(&u->c->train, u->dev, g, &u->plan[i], &u->exec[i]));
    return lw_ppo_part_bind(&u->part, u->exec[i]);
}

/* Each plan has half the rows of the next, so that no part leaves many unused. */
static void choose_sizes(lw_ppo_update *u)
{
    const lw_ppo_config *c = u->c;
    int32_t successors = c->env.padding_states, least = LW_ROUND_UP(successors + 1, 16);
    const int64_t there = (int64_t)c->n_envs * c->n_steps;
    const int32_t choices = (int32_t)LW_MIN((int64_t)c->train.batch_size, there);
    int64_t all = (int64_t)choices * (successors + 1);
    int64_t cap = c->part_states > 0 ? c->part_states : MOST_STATES;
    int32_t most = LW_MAX(least, (int32_t)LW_MIN(LW_ROUND_UP(all, 16), cap));
    for (int i = 0; i < LW_PPO_PLANS; i++) {
        int32_t states = LW_MAX(least, most >> (LW_PPO_PLANS - 1 - i));
        u->size[i] = (lw_ppo_sizes){states, 2 * states, choices, successors};
    }
}

/* Rows of constants that are not trained. */
static int open_still(lw_ppo_update *u)
{
    int32_t k = lw_store_find(u->store, "constant_embedding.weight");
    if (u->c->net.constants_as != LW_POLICY_CONSTANTS_FROZEN || u->c->net.constants == 0)
        return 0;
    const lw_store_entry *e = lw_store_at(u->store, k);
    int64_t width = e->count / e->type.dim[0];
    u->still_from = e->offset + width; /* behind the pad row */
    u->still_n = width * u->c->net.constants;
    u->still = lw_memory_alloc(u->dev->memory, (size_t)u->still_n * sizeof *u->still);
    return u->still ? 0 : LW_ENOMEM;
}

static int init(lw_ppo_update *u)
{
    choose_sizes(u);
    LW_TRY(lw_ppo_part_open(u->size[LW_PPO_PLANS - 1], u->c->net.max_atoms, &u->part));
    for (int i = 0; i < LW_PPO_PLANS; i++)
        LW_TRY(open_plan(u, i));
    lw_store_slab(u->store, LW_SLAB_PARAM, &u->floats);
    u->sum = lw_memory_alloc(u->dev->memory, (size_t)u->floats * sizeof *u->sum);
    return u->sum ? open_still(u) : LW_ENOMEM;
}

int lw_ppo_update_open(const lw_ppo_config *c, lw_store *store, lw_device *dev, lw_ppo_update **out)
{
    LW_CLEANUP(lw_ppo_update_free) lw_ppo_update *u = lw_calloc(1, sizeof *u);
    if (!u)
        return LW_ENOMEM;
    u->c = c;
    u->store = store;
    u->dev = dev;
    LW_TRY(init(u));
    *out = lw_steal(&u);
    return 0;
}

void lw_ppo_update_free(lw_ppo_update **pp)
{
    lw_ppo_update *u = *pp;
    if (!u)
        return;
    for (int i = 0; i < LW_PPO_PLANS; i++) {
        lw_exec_free(&u->exec[i]);
        lw_plan_free(&u->plan[i]);
    }
    lw_ppo_part_clear(&u->part);
    lw_memory_free(u->dev->memory, &u->sum, (size_t)u->floats * sizeof *u->sum);
    if (u->still)
        lw_memory_free(u->dev->memory, &u->still, (size_t)u->still_n * sizeof *u->still);
    lw_free(pp);
}

const lw_plan *lw_ppo_update_plan(const lw_ppo_update *u)
{
    return u->plan[LW_PPO_PLANS - 1];
}

size_t lw_ppo_update_bytes(const lw_ppo_update *u)
{
    size_t sum = 0;
    for (int i = 0; i < LW_PPO_PLANS; i++)
        sum += lw_plan_get_info(u->plan[i]).frame_bytes;
    return sum;
}

/* ---- a minibatch ----------------------------------------------------------------------------- */

static const lw_ppo_choice *choice_at(const batch *b, int64_t i)
{
    uint64_t all = (uint64_t)b->u->c->n_envs * (uint64_t)b->u->c->n_steps;
    return b->r->choice + lw_rng_permute(b->order, b->epoch, all, (uint64_t)(b->begin + i));
}

static void normalise(batch *b)
{
    double sum = 0.0, square = 0.0;
    b->mean = 0.0;
    b->deviation = 1.0;
    if (!b->u->c->normalize_advantage || b->n < 2)
        return;
    for (int64_t i = 0; i < b->n; i++)
        sum += (double)choice_at(b, i)->advantage;
    b->mean = sum / (double)b->n;
    for (int64_t i = 0; i < b->n; i++) {
        double d = (double)choice_at(b, i)->advantage - b->mean;
        square += d * d;
    }
    b->deviation = sqrt(square / (double)(b->n - 1)) + 1e-8;
}

/* What the part came to, choice by choice. */
static void add_up(batch *b, lw_exec *e)
{
    const lw_ppo_update *u = b->u;
    const lw_ppo_part *p = &u->part;
    const float *nlp = lw_exec_read(e, "nlp"), *h = lw_exec_read(e, "entropy"),
                *v = lw_exec_read(e, "new_value");
    double clip = u->c->clip_range, clip_v = u->c->clip_range_vf;
    b->loss += (double)*(const float *)lw_exec_read(e, "loss");
    for (int32_t i = 0; i < p->choices; i++) {
        double w = (double)p->weight[i], a = (double)p->advantage[i], old = (double)p->old_value[i];
        double log_ratio = -(double)nlp[i] - (double)p->old_log_prob[i], ratio = exp(log_ratio);
        double bound = LW_MIN(LW_MAX(ratio, 1.0 - clip), 1.0 + clip), value = (double)v[i];
        if (clip_v > 0.0)
            value = old + LW_MIN(LW_MAX(value - old, -clip_v), clip_v);
        value -= (double)p->target[i];
        b->policy -= w * LW_MIN(a * ratio, a * bound);
        b->value += w * value * value;
        b->entropy += w * (double)h[i];
        b->divergence += w * (ratio - 1.0 - log_ratio);
        b->clipped += fabs(ratio - 1.0) > clip ? w : 0.0;
    }
}

/* Runs the smallest plan that holds the part; its gradient joins those before it. */
static int run_part(batch *b, bool last)
{
    lw_ppo_update *u = b->u;
    lw_ppo_part *p = &u->part;
    int i = 0;
    while (p->states > u->size[i].states || p->pairs > u->size[i].pairs)
        i++;
    if (b->flops) {
        *b->flops += lw_plan_get_info(u->plan[i]).flops;
        return lw_ppo_part_begin(p, b->r->n_states);
    }
    const lw_tick tick = {(uint64_t)u->c->train.seed, (uint32_t)b->step};
    LW_TRY(lw_ppo_rollout_stopped(b->r));
    lw_ppo_part_pad(p, u->size[i], u->c->net.max_atoms);
    LW_TRY(lw_exec_run(u->exec[i], &tick));
    add_up(b, u->exec[i]);
    if (!isfinite(b->loss)) /* now: the next part's gradient takes the place of this one's */
        return lw_train_not_finite("prove train", u->store, b->step + 1, "the loss is");
    if (!last || b->parts > 0)
        (b->parts ? u->dev->add : u->dev->copy)(
            u->dev->self, u->sum, lw_store_slab(u->store, LW_SLAB_GRAD, NULL), u->floats);
    b->parts++;
    return lw_ppo_part_begin(p, b->r->n_states);
}

static int gradient(batch *b)
{
    lw_ppo_part *p = &b->u->part;
    LW_TRY(lw_ppo_part_begin(p, b->r->n_states));
    normalise(b);
    p->entropy_coef[0] = (float)b->rates->entropy_coef;
    for (int64_t i = 0; i < b->n; i++) {
        const lw_ppo_choice *x = choice_at(b, i);
        if (!lw_ppo_part_fits(p, x->n))
            LW_TRY(run_part(b, false));
        lw_ppo_part_add(p, b->r, x, (float)(((double)x->advantage - b->mean) / b->deviation),
                        1.0f / (float)b->n);
    }
    return run_part(b, true);
}

static int adam(batch *b, double *norm)
{
    lw_ppo_update *u = b->u;
    const lw_train_config *c = &u->c->train;
    lw_update up = {.lr = b->rates->lr,
                    .beta1 = c->adam_beta1,
                    .beta2 = c->adam_beta2,
                    .eps = c->adam_eps,
                    .weight_decay = c->weight_decay,
                    .t = *b->rates->updates + 1,
                    .grad_scale = 1.0,
                    .max_norm = c->grad_clip,
                    .ema_decay = lw_schedule_ema(c->ema_decay, *b->rates->updates)};
    up.n = lw_store_slabs(u->store, up.slab);
    if (b->parts > 1)
        up.slab[LW_SLAB_GRAD] = u->sum;
    if (u->still)
        u->dev->copy(u->dev->self, up.slab[LW_SLAB_GRAD] + u->still_from, u->still, u->still_n);
    int rc = u->dev->update(u->dev->self, &up, norm);
    if (rc == LW_ENUMERIC) {
        if (b->parts > 1) /* the sum, not the last part alone */
            u->dev->copy(u->dev->self, lw_store_slab(u->store, LW_SLAB_GRAD, NULL), u->sum,
                         u->floats);
        return lw_train_not_finite("prove train", u->store, b->step + 1, "the gradient norm is");
    }
    LW_TRY(rc);
    ++*b->rates->updates;
    lw_store_touch(u->store, LW_SLAB_PARAM);
    lw_store_touch(u->store, LW_SLAB_EMA);
    return 0;
}

/* ---- an iteration ---------------------------------------------------------------------------- */

typedef struct totals {
    double loss, policy, value, entropy, clipped, norm, divergence;
    int64_t n, n_last; /* minibatches: of all, of this epoch */
} totals;

static void add_batch(totals *t, const batch *b)
{
    t->loss += b->loss;
    t->policy += b->policy;
    t->value += b->value;
    t->entropy += b->entropy;
    t->clipped += b->clipped;
    t->divergence += b->divergence;
    t->n++;
    t->n_last++;
}

static void report(const totals *t, lw_ppo_report *out)
{
    double n = (double)LW_MAX(t->n, 1);
    out->loss = t->loss / n;
    out->policy_loss = t->policy / n;
    out->value_loss = t->value / n;
    out->entropy = t->entropy / n;
    out->clipped = t->clipped / n;
    out->divergence = t->divergence / (double)LW_MAX(t->n_last, 1);
    out->grad_norm = out->updates ? t->norm / out->updates : 0.0;
}

/* One epoch; *stopped: the policy has moved as far as it may. */
static int epoch(lw_ppo_update *u, batch from, totals *t, lw_ppo_report *out, bool *stopped)
{
    int64_t all = (int64_t)u->c->n_envs * u->c->n_steps;
    t->divergence = 0.0;
    t->n_last = 0;
    for (from.begin = 0; from.begin < all && !*stopped; from.begin += u->c->train.batch_size) {
        batch b = from;
        double norm = 0.0;
        b.n = LW_MIN(all - b.begin, (int64_t)u->c->train.batch_size);
        LW_TRY(gradient(&b));
        add_batch(t, &b);
        out->parts += b.parts;
        *stopped = b.rates->stop_early && u->c->target_kl > 0.0 &&
                   b.divergence > 1.5 * u->c->target_kl;
        if (*stopped)
            break;
        LW_TRY(adam(&b, &norm));
        out->updates++;
        t->norm += norm;
    }
    return 0;
}

int lw_ppo_update_run(lw_ppo_update *u, const lw_ppo_rollout *r, int64_t step,
                      const lw_ppo_rates *rates, lw_ppo_report *out)
{
    totals t = {0};
    bool stopped = false;
    batch b = {.u = u, .r = r, .rates = rates, .step = step};
    b.order = lw_rng_key_of((uint64_t)u->c->train.seed, lw_hash_name("ppo.order"));
    *out = (lw_ppo_report){0};
    for (int32_t e = 0; e < u->c->n_epochs && !stopped; e++) {
        b.epoch = (uint32_t)(step * u->c->n_epochs + e);
        LW_TRY(epoch(u, b, &t, out, &stopped));
        out->epochs += !stopped;
    }
    report(&t, out);
    return 0;
}

int lw_ppo_update_flops(lw_ppo_update *u, const lw_ppo_rollout *r, double *flops)
{
    const lw_ppo_rates rates = {0};
    int64_t all = (int64_t)u->c->n_envs * u->c->n_steps;
    double sum = 0.0;
    batch b = {.u = u, .r = r, .rates = &rates, .flops = &sum};
    b.order = lw_rng_key_of((uint64_t)u->c->train.seed, lw_hash_name("ppo.order"));
    for (; b.begin < all; b.begin += u->c->train.batch_size) {
        b.n = LW_MIN(all - b.begin, (int64_t)u->c->train.batch_size);
        LW_TRY(gradient(&b));
    }
    *flops = sum * u->c->n_epochs;
    return 0;
}
