/* SPDX-License-Identifier: Apache-2.0 */
/* Batches of embedding training: facts in a new order every epoch, candidates drawn uniformly. */
#include "jobs/prove/kge/prove_kge_feed.h"

#include "base/rng.h"

int lw_kge_feed_init(lw_kge_feed *f)
{
    f->candidates = f->negatives ? f->negatives : f->kb->n_constants;
    f->examples = 2 * (int64_t)f->kb->facts.n;
    if (f->examples > UINT32_MAX / 2)
        return lw_fail(LW_EUSAGE, "%lld facts are too many to train on", (long long)f->kb->facts.n);
    if (!f->negatives)
        return 0;
    f->first = lw_calloc((size_t)f->kb->n_constants, sizeof *f->first);
    f->next = lw_calloc((size_t)f->negatives, sizeof *f->next);
    if (!f->first || !f->next)
        return LW_ENOMEM;
    for (int32_t i = 0; i < f->kb->n_constants; i++)
        f->first[i] = -1;
    return 0;
}

void lw_kge_feed_clear(lw_kge_feed *f)
{
    lw_free(&f->first);
    lw_free(&f->next);
    lw_free(&f->zero);
}

static int disallow(lw_kge_feed *f, float *allowed, int64_t at)
{
    if (allowed[at] == 0.0f)
        return 0;
    LW_TRY(lw_grow(&f->zero, &f->cap_zero, f->n_zero + 1, sizeof *f->zero));
    f->zero[f->n_zero++] = at;
    allowed[at] = 0.0f;
    return 0;
}

/* Entity (counted from 0) is no false answer of row i. */
static int disallow_entity(lw_kge_feed *f, float *allowed, int64_t i, int32_t entity)
{
    if (!f->negatives)
        return disallow(f, allowed, i * f->candidates + entity);
    for (int32_t c = f->first[entity]; c >= 0; c = f->next[c])
        LW_TRY(disallow(f, allowed, i * f->candidates + c));
    return 0;
}

/* All known answers of (p, argument `side` = known). */
static int disallow_known(lw_kge_feed *f, float *allowed, int64_t i, lw_atom fact, int side)
{
    const lw_facts *facts = &f->kb->facts;
    lw_fact_range r = lw_facts_with(facts, fact.p, side, fact.arg[side]);
    for (int32_t k = r.first; k < r.first + r.n; k++) {
        const lw_atom *a = &facts->atom[side ? facts->by_second[k] : k];
        LW_TRY(disallow_entity(f, allowed, i, a->arg[!side] - 1));
    }
    return 0;
}

static void draw_candidates(lw_kge_feed *f, int64_t leaf, int32_t *to)
{
    lw_rng_key key = lw_rng_key_of(f->seed, lw_hash_name("kge.negatives"));
    for (int32_t c = 0; c < f->negatives; c++) {
        uint64_t row = (uint64_t)(leaf >> 32) << 32 | (uint32_t)c;
        to[c] = (int32_t)lw_rng_below(key, (uint32_t)leaf, row, 0, (uint32_t)f->kb->n_constants);
        f->next[c] = f->first[to[c]];
        f->first[to[c]] = c;
    }
}

/* Places that the batch before had closed are open again. */
static void reopen(lw_kge_feed *f, float *allowed)
{
    int64_t n = (int64_t)f->batch * f->candidates;
    if (!f->zero)
        for (int64_t i = 0; i < n; i++)
            allowed[i] = 1.0f;
    for (size_t i = 0; i < f->n_zero; i++)
        allowed[f->zero[i]] = 1.0f;
    f->n_zero = 0;
}

int lw_kge_feed_fill(lw_kge_feed *f, int64_t leaf, const lw_kge_inputs *in)
{
    lw_rng_key key = lw_rng_key_of(f->seed, lw_hash_name("kge.order"));
    int32_t *candidates = in->entities + 2 * f->batch;
    reopen(f, in->allowed);
    draw_candidates(f, leaf, candidates);
    for (int32_t i = 0; i < f->batch; i++) {
        int64_t at = leaf * f->batch + i;
        uint64_t e = lw_rng_permute(key, (uint32_t)(at / f->examples), (uint64_t)f->examples,
                                    (uint64_t)(at % f->examples));
        lw_atom fact = f->kb->facts.atom[e / 2];
        int known = (int)(e % 2); /* 0: the head is known, the tail asked for */
        in->entities[i] = fact.arg[known] - 1;
        in->entities[f->batch + i] = fact.arg[!known] - 1;
        in->relations[i] = fact.p - 1 + (known && f->inverse ? f->kb->n_predicates : 0);
        in->side[i] = known && !f->inverse ? -1.0f : 1.0f;
        LW_TRY(disallow_entity(f, in->allowed, i, fact.arg[!known] - 1));
        if (f->filter)
            LW_TRY(disallow_known(f, in->allowed, i, fact, known));
    }
    for (int32_t c = 0; c < f->negatives; c++)
        f->first[candidates[c]] = -1;
    return 0;
}
