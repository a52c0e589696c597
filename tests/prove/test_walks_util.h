/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of walks: relatives, a stream of queries about them, a small network. */
#ifndef LW_TEST_WALKS_UTIL_H
#define LW_TEST_WALKS_UTIL_H

#include <math.h>

#include "cpu_device.h"
#include "models/models.h"
#include "jobs/prove/walk/prove_walks.h"
#include "unit/test_proof_util.h"

enum { WALKS = 600, PEOPLE = 40 };

/* Parents on a ring with chords, so that walks are of all lengths and states come back. */
static inline lw_kb *relatives(void)
{
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    for (int i = 0; i < PEOPLE; i++) {
        lw_str_addf(&facts, "parent(p%d,p%d).\n", i, (i + 1) % PEOPLE);
        lw_str_addf(&facts, "parent(p%d,p%d).\n", i, (i * 7 + 3) % PEOPLE);
        if (i % 3 == 0)
            lw_str_addf(&facts, "friend(p%d,p%d).\n", i, (i * 5 + 1) % PEOPLE);
    }
    return kb_of(lw_str_c(&facts), "r0:1:parent(x,y) -> older(x,y)\n"
                                   "r1:1:parent(x,z), older(z,y) -> older(x,y)\n"
                                   "r2:1:friend(x,y) -> near(x,y)\n"
                                   "r3:1:near(y,x) -> near(x,y)\n"
                                   "r4:1:near(x,z), older(y,z) -> near(x,y)\n"
                                   "r5:1:older(z,x), older(z,y) -> near(x,y)\n");
}

typedef struct crowd {
    const lw_kb *kb;
    int64_t given, n;
    int64_t alive, most; /* given and not done */
    int stop_after;      /* 0: never */
    lw_walk_result of[WALKS];
} crowd;

static inline bool next(void *self, lw_walk *out)
{
    crowd *c = self;
    if (c->given == c->n)
        return false;
    int64_t i = c->given++;
    const int32_t near = atom_of(c->kb, "near(p0,p1)").p, older = atom_of(c->kb, "older(p0,p1)").p;
    *out = (lw_walk){.id = i,
                     .query = {i % 3 ? near : older,
                               {1 + (int32_t)(i * 11 % PEOPLE), 1 + (int32_t)(i * 17 % PEOPLE)}}};
    c->alive++;
    c->most = LW_MAX(c->most, c->alive);
    return true;
}

static inline int done(void *self, const lw_walk_result *r)
{
    crowd *c = self;
    assert_in_range(r->walk.id, 0, WALKS - 1);
    assert_int_equal(c->of[r->walk.id].end, LW_PROOF_OPEN); /* once each */
    c->of[r->walk.id] = *r;
    c->alive--;
    return c->stop_after && --c->stop_after == 0 ? lw_fail(LW_ESTOPPED, "enough") : 0;
}

static inline lw_walks_counts walk(const lw_kb *kb, const lw_policy_source *policy,
                                   const lw_walks_options *o, int threads, crowd *c)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    memset(c, 0, sizeof *c);
    c->kb = kb;
    c->n = WALKS;
    ok(cpu_device(threads, lw_isa_best(), &dev));
    ok(lw_walks_new(kb, dev, policy, o, &w));
    uint64_t allocations = lw_alloc_count();
    ok(lw_walks_run(w, next, done, c));
    assert_int_equal(lw_alloc_count(), allocations);
    assert_true(c->most <= o->fixed_batch_size);
    assert_int_equal(c->alive, 0);
    assert_int_equal(c->given, WALKS);
    return *lw_walks_counted(w);
}

static inline void same_results(const crowd *a, const crowd *b)
{
    for (int i = 0; i < WALKS; i++)
        if (a->of[i].end != b->of[i].end || a->of[i].depth != b->of[i].depth ||
            a->of[i].log_prob != b->of[i].log_prob ||
            !lw_atom_eq(a->of[i].walk.query, b->of[i].walk.query))
            fail_msg("walk %d: end %d and %d, depth %d and %d, log-probability %.17g and %.17g", i,
                     a->of[i].end, b->of[i].end, a->of[i].depth, b->of[i].depth, a->of[i].log_prob,
                     b->of[i].log_prob);
}

static crowd first, other;

typedef struct net {
    lw_policy_config config;
    lw_store *store;
    lw_policy_source source;
} net;

static inline void net_of(const lw_kb *kb, uint64_t seed, net *n)
{
    n->config = lw_policy_default(kb->n_constants, lw_kb_endf(kb));
    n->config.embed = 20;
    n->config.hidden = 32;
    n->config.blocks = 2;
    ok(lw_store_new(true, &n->store));
    ok(lw_policy_declare(&n->config, n->store));
    ok(lw_policy_formula(&n->config, seed, n->store));
    n->source = (lw_policy_source){&n->config, n->store};
}

static inline void net_clear(net *n)
{
    lw_store_free(&n->store);
}

#endif
