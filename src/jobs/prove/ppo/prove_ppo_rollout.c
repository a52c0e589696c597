/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Roll-outs in rounds. Each round: successors of all proofs (all workers), the different states
 * among them looked up in order (one thread), features of the new ones (all workers), then every
 * proof's choice (all workers). A player works on its own memory with any worker's env.
 */
#include "jobs/prove/ppo/prove_ppo_rollout.h"

#include <string.h>

#include "base/base.h"

/* One of the n_envs proofs that are walked together. */
struct lw_ppo_player {
    bool live, positive;
    int32_t episode, begun; /* number of the proof, and the choice it began with */
    lw_moves *moves;        /* successors of this round, copied out of the worker's env */
    int32_t state, *slot;   /* theirs: [padding_states] */
    lw_ppo_counts counts;   /* of this iteration */
};

typedef struct round_job {
    lw_ppo_rollout *r;
    int32_t step;
    lw_rng_key choose;
} round_job;

double lw_ppo_reward(lw_ppo_reward_type type, bool positive, lw_proof_end end, int32_t neg_ratio)
{
    bool proved = end == LW_PROOF_PROVED;
    double weight = neg_ratio > 0 ? 1.0 / neg_ratio : 1.0;
    switch (type) {
    case LW_PPO_REWARD_TRUE_PROOFS:
        return positive && proved;
    case LW_PPO_REWARD_PROOFS:
        return proved ? (positive ? 1.0 : -1.0) : 0.0;
    case LW_PPO_REWARD_RIGHT:
        return positive == proved;
    case LW_PPO_REWARD_STRICT:
        return positive ? (proved ? 1.0 : -0.5) : (proved ? -1.5 : 1.0);
    default:
        if (positive || proved)
            return positive && proved ? 1.0 : -1.0;
        return weight + (type == LW_PPO_REWARD_GIVING_UP && end == LW_PROOF_STOPPED ? 0.3 : 0.0);
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
    size_t n = (size_t)r->c->n_envs, width = (size_t)r->c->env.padding_states;
    LW_TRY(lw_paths_new(&r->c->env, r->c->n_envs, &r->paths));
    LW_TRY(lw_moves_new(&r->c->env, r->c->n_envs, &r->moves_of));
    r->player = lw_calloc(n, sizeof *r->player);
    r->slots = lw_calloc(n * width, sizeof *r->slots);
    if (!r->player || !r->slots)
        return LW_ENOMEM;
    for (size_t e = 0; e < n; e++) {
        r->player[e].moves = &r->moves_of[e];
        r->player[e].slot = r->slots + e * width;
    }
    return 0;
}

int lw_ppo_rollout_open(const lw_ppo_config *c, const lw_ppo_source *source, lw_device *dev,
                        lw_store *store, lw_ppo_rollout *out)
{
    lw_ppo_rollout *r = out;
    const lw_state_rows_options o = {.rows = 1024,
                                     .in_use = 4096,
                                     .successors = c->env.padding_states,
                                     .precision = c->train.precision,
                                     .training = true};
    *r = (lw_ppo_rollout){.c = c, .source = *source, .dev = dev};
    LW_TRY(lw_state_rows_new(dev, &c->net, store, &o, &r->rows));
    r->n_env = lw_pool_size(dev->pool);
    r->env = lw_calloc((size_t)r->n_env, sizeof *r->env);
    r->choice = lw_calloc((size_t)c->n_envs * (size_t)c->n_steps, sizeof *r->choice);
    if (!r->env || !r->choice)
        return LW_ENOMEM;
    for (int i = 0; i < r->n_env; i++)
        LW_TRY(lw_env_new(source->kb, &c->env, &r->env[i]));
    return open_players(r);
}

void lw_ppo_rollout_close(lw_ppo_rollout *r)
{
    for (int i = 0; r->env && i < r->n_env; i++)
        lw_env_free(&r->env[i]);
    lw_free(&r->player);
    lw_free(&r->env);
    lw_free(&r->choice);
    lw_free(&r->moves);
    lw_free(&r->slots);
    lw_moves_free(&r->moves_of);
    lw_paths_free(&r->paths);
    lw_state_rows_free(&r->rows);
}

/* ---- one round ------------------------------------------------------------------------------- */

/* Every second player begins with a corrupted query. */
static void begin(const round_job *j, int32_t e, const lw_env *env)
{
    const lw_ppo_rollout *r = j->r;
    lw_ppo_player *p = &r->player[e];
    uint64_t row = (uint64_t)e << 32 | (uint32_t)p->episode;
    lw_atom q = lw_ppo_source_draw(&r->source, (uint64_t)r->c->train.seed, (uint32_t)r->iteration,
                                   row, p->episode + e, &p->positive);
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
    lw_moves_copy(&m, p->moves);
}

/* All states of an iteration stay. */
static int hold(lw_ppo_rollout *r, const lw_atom *atoms, int32_t n, uint64_t hash, lw_atom query,
                int32_t *slot)
{
    int32_t i = lw_state_rows_hold(r->rows, atoms, n, hash, query);
    if (i < 0) {
        LW_TRY(lw_state_rows_grow(r->rows));
        i = lw_state_rows_hold(r->rows, atoms, n, hash, query);
    }
    r->n_states = LW_MAX(r->n_states, i + 1);
    *slot = i;
    return 0;
}

/* Slots for the state of every player and, where there is a choice, for its successors. */
static int look_up(lw_ppo_rollout *r, bool successors)
{
    for (int32_t e = 0; e < r->c->n_envs; e++) {
        lw_ppo_player *p = &r->player[e];
        const lw_path *path = &r->paths[e];
        const lw_moves *m = p->moves;
        int32_t n;
        const lw_atom *atoms = lw_path_state(path, &r->c->env, &n);
        LW_TRY(hold(r, atoms, n, path->hash[path->n_states - 1], path->query, &p->state));
        for (int32_t k = 0; successors && m->n > 1 && k < m->n; k++)
            LW_TRY(hold(r, m->atoms + m->first[k], m->first[k + 1] - m->first[k], m->hash[k],
                        path->query, &p->slot[k]));
    }
    const lw_tick tick = {(uint64_t)r->c->train.seed, (uint32_t)r->iteration};
    lw_state_rows_run(r->rows, &tick);
    return 0;
}

static void ended(const lw_ppo_rollout *r, lw_ppo_player *p, const lw_path *path, int32_t step,
                  lw_ppo_choice *x)
{
    x->ends = true;
    x->reward = lw_ppo_reward((lw_ppo_reward_type)r->c->reward_type, p->positive, path->end,
                              r->c->train_neg_ratio);
    p->live = false;
    p->counts.episodes[p->positive]++;
    p->counts.proved[p->positive] += path->end == LW_PROOF_PROVED;
    p->counts.length += step + 1 - p->begun;
    p->counts.reward += x->reward;
}

/* Player e, the i-th of its group. */
static void choose(const round_job *j, int32_t e, int32_t i, int worker)
{
    const lw_ppo_rollout *r = j->r;
    lw_ppo_player *p = &r->player[e];
    lw_ppo_choice *x = &r->choice[(size_t)e * (size_t)r->c->n_steps + (size_t)j->step];
    *x = (lw_ppo_choice){.state = p->state,
                         .n = p->moves->n,
                         .first = x->first,
                         .value = lw_state_rows_values(r->rows)[p->state]};
    if (x->n > 1) {
        double u = lw_rng_uniform(j->choose, (uint32_t)r->iteration, (uint64_t)e,
                                  (uint64_t)j->step),
               log_prob;
        x->action = lw_state_rows_choose(r->rows, worker, i, p->slot, x->n, u, &log_prob);
        x->log_prob = (float)log_prob;
    }
    lw_env_take(r->env[worker], &r->paths[e], p->moves, x->action);
    if (r->paths[e].end != LW_PROOF_OPEN)
        ended(r, p, &r->paths[e], j->step, x);
}

/* Their queries are one product. */
static void choose_task(void *arg, int64_t group, int worker)
{
    const round_job *j = arg;
    int32_t slot[LW_STATE_QUERIES] = {0}, first = (int32_t)group * LW_STATE_QUERIES,
            n = LW_MIN(j->r->c->n_envs - first, (int32_t)LW_STATE_QUERIES);
    for (int32_t i = 0; i < n; i++)
        slot[i] = j->r->player[first + i].state;
    lw_state_rows_query(j->r->rows, worker, slot, n);
    for (int32_t i = 0; i < n; i++)
        choose(j, first + i, i, worker);
}

/* Room for this round's successors, in the order of players. */
static int keep_moves(lw_ppo_rollout *r, int32_t step)
{
    for (int32_t e = 0; e < r->c->n_envs; e++) {
        const lw_ppo_player *p = &r->player[e];
        r->choice[(size_t)e * (size_t)r->c->n_steps + (size_t)step].first = r->n_moves;
        if (p->moves->n <= 1)
            continue;
        int64_t n = r->n_moves + p->moves->n;
        LW_TRY(lw_grow(&r->moves, &r->cap_moves, (size_t)n, sizeof *r->moves));
        memcpy(r->moves + r->n_moves, p->slot, (size_t)p->moves->n * sizeof *r->moves);
        r->n_moves = n;
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
    round_job j = {.r = r, .choose = lw_rng_key_of(seed, lw_hash_name("ppo.choice"))};
    r->iteration = iteration;
    r->n_moves = r->n_states = 0;
    lw_state_rows_forget(r->rows);
    for (int32_t e = 0; e < c->n_envs; e++) {
        r->player[e].live = false;
        r->player[e].episode = 0;
        r->player[e].counts = (lw_ppo_counts){0};
    }
    for (; j.step < c->n_steps; j.step++) {
        LW_TRY(lw_ppo_rollout_stopped(r));
        lw_pool_run(r->dev->pool, c->n_envs, expand_task, &j);
        LW_TRY(look_up(r, true));
        LW_TRY(keep_moves(r, j.step));
        lw_state_rows_prepare(r->rows);
        lw_pool_run(r->dev->pool, LW_CEIL_DIV(c->n_envs, (int32_t)LW_STATE_QUERIES), choose_task,
                    &j);
    }
    lw_pool_run(r->dev->pool, c->n_envs, expand_task, &j);
    LW_TRY(look_up(r, false));
    for (int32_t e = 0; e < c->n_envs; e++)
        lw_ppo_advantages(r->choice + (size_t)e * (size_t)c->n_steps, c->n_steps,
                          (double)lw_state_rows_values(r->rows)[r->player[e].state], c->gamma,
                          c->gae_lambda);
    sum_counts(r);
    return 0;
}
