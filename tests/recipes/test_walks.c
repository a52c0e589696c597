/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks: what comes out for a query depends on nothing but knowledge base, policy, query and id;
 * never more proofs live than allowed; nothing is allocated while walking; errors say what is
 * wrong.
 */
#include <math.h>

#include "backend/cpu/cpu.h"
#include "recipes/recipe_walks.h"
#include "unit/test_proof_util.h"

enum { WALKS = 600, PEOPLE = 40 };

/* Parents on a ring with chords, so that walks are of all lengths and states come back. */
static lw_kb *relatives(void)
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

static bool next(void *self, lw_walk *out)
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

static int done(void *self, const lw_walk_result *r)
{
    crowd *c = self;
    assert_in_range(r->walk.id, 0, WALKS - 1);
    assert_int_equal(c->of[r->walk.id].end, LW_PROOF_OPEN); /* once each */
    c->of[r->walk.id] = *r;
    c->alive--;
    return c->stop_after && --c->stop_after == 0 ? lw_fail(LW_ESTOPPED, "enough") : 0;
}

static lw_walks_counts walk(const lw_kb *kb, const lw_policy_source *policy,
                            const lw_walks_options *o, int threads, crowd *c)
{
    LW_CLEANUP(lw_cpu_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    memset(c, 0, sizeof *c);
    c->kb = kb;
    c->n = WALKS;
    ok(lw_cpu_open(threads, lw_isa_best(), &dev));
    ok(lw_walks_new(kb, dev, policy, o, &w));
    uint64_t allocations = lw_alloc_count();
    ok(lw_walks_run(w, next, done, c));
    assert_int_equal(lw_alloc_count(), allocations);
    assert_true(c->most <= o->fixed_batch_size);
    assert_int_equal(c->alive, 0);
    assert_int_equal(c->given, WALKS);
    return *lw_walks_counted(w);
}

static void same_results(const crowd *a, const crowd *b)
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

static void uniform_walks_depend_on_the_walk_alone(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    lw_walks_options o = lw_walks_defaults();
    lw_walks_counts a = walk(kb, NULL, &o, 1, &first), b;
    int ends[5] = {0};
    for (int i = 0; i < WALKS; i++)
        ends[first.of[i].end]++;
    print_message("%d walks: %d proved, %d failed, %d stopped, %d deep; %lld choices of %.1f\n",
                  WALKS, ends[1], ends[2], ends[3], ends[4], (long long)a.query_steps,
                  (double)a.states_offered / (double)a.query_steps);
    assert_true(ends[1] > 0 && ends[3] > 0);
    assert_int_equal(a.query_steps, a.env.steps);
    assert_int_equal(a.states_offered, a.env.successors);
    for (int i = 0; i < 3; i++) {
        o.fixed_batch_size = (int32_t[]){1, 7, 600}[i];
        b = walk(kb, NULL, &o, (int[]){5, 2, 3}[i], &other);
        same_results(&first, &other);
        assert_int_equal(a.query_steps, b.query_steps);
        assert_int_equal(a.forced, b.forced);
        assert_memory_equal(&a.env, &b.env, sizeof a.env);
    }
    o.seed = 1;
    b = walk(kb, NULL, &o, 1, &other);
    assert_int_not_equal(a.query_steps, b.query_steps);
}

static void wrong_use_is_named(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(lw_cpu_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    lw_walks_options o = lw_walks_defaults();
    ok(lw_cpu_open(1, lw_isa_best(), &dev));
    o.fixed_batch_size = 0;
    fails(lw_walks_new(kb, dev, NULL, &o, &w), LW_EUSAGE, "fixed-batch-size");
    o = lw_walks_defaults();
    o.rows = 0;
    fails(lw_walks_new(kb, dev, NULL, &o, &w), LW_EUSAGE, "rows");
    o = lw_walks_defaults();
    o.precision = LW_NUM_S8;
    fails(lw_walks_new(kb, dev, NULL, &o, &w), LW_EUSAGE, "precision");
    o = lw_walks_defaults();
    o.env.max_depth = 0;
    fails(lw_walks_new(kb, dev, NULL, &o, &w), LW_EUSAGE, "max-depth");
    assert_null(w);
}

static bool stranger(void *self, lw_walk *out)
{
    *out = (lw_walk){.id = 77, .query = {1, {1, *(int32_t *)self}}};
    return true;
}

static void a_run_ends_with_its_errors_and_another_may_follow(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(lw_cpu_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    lw_walks_options o = lw_walks_defaults();
    int32_t nobody = PEOPLE + 1;
    o.fixed_batch_size = 16;
    ok(lw_cpu_open(2, lw_isa_best(), &dev));
    ok(lw_walks_new(kb, dev, NULL, &o, &w));
    fails(lw_walks_run(w, stranger, done, &nobody), LW_EUSAGE, "walk 77");
    other = (crowd){.kb = kb, .n = WALKS, .stop_after = 20};
    fails(lw_walks_run(w, next, done, &other), LW_ESTOPPED, "enough");
    other = (crowd){.kb = kb, .n = 0};
    ok(lw_walks_run(w, next, done, &other));
    other = (crowd){.kb = kb, .n = WALKS};
    ok(lw_walks_run(w, next, done, &other));
    o.fixed_batch_size = 512;
    walk(kb, NULL, &o, 1, &first);
    same_results(&first, &other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uniform_walks_depend_on_the_walk_alone),
        cmocka_unit_test(wrong_use_is_named),
        cmocka_unit_test(a_run_ends_with_its_errors_and_another_may_follow),
    };
    return cmocka_run_group_tests_name("walks", tests, NULL, NULL);
}
