/* SPDX-License-Identifier: Apache-2.0 */
/* Training queries. */
#include "jobs/prove/ppo/prove_ppo_source.h"

#include <math.h>
#include <stdlib.h>

#include "base/base.h"

/* Is this corruption to be one that the rules prove? */
static bool wants_hard(const lw_ppo_source *s, uint64_t seed, uint32_t step, uint64_t row)
{
    const lw_rng_key key = lw_rng_key_of(seed, lw_hash_name("ppo.hard"));
    return s->hard > 0.0 && lw_rng_uniform(key, step, row, 0) < s->hard;
}

/* Corruptions are drawn until one follows from the rules; the first one stands when none does. */
static bool corrupt(const lw_ppo_source *s, lw_atom query, int side, lw_rng_key key, uint32_t step,
                    uint64_t row, bool hard, lw_atom *out)
{
    enum { TRIES = 64 };
    if (!lw_corrupt_one(s->corruptor, query, side, key, step, row, out))
        return false;
    lw_atom other = *out;
    for (uint64_t k = 1; hard && k < TRIES && !lw_least_model_has(s->least, other); k++)
        lw_corrupt_one(s->corruptor, query, side, key, step, row | k << 56, &other);
    if (hard && lw_least_model_has(s->least, other))
        *out = other;
    return true;
}

/* True and corrupted queries take turns, heads and tails among the corrupted. */
lw_atom lw_ppo_source_draw(const lw_ppo_source *s, uint64_t seed, uint32_t iteration, uint64_t row,
                           int32_t turn, bool *positive)
{
    const lw_rng_key draw = lw_rng_key_of(seed, lw_hash_name("ppo.query")),
                     other = lw_rng_key_of(seed, lw_hash_name("ppo.corruption"));
    int32_t period = 1 + s->neg_ratio, side = 1;
    lw_atom q = s->query[lw_rng_below(draw, iteration, row, 0, (uint32_t)s->open)];
    *positive = turn % period == 0;
    if (s->heads)
        side = s->tails ? (turn - turn / period - 1) & 1 : 0;
    /* nothing to corrupt it with: the true one stands */
    if (!*positive &&
        !corrupt(s, q, side, other, iteration, row, wants_hard(s, seed, iteration, row), &q))
        *positive = true;
    return q;
}

void lw_ppo_source_open(lw_ppo_source *s, double share, int64_t at, int64_t goal)
{
    double whole = share * (double)goal;
    double part = whole > 0.0 ? LW_MIN((double)at / whole, 1.0) : 1.0;
    s->open = LW_MAX((int32_t)ceil(part * s->n), s->shortest);
}

typedef struct placed {
    int32_t depth, at;
} placed;

static int by_depth(const void *x, const void *y)
{
    const placed *a = x, *b = y;
    return a->depth != b->depth ? (a->depth > b->depth) - (a->depth < b->depth)
                                : (a->at > b->at) - (a->at < b->at);
}

int lw_ppo_source_sort(const lw_least_model *least, lw_queries *q, int32_t *shortest)
{
    const size_t n = (size_t)q->n;
    LW_CLEANUP(lw_least_asker_free) lw_least_asker *asker = NULL;
    LW_CLEANUP(lw_free) placed *p = lw_calloc(n, sizeof *p);
    LW_CLEANUP(lw_free) lw_atom *was = lw_calloc(n, sizeof *was);
    if (!p || !was)
        return LW_ENOMEM;
    LW_TRY(lw_least_asker_new(least, &asker));
    for (size_t i = 0; i < n; i++) {
        p[i].at = (int32_t)i;
        was[i] = q->atom[i];
        LW_TRY(lw_least_ask(asker, q->atom[i], &p[i].depth));
        if (p[i].depth < 0)
            p[i].depth = INT32_MAX;
    }
    qsort(p, n, sizeof *p, by_depth);
    *shortest = 0;
    for (size_t i = 0; i < n; i++) {
        q->atom[i] = was[p[i].at];
        *shortest += p[i].depth == p[0].depth;
    }
    return 0;
}
