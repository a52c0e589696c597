/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roll-outs in rounds. Each round: successors of all proofs (all workers), the different states
 * among them numbered in order (one thread), features of the new ones (the network, full batches),
 * then every proof's choice (all workers). A player works on its own memory with any worker's env.
 */
#include "jobs/prove/ppo/prove_ppo_rollout.h"

#include <math.h>
#include <string.h>

#include "kernels/kernels.h"
#include "base/base.h"

/* One of the n_envs proofs that are walked together. */
struct lw_ppo_player {
    bool live, positive;
    int32_t episode, begun;  /* number of the proof, and the choice it began with */
    lw_atom *atoms;          /* successors of this round, copied out of the worker's env */
    int32_t *first, *id;     /* [padding_states + 1], [padding_states] */
    uint64_t *hash;          /* [padding_states] */
    lw_proof_origin *origin; /* [padding_states] */
    float *logit;            /* [padding_states] */
    int32_t *row;            /* [padding_states]: of the successors' keys */
    lw_moves moves;
    int32_t state;
    lw_ppo_counts counts; /* of this iteration */
};

typedef struct round_job {
    lw_ppo_rollout *r;
    int32_t step;
    const float *query; /* [n_envs][width] */
    lw_rng_key draw, choose;
} round_job;

double lw_ppo_reward(int32_t type, bool positive, lw_proof_end end, int32_t neg_ratio)
{
    bool proved = end == LW_PROOF_PROVED;
    double weight = neg_ratio > 0 ? 1.0 / neg_ratio : 1.0;
    switch (type) {
    case 0:
        return positive && proved;
    case 1:
        return proved ? (positive ? 1.0 : -1.0) : 0.0;
    case 2:
        return positive == proved;
    case 3:
        return positive ? (proved ? 1.0 : -0.5) : (proved ? -1.5 : 1.0);
    default:
        if (positive || proved)
            return positive && proved ? 1.0 : -1.0;
        return weight + (type == 5 && end == LW_PROOF_STOPPED ? 0.3 : 0.0);
    }
}

void lw_ppo_advantages(lw_ppo_choice *choice, int32_t n, double last, double gamma, double lambda)
{
    double next_value = last, next_advantage = 0.0;
    for (int32_t t = n - 1; t >= 0; t--) {
        lw_ppo_choice *x = &choice[t];
        double go_on = x->ends ? 0.0 : 1.0, value = (double)x->value;
        double delta = x->reward + gamma * next_value * go_on - value;
        next_advantage = delta + gamma * lambda * go_on * next_advantage;
        next_value = value;
        x->advantage = (float)next_advantage;
        x->target = (float)(next_advantage + value);
    }
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int open_players(lw_ppo_rollout *r)
{
    size_t states = (size_t)r->c->env.padding_states,
           atoms = states * (size_t)r->c->env.padding_atoms;
    r->player = lw_calloc((size_t)r->c->n_envs, sizeof *r->player);
    if (!r->player)
        return LW_ENOMEM;
    for (int32_t e = 0; e < r->c->n_envs; e++) {
        lw_ppo_player *p = &r->player[e];
        p->atoms = lw_calloc(atoms, sizeof *p->atoms);
        p->first = lw_calloc(states + 1, sizeof *p->first);
        p->id = lw_calloc(states, sizeof *p->id);
        p->hash = lw_calloc(states, sizeof *p->hash);
        p->origin = lw_calloc(states, sizeof *p->origin);
        p->logit = lw_calloc(states, sizeof *p->logit);
        p->row = lw_calloc(states, sizeof *p->row);
        if (!p->atoms || !p->first || !p->id || !p->hash || !p->origin || !p->logit || !p->row)
            return LW_ENOMEM;
    }
    return 0;
}

int lw_ppo_rollout_open(const lw_ppo_config *c, const lw_ppo_source *source, lw_device *dev,
                        lw_ppo_net *net, lw_ppo_rollout *out)
{
    lw_ppo_rollout *r = out;
    *r = (lw_ppo_rollout){.c = c, .source = *source, .dev = dev, .net = net};
    lw_ppo_states_init(&r->states, net->config->max_atoms, lw_policy_key_width(net->config));
    r->n_env = lw_pool_size(dev->pool);
    r->env = lw_calloc((size_t)r->n_env, sizeof *r->env);
    r->choice = lw_calloc((size_t)c->n_envs * (size_t)c->n_steps, sizeof *r->choice);
    if (!r->env || !r->choice)
        return LW_ENOMEM;
    for (int i = 0; i < r->n_env; i++)
        LW_TRY(lw_env_new(source->kb, &c->env, &r->env[i]));
    LW_TRY(lw_paths_new(&c->env, c->n_envs, &r->paths));
    return open_players(r);
}

void lw_ppo_rollout_close(lw_ppo_rollout *r)
{
    for (int32_t e = 0; r->player && e < r->c->n_envs; e++) {
        lw_ppo_player *p = &r->player[e];
        lw_free(&p->atoms);
        lw_free(&p->first);
        lw_free(&p->id);
        lw_free(&p->hash);
        lw_free(&p->origin);
        lw_free(&p->logit);
        lw_free(&p->row);
    }
    for (int i = 0; r->env && i < r->n_env; i++)
        lw_env_free(&r->env[i]);
    lw_free(&r->player);
    lw_free(&r->env);
    lw_free(&r->choice);
    lw_free(&r->moves);
    lw_paths_free(&r->paths);
    lw_ppo_states_clear(&r->states);
}

/* ---- one round ------------------------------------------------------------------------------- */

/* True and corrupted queries take turns, heads and tails among the corrupted; every second player
 * begins with a corrupted one. */
static void begin(const round_job *j, int32_t e, const lw_env *env)
{
    const lw_ppo_rollout *r = j->r;
    const lw_ppo_source *s = &r->source;
    lw_ppo_player *p = &r->player[e];
    int32_t turn = p->episode + e, period = 1 + r->c->train_neg_ratio, side = 1;
    uint64_t row = (uint64_t)e << 32 | (uint32_t)p->episode;
    uint32_t step = (uint32_t)r->iteration;
    lw_atom q = s->query[lw_rng_below(j->draw, step, row, 0, (uint32_t)s->n)];
    p->positive = turn % period == 0;
    if (s->heads)
        side = s->tails ? (turn - turn / period - 1) & 1 : 0;
    /* nothing to corrupt it with: the true one stands */
    if (!p->positive && !lw_corrupt_one(s->corruptor, q, side, j->draw, step, row, &q))
        p->positive = true;
    lw_env_begin(env, &r->paths[e], q);
    p->live = true;
    p->begun = j->step;
    p->episode++;
}

static void expand_task(void *arg, int64_t task, int worker)
{
    const round_job *j = arg;
    const lw_ppo_rollout *r = j->r;
    int32_t e = (int32_t)task;
    lw_ppo_player *p = &r->player[e];
    lw_moves m;
    if (!p->live)
        begin(j, e, r->env[worker]);
    lw_env_moves(r->env[worker], &r->paths[e], &m);
    size_t n = (size_t)m.n;
    memcpy(p->first, m.first, (n + 1) * sizeof *p->first);
    memcpy(p->atoms, m.atoms, (size_t)m.first[n] * sizeof *p->atoms);
    memcpy(p->hash, m.hash, n * sizeof *p->hash);
    memcpy(p->origin, m.origin, n * sizeof *p->origin);
    p->moves = (lw_moves){m.n, p->atoms, p->first, p->hash, p->origin, m.next_var};
}

/* Numbers for the state of every player and, where there is a choice, for its successors. */
static int number(lw_ppo_rollout *r, bool successors)
{
    for (int32_t e = 0; e < r->c->n_envs; e++) {
        lw_ppo_player *p = &r->player[e];
        const lw_path *path = &r->paths[e];
        int32_t n;
        const lw_atom *atoms = lw_path_state(path, &r->c->env, &n);
        LW_TRY(lw_ppo_states_add(&r->states, atoms, n, path->hash[path->n_states - 1], &p->state));
        LW_TRY(lw_ppo_states_want(&r->states, p->state));
        for (int32_t k = 0; successors && p->moves.n > 1 && k < p->moves.n; k++) {
            LW_TRY(lw_ppo_states_add(&r->states, p->atoms + p->first[k],
                                     p->first[k + 1] - p->first[k], p->hash[k], &p->id[k]));
            LW_TRY(lw_ppo_states_want(&r->states, p->id[k]));
        }
    }
    const lw_tick tick = {(uint64_t)r->c->train.seed, (uint32_t)r->iteration};
    return lw_ppo_net_states(r->net, &r->states, &tick);
}

/* What current states are multiplied with. */
static int find_queries(lw_ppo_rollout *r, const float **query)
{
    const lw_ppo_states *s = &r->states;
    size_t w = (size_t)s->width;
    float *key = lw_exec_data(r->net->query, "key");
    for (int32_t e = 0; e < r->c->n_envs; e++)
        memcpy(key + (size_t)e * w, s->key + (size_t)s->row[r->player[e].state] * w,
               w * sizeof *key);
    LW_TRY(lw_exec_run(r->net->query, NULL));
    *query = lw_exec_data(r->net->query, "query");
    return 0;
}

/* Draws a successor by the softmax of the logits. */
static int32_t draw(const round_job *j, int32_t e, float *log_prob)
{
    const lw_ppo_rollout *r = j->r;
    const lw_ppo_states *s = &r->states;
    lw_ppo_player *p = &r->player[e];
    double most = (double)-INFINITY, sum = 0.0, at = 0.0;
    int32_t n = p->moves.n, k;
    for (k = 0; k < n; k++)
        p->row[k] = s->row[p->id[k]];
    r->dev->kernels->reduce.dots(p->logit, j->query + (size_t)e * (size_t)s->width, s->key, p->row,
                                 n, s->width);
    for (k = 0; k < n; k++)
        most = LW_MAX(most, (double)p->logit[k]);
    for (k = 0; k < n; k++)
        sum += exp((double)p->logit[k] - most);
    double u = lw_rng_uniform(j->choose, (uint32_t)r->iteration, (uint64_t)e, (uint64_t)j->step);
    for (k = 0; k < n - 1; k++) {
        at += exp((double)p->logit[k] - most);
        if (u * sum < at)
            break;
    }
    *log_prob = (float)((double)p->logit[k] - most - log(sum));
    return k;
}

static void ended(const lw_ppo_rollout *r, lw_ppo_player *p, const lw_path *path, int32_t step,
                  lw_ppo_choice *x)
{
    x->ends = true;
    x->reward = lw_ppo_reward(r->c->reward_type, p->positive, path->end, r->c->train_neg_ratio);
    p->live = false;
    p->counts.episodes[p->positive]++;
    p->counts.proved[p->positive] += path->end == LW_PROOF_PROVED;
    p->counts.length += step + 1 - p->begun;
    p->counts.reward += x->reward;
}

static void choose_task(void *arg, int64_t task, int worker)
{
    const round_job *j = arg;
    const lw_ppo_rollout *r = j->r;
    int32_t e = (int32_t)task;
    lw_ppo_player *p = &r->player[e];
    lw_ppo_choice *x = &r->choice[(size_t)e * (size_t)r->c->n_steps + (size_t)j->step];
    *x = (lw_ppo_choice){.state = p->state,
                         .n = p->moves.n,
                         .first = x->first,
                         .value = r->states.value[r->states.row[p->state]]};
    if (p->moves.n > 1)
        x->action = draw(j, e, &x->log_prob);
    lw_env_take(r->env[worker], &r->paths[e], &p->moves, x->action);
    if (r->paths[e].end != LW_PROOF_OPEN)
        ended(r, p, &r->paths[e], j->step, x);
}

/* Room for this round's successors, in the order of players. */
static int keep_moves(lw_ppo_rollout *r, int32_t step)
{
    for (int32_t e = 0; e < r->c->n_envs; e++) {
        const lw_ppo_player *p = &r->player[e];
        r->choice[(size_t)e * (size_t)r->c->n_steps + (size_t)step].first = r->n_moves;
        if (p->moves.n <= 1)
            continue;
        LW_TRY(
            lw_grow(&r->moves, &r->cap_moves, (size_t)(r->n_moves + p->moves.n), sizeof *r->moves));
        memcpy(r->moves + r->n_moves, p->id, (size_t)p->moves.n * sizeof *r->moves);
        r->n_moves += p->moves.n;
    }
    return 0;
}

static void sum_counts(lw_ppo_rollout *r)
{
    r->counts = (lw_ppo_counts){0};
    for (int32_t e = 0; e < r->c->n_envs; e++) {
        const lw_ppo_counts *p = &r->player[e].counts;
        for (int i = 0; i < 2; i++) {
            r->counts.episodes[i] += p->episodes[i];
            r->counts.proved[i] += p->proved[i];
        }
        r->counts.length += p->length;
        r->counts.reward += p->reward;
    }
}

int lw_ppo_rollout_stopped(const lw_ppo_rollout *r)
{
    return lw_observe_stop(r->obs) ? lw_fail(LW_ESTOPPED, "stopped within an iteration") : 0;
}

int lw_ppo_rollout_run(lw_ppo_rollout *r, int64_t iteration)
{
    const lw_ppo_config *c = r->c;
    uint64_t seed = (uint64_t)c->train.seed;
    round_job j = {.r = r,
                   .draw = lw_rng_key_of(seed, lw_hash_name("ppo.query")),
                   .choose = lw_rng_key_of(seed, lw_hash_name("ppo.choice"))};
    r->iteration = iteration;
    r->n_moves = 0;
    lw_ppo_states_empty(&r->states);
    for (int32_t e = 0; e < c->n_envs; e++) {
        r->player[e].live = false;
        r->player[e].episode = 0;
        r->player[e].counts = (lw_ppo_counts){0};
    }
    for (; j.step < c->n_steps; j.step++) {
        LW_TRY(lw_ppo_rollout_stopped(r));
        lw_pool_run(r->dev->pool, c->n_envs, expand_task, &j);
        LW_TRY(number(r, true));
        LW_TRY(find_queries(r, &j.query));
        LW_TRY(keep_moves(r, j.step));
        lw_pool_run(r->dev->pool, c->n_envs, choose_task, &j);
    }
    lw_pool_run(r->dev->pool, c->n_envs, expand_task, &j);
    LW_TRY(number(r, false));
    for (int32_t e = 0; e < c->n_envs; e++)
        lw_ppo_advantages(r->choice + (size_t)e * (size_t)c->n_steps, c->n_steps,
                          (double)r->states.value[r->states.row[r->player[e].state]], c->gamma,
                          c->gae_lambda);
    sum_counts(r);
    return 0;
}
