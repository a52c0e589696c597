/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of minibatches. */
#include "jobs/prove/ppo/prove_ppo_part.h"

#include <string.h>

#include "base/base.h"

static const float masked = -1e9f;

int lw_ppo_part_open(lw_ppo_sizes z, int32_t max_atoms, lw_ppo_part *p)
{
    size_t u = (size_t)z.states, n = (size_t)z.choices, a = (size_t)max_atoms,
           wide = n * (size_t)z.successors, pairs = (size_t)z.pairs;
    *p = (lw_ppo_part){.most = z, .n_table = 1024};
    while (p->n_table < 4 * pairs)
        p->n_table *= 2;
    const struct {
        void *at;
        size_t n, size;
    } block[] = {{&p->predicates, u * a, sizeof *p->predicates},
                 {&p->arguments, 2 * u * a, sizeof *p->arguments},
                 {&p->rows, u, sizeof *p->rows},
                 {&p->scale, u, sizeof *p->scale},
                 {&p->from, pairs, sizeof *p->from},
                 {&p->to, pairs, sizeof *p->to},
                 {&p->state, n, sizeof *p->state},
                 {&p->action, n, sizeof *p->action},
                 {&p->place, wide, sizeof *p->place},
                 {&p->mask, wide, sizeof *p->mask},
                 {&p->advantage, n, sizeof *p->advantage},
                 {&p->old_log_prob, n, sizeof *p->old_log_prob},
                 {&p->old_value, n, sizeof *p->old_value},
                 {&p->target, n, sizeof *p->target},
                 {&p->weight, n, sizeof *p->weight},
                 {&p->pair_key, p->n_table, sizeof *p->pair_key},
                 {&p->pair_at, p->n_table, sizeof *p->pair_at}};
    for (size_t i = 0; i < LW_COUNT(block); i++) {
        void *memory = lw_calloc(block[i].n, block[i].size);
        if (!memory)
            return LW_ENOMEM;
        memcpy(block[i].at, &memory, sizeof memory);
    }
    return 0;
}

void lw_ppo_part_clear(lw_ppo_part *p)
{
    void *const block[] = {&p->predicates, &p->arguments,    &p->rows,      &p->scale,  &p->from,
                           &p->to,         &p->state,        &p->action,    &p->place,  &p->mask,
                           &p->advantage,  &p->old_log_prob, &p->old_value, &p->target, &p->weight,
                           &p->pair_key,   &p->pair_at,      &p->local,     &p->stamp};
    for (size_t i = 0; i < LW_COUNT(block); i++)
        lw_free(block[i]);
}

int lw_ppo_part_bind(lw_ppo_part *p, lw_exec *e)
{
    const struct {
        const char *name;
        void *data;
    } input[] = {{"predicates", p->predicates},
                 {"arguments", p->arguments},
                 {"scale", p->scale},
                 {"rows", p->rows},
                 {"from", p->from},
                 {"to", p->to},
                 {"state", p->state},
                 {"action", p->action},
                 {"place", p->place},
                 {"mask", p->mask},
                 {"advantage", p->advantage},
                 {"old_log_prob", p->old_log_prob},
                 {"old_value", p->old_value},
                 {"target", p->target},
                 {"weight", p->weight},
                 {"entropy_coef", p->entropy_coef}};
    for (size_t i = 0; i < LW_COUNT(input); i++)
        if (lw_exec_type(e, input[i].name).dtype) /* some exist with some options only */
            LW_TRY(lw_exec_bind(e, input[i].name, input[i].data));
    return 0;
}

int lw_ppo_part_begin(lw_ppo_part *p, int32_t states)
{
    LW_TRY(lw_grow(&p->local, &p->n_local, (size_t)states, sizeof *p->local));
    LW_TRY(lw_grow(&p->stamp, &p->n_stamp, (size_t)states, sizeof *p->stamp));
    p->states = p->pairs = p->choices = 0;
    memset(p->pair_key, 0, p->n_table * sizeof *p->pair_key);
    if (++p->now == 0) { /* once in 2^32 parts */
        memset(p->stamp, 0, p->n_stamp * sizeof *p->stamp);
        p->now = 1;
    }
    return 0;
}

bool lw_ppo_part_fits(const lw_ppo_part *p, int32_t n)
{
    return p->choices < p->most.choices && p->states + 1 + n <= p->most.states &&
           p->pairs + n <= p->most.pairs;
}

static int32_t local_state(lw_ppo_part *p, const lw_ppo_rollout *r, int32_t state)
{
    if (p->stamp[state] == p->now)
        return p->local[state];
    size_t i = (size_t)p->states, a = (size_t)r->c->net.max_atoms;
    lw_state_rows_fill(r->rows, state, p->predicates + i * a, p->arguments + i * a * 2,
                       p->scale + i);
    p->rows[i] = state;
    p->stamp[state] = p->now;
    p->local[state] = p->states;
    return p->states++;
}

static int32_t local_pair(lw_ppo_part *p, int32_t from, int32_t to)
{
    uint64_t key = ((uint64_t)(uint32_t)from << 32 | (uint32_t)to) + 1;
    size_t mask = p->n_table - 1, i = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & mask;
    for (; p->pair_key[i]; i = (i + 1) & mask)
        if (p->pair_key[i] == key)
            return p->pair_at[i];
    p->pair_key[i] = key;
    p->pair_at[i] = p->pairs;
    p->from[p->pairs] = from;
    p->to[p->pairs] = to;
    return p->pairs++;
}

void lw_ppo_part_add(lw_ppo_part *p, const lw_ppo_rollout *r, const lw_ppo_choice *x,
                     float advantage, float weight)
{
    int32_t b = p->choices++, s = p->most.successors, from = local_state(p, r, x->state), k = 0;
    int32_t *place = p->place + (size_t)b * (size_t)s;
    float *mask = p->mask + (size_t)b * (size_t)s;
    for (; x->n > 1 && k < x->n; k++) {
        place[k] = local_pair(p, from, local_state(p, r, r->moves[x->first + k]));
        mask[k] = 0.0f;
    }
    for (int32_t i = k; i < s; i++) {
        place[i] = 0;
        mask[i] = i == 0 ? 0.0f : masked; /* a choice of one has probability 1 */
    }
    p->state[b] = from;
    p->action[b] = x->action;
    p->advantage[b] = advantage;
    p->old_log_prob[b] = x->log_prob;
    p->old_value[b] = x->value;
    p->target[b] = x->target;
    p->weight[b] = weight;
}

void lw_ppo_part_pad(lw_ppo_part *p, lw_ppo_sizes z, int32_t max_atoms)
{
    size_t a = (size_t)max_atoms, u = (size_t)p->states, more = (size_t)z.states - u;
    for (size_t i = u; i < u + more; i++) { /* the first state again: an empty one may have no
                                               direction, and so no gradient */
        memcpy(p->predicates + i * a, p->predicates, a * sizeof *p->predicates);
        memcpy(p->arguments + i * a * 2, p->arguments, a * 2 * sizeof *p->arguments);
        p->scale[i] = p->scale[0];
        p->rows[i] = p->rows[0];
    }
    size_t pairs = (size_t)(z.pairs - p->pairs);
    memset(p->from + p->pairs, 0, pairs * sizeof *p->from);
    memset(p->to + p->pairs, 0, pairs * sizeof *p->to);
    for (int32_t b = p->choices; b < z.choices; b++) {
        size_t at = (size_t)b * (size_t)z.successors;
        for (int32_t i = 0; i < z.successors; i++) {
            p->place[at + (size_t)i] = 0;
            p->mask[at + (size_t)i] = i == 0 ? 0.0f : masked;
        }
        p->state[b] = p->action[b] = 0;
        p->advantage[b] = p->old_log_prob[b] = p->old_value[b] = p->target[b] = 0.0f;
        p->weight[b] = 0.0f;
    }
}
