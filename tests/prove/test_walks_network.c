/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks by a network: results are the same for any batch, rows, cache and threads, and of the
 * policy's probabilities; memory is bounded; errors leave nothing behind.
 */
#include "prove/test_walks_util.h"

#include "base/base.h"
#include "ir/ir.h"
#include "plan/plan.h"
#include "cpu_device.h"
#include "store/store.h"
#include "models/models.h"
#include "logic/logic.h"
#include "jobs/prove/walk/prove_state_rows.h"
#include "jobs/prove/walk/prove_walks.h"

static void check_counts(const lw_walks_counts *c, const lw_walks_options *o)
{
    assert_int_equal(c->query_steps, c->env.steps);
    assert_int_equal(c->states_offered, c->env.successors);
    assert_int_equal(c->query_rows, c->query_steps - c->forced);
    assert_true(c->states_scored == c->states_wanted - c->cache_hits);
    assert_true(c->states_scored <= c->plan_runs * o->rows);
    assert_true(c->plan_runs <= c->states_scored);
}

/* All ways to walk: the same results; and the same counts for any number of threads. */
static void network_walks_depend_on_the_walk_alone(void **state)
{
    const bool sample = *(const bool *)*state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(net_clear) net n = {0};
    lw_walks_options o = lw_walks_defaults();
    lw_walks_counts a, b;
    net_of(kb, 5, &n);
    o.sample = sample;
    o.cache_bytes = (size_t)64 << 20;
    a = walk(kb, &n.source, &o, 1, &first);
    check_counts(&a, &o);
    int ends[5] = {0}, evicted = 0;
    for (int i = 0; i < WALKS; i++)
        ends[first.of[i].end]++;
    print_message("%d proved, %d failed, %d stopped, %d deep; %lld choices, %lld states offered, "
                  "%lld scored in %lld runs, %lld hits\n",
                  ends[1], ends[2], ends[3], ends[4], (long long)a.query_steps,
                  (long long)a.states_offered, (long long)a.states_scored, (long long)a.plan_runs,
                  (long long)a.cache_hits);
    assert_true(ends[1] > 0 && ends[2] + ends[3] > 0 && a.cache_hits > 0);
    for (int i = 0; i < 27; i++) {
        o.fixed_batch_size = (int32_t[]){1, 7, 512}[i % 3];
        o.rows = (int32_t[]){16, 1024, 5}[i / 3 % 3];
        o.cache_bytes = (size_t[]){0, 1 << 16, 64 << 20}[i / 9];
        b = walk(kb, &n.source, &o, (int[]){1, 2, 5}[(i + i / 3) % 3], &other);
        same_results(&first, &other);
        check_counts(&b, &o);
        assert_int_equal(a.query_steps, b.query_steps);
        assert_memory_equal(&a.env, &b.env, sizeof a.env);
        evicted += b.evicted > 0;
        if (i == 4 || i == 13) { /* threads change no count */
            lw_walks_counts c = walk(kb, &n.source, &o, 3, &other);
            assert_memory_equal(&b, &c, offsetof(lw_walks_counts, seconds));
        }
    }
    assert_true(evicted > 3);
}

static void narrow_products_are_as_pure(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(net_clear) net n = {0};
    lw_walks_options o = lw_walks_defaults();
    net_of(kb, 3, &n);
    o.precision = LW_NUM_BF16;
    walk(kb, &n.source, &o, 2, &first);
    o.fixed_batch_size = 9;
    o.rows = 33;
    o.cache_bytes = 0;
    walk(kb, &n.source, &o, 3, &other);
    same_results(&first, &other);
}

/* With states that were never scored as successors (free steps), path-dependent numbers, few and
 * short successors. */
static void every_environment_is_as_pure(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(net_clear) net n = {0};
    net_of(kb, 5, &n);
    for (int i = 0; i < 6; i++) {
        lw_walks_options o = lw_walks_defaults();
        o.sample = true;
        o.env.end_proof_action = i != 0 && i != 1;
        o.env.skip_unary_actions = i == 1;
        o.env.numbering = i == 2   ? LW_NUMBER_PUBLISHED
                          : i == 3 ? LW_NUMBER_PARITY
                                   : LW_NUMBER_CANONICAL;
        o.env.padding_states = i == 4 ? 2 : 120;
        o.env.padding_atoms = i == 5 ? 2 : 6;
        o.env.memory_pruning = i != 5;
        lw_walks_counts a = walk(kb, &n.source, &o, 1, &first);
        o.fixed_batch_size = 3;
        o.rows = 10;
        o.cache_bytes = 0;
        walk(kb, &n.source, &o, 2, &other);
        same_results(&first, &other);
        print_message("%lld choices, %lld forced, %lld free, %lld states scored\n",
                      (long long)a.query_steps, (long long)a.forced, (long long)a.env.unary_steps,
                      (long long)a.states_scored);
        assert_true(a.states_scored > 100 && (i != 1 || a.env.unary_steps > 0));
    }
}

/* Log-probabilities are those of a softmax over all choices: uniform weights give -ln n a choice,
 * and the first of equals is the first of all. */
static void equal_logits_take_the_first(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(net_clear) net n = {0};
    LW_CLEANUP(lw_env_free) lw_env *env = NULL;
    LW_CLEANUP(lw_paths_free) lw_path *path = NULL;
    lw_walks_options o = lw_walks_defaults();
    net_of(kb, 3, &n);
    int64_t floats;
    float *slab = lw_store_slab(n.store, LW_SLAB_PARAM, &floats);
    memset(slab, 0, (size_t)floats * sizeof *slab);
    walk(kb, &n.source, &o, 2, &first);
    ok(lw_env_new(kb, &o.env, &env));
    ok(lw_paths_new(&o.env, 1, &path));
    for (int i = 0; i < WALKS; i++) {
        double log_prob = 0;
        lw_moves m;
        lw_env_begin(env, path, first.of[i].walk.query);
        for (lw_env_moves(env, path, &m); m.n > 0; lw_env_moves(env, path, &m)) {
            log_prob -= log((double)m.n);
            lw_env_take(env, path, &m, 0);
        }
        assert_int_equal(first.of[i].end, path->end);
        assert_int_equal(first.of[i].depth, path->depth);
        assert_true(fabs(first.of[i].log_prob - log_prob) < 1e-12);
    }
}

/* Draws follow the softmax: of many walks of one query, shares of first choices are near those of
 * their log-probabilities. Also: one with a single way to go has log-probability 0. */
static bool same_query(void *self, lw_walk *out)
{
    crowd *c = self;
    if (!next(self, out))
        return false;
    out->query = atom_of(c->kb, "near(p2,p9)");
    return true;
}

static void draws_follow_the_policy(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(net_clear) net n = {0};
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    lw_walks_options o = lw_walks_defaults();
    double share[WALKS], seen[WALKS];
    int kinds = 0;
    net_of(kb, 3, &n);
    n.config.temperature = 1;
    o.sample = true;
    o.env.max_depth = 1;
    ok(cpu_device(2, lw_isa_best(), &dev));
    ok(lw_walks_new(kb, dev, &n.source, &o, &w));
    other = (crowd){.kb = kb, .n = WALKS};
    ok(lw_walks_run(w, same_query, done, &other));
    for (int i = 0, k; i < WALKS; i++) { /* choices told apart by their log-probability */
        for (k = 0; k < kinds && share[k] != exp(other.of[i].log_prob); k++)
            ;
        if (k == kinds) {
            share[kinds] = exp(other.of[i].log_prob);
            seen[kinds++] = 0;
        }
        seen[k] += 1.0 / WALKS;
    }
    double sum = 0;
    for (int k = 0; k < kinds; k++) {
        print_message("share %.3f, drawn %.3f\n", share[k], seen[k]);
        assert_true(fabs(share[k] - seen[k]) < 4 * sqrt(share[k] * (1 - share[k]) / WALKS));
        sum += share[k];
    }
    assert_true(kinds > 2 && fabs(sum - 1) < 1e-9);
}

/* Kept features belong to weights: when these change, so do results, as with a new w. */
static void new_weights_are_noticed(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(net_clear) net n = {0};
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    lw_walks_options o = lw_walks_defaults();
    net_of(kb, 3, &n);
    ok(cpu_device(2, lw_isa_best(), &dev));
    ok(lw_walks_new(kb, dev, &n.source, &o, &w));
    first = (crowd){.kb = kb, .n = WALKS};
    ok(lw_walks_run(w, next, done, &first));
    int64_t runs = lw_walks_counted(w)->plan_runs;
    other = (crowd){.kb = kb, .n = WALKS};
    ok(lw_walks_run(w, next, done, &other));
    same_results(&first, &other);
    assert_int_equal(lw_walks_counted(w)->plan_runs, runs); /* all kept */
    ok(lw_policy_formula(&n.config, 4, n.store));
    lw_store_touch(n.store, LW_SLAB_PARAM);
    other = (crowd){.kb = kb, .n = WALKS};
    ok(lw_walks_run(w, next, done, &other));
    walk(kb, &n.source, &o, 1, &first);
    same_results(&first, &other);
}

/* ---- the published size ---------------------------------------------------------------------- */

static lw_queries family_queries;

static bool family_query(void *self, lw_walk *out)
{
    crowd *c = self;
    if (c->given == c->n)
        return false;
    int64_t i = c->given++;
    *out = (lw_walk){.id = i, .query = family_queries.atom[i % family_queries.n]};
    if (i >= family_queries.n)
        out->query.arg[i % 2] = 1 + (int32_t)(i * 37 % c->kb->n_constants);
    return true;
}

static void family_walks_depend_on_the_walk_alone(void **state)
{
    (void)state;
    const char *root = getenv("LW_TEST_DATA");
    char dir[600];
    snprintf(dir, sizeof dir, "%s/kg/dprl/family", root ? root : "");
    if (!root || !lw_path_is_dir(dir)) {
        print_message("skipped: family is not there (LW_TEST_DATA names a directory of data)\n");
        skip();
    }
    LW_CLEANUP(lw_problems_clear) lw_problems problems = {0};
    LW_CLEANUP(lw_kb_free) lw_kb *kb = NULL;
    LW_CLEANUP(lw_store_free) lw_store *store = NULL;
    ok(lw_kb_open(&(lw_kb_options){.dir = dir}, &problems, &kb));
    ok(lw_queries_open(kb,
                       &(lw_query_options){.split = "test", .limit = 20, .order = LW_QUERY_FIRST},
                       &problems, &family_queries));
    lw_policy_config config = lw_policy_default(kb->n_constants, lw_kb_endf(kb));
    ok(lw_store_new(true, &store));
    ok(lw_policy_declare(&config, store));
    ok(lw_policy_formula(&config, 0, store));
    const lw_policy_source source = {&config, store};
    for (int i = 0; i < 3; i++) {
        LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
        LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
        lw_walks_options o = lw_walks_defaults();
        o.fixed_batch_size = (int32_t[]){512, 16, 60}[i];
        o.rows = (int32_t[]){1024, 200, 512}[i];
        o.cache_bytes = (size_t[]){32 << 20, 0, 4 << 20}[i];
        crowd *c = i == 0 ? &first : &other;
        *c = (crowd){.kb = kb, .n = 60};
        ok(cpu_device((int[]){2, 1, 3}[i], lw_isa_best(), &dev));
        ok(lw_walks_new(kb, dev, &source, &o, &w));
        ok(lw_walks_run(w, family_query, done, c));
        if (i > 0)
            same_results(&first, &other);
        print_message("%lld choices, %lld states in %lld runs of %d\n",
                      (long long)lw_walks_counted(w)->query_steps,
                      (long long)lw_walks_counted(w)->states_scored,
                      (long long)lw_walks_counted(w)->plan_runs, o.rows);
    }
    lw_queries_clear(&family_queries);
}

static void memory_is_bounded_and_told(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(net_clear) net n = {0};
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    size_t bytes[3];
    net_of(kb, 3, &n);
    ok(cpu_device(1, lw_isa_best(), &dev));
    for (int i = 0; i < 3; i++) {
        LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
        lw_walks_options o = lw_walks_defaults();
        o.fixed_batch_size = 8;
        o.rows = 16;
        o.cache_bytes = (size_t[]){0, 1 << 20, 8 << 20}[i];
        ok(lw_walks_new(kb, dev, &n.source, &o, &w));
        bytes[i] = lw_walks_bytes(w);
    }
    assert_true(bytes[0] < (size_t)1 << 20);
    assert_in_range(bytes[1] - bytes[0], 0, 1 << 20);
    assert_in_range(bytes[2] - bytes[1], (7 << 20) - (192 << 10), (7 << 20) + (256 << 10));
}

/* The same in the middle of network work, and weights that are no numbers. */
static void a_network_run_recovers_from_errors(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(net_clear) net n = {0};
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    lw_walks_options o = lw_walks_defaults();
    net_of(kb, 3, &n);
    o.fixed_batch_size = 30;
    o.rows = 64;
    o.cache_bytes = 0;
    ok(cpu_device(2, lw_isa_best(), &dev));
    ok(lw_walks_new(kb, dev, &n.source, &o, &w));
    for (int i = 0; i < 5; i++) {
        other = (crowd){.kb = kb, .n = WALKS, .stop_after = 20 + i};
        fails(lw_walks_run(w, next, done, &other), LW_ESTOPPED, "enough");
    }
    other = (crowd){.kb = kb, .n = WALKS};
    ok(lw_walks_run(w, next, done, &other));
    walk(kb, &n.source, &o, 1, &first);
    same_results(&first, &other);
    int32_t at = lw_store_find(n.store, "policy_head.out_transform.0.bias");
    lw_store_edit(n.store, at, LW_SLAB_PARAM)[0] = NAN;
    lw_store_touch(n.store, LW_SLAB_PARAM);
    other = (crowd){.kb = kb, .n = WALKS};
    fails(lw_walks_run(w, next, done, &other), LW_ENUMERIC, "not finite");
}

/* State i of two goals: 2j and 2j + 1 are the same goals in another order, and so share a hash. */
static int32_t hold_state(lw_state_rows *r, const lw_kb *kb, int32_t i)
{
    const int32_t parent = atom_of(kb, "parent(p0,p1)").p, j = i / 2, n = 2;
    const lw_atom goal[2] = {{parent, {1 + j, 1 + j % 7}}, {parent, {1 + j % 3, 30}}},
                  a[2] = {goal[i % 2], goal[1 - i % 2]};
    int32_t slot = lw_state_rows_hold(r, a, n, lw_state_hash(a, n), a[0]);
    if (slot < 0) {
        ok(lw_state_rows_grow(r));
        slot = lw_state_rows_hold(r, a, n, lw_state_hash(a, n), a[0]);
    }
    return slot;
}

/* A table that grows while some states are computed and some are queued ends as one that had room. */
static void a_table_grows_with_what_it_holds(void **state)
{
    (void)state;
    enum { STATES = 2 * PEOPLE };
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(net_clear) net n = {0};
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_state_rows_free) lw_state_rows *small = NULL;
    LW_CLEANUP(lw_state_rows_free) lw_state_rows *large = NULL;
    lw_state_rows_options o = {.rows = 16, .in_use = 2, .successors = STATES, .training = true};
    int32_t slot[STATES];
    double p[2];
    net_of(kb, 5, &n);
    ok(cpu_device(2, lw_isa_best(), &dev));
    ok(lw_state_rows_new(dev, &n.config, n.store, &o, &small));
    o.in_use = STATES;
    ok(lw_state_rows_new(dev, &n.config, n.store, &o, &large));
    for (int32_t i = 0; i < STATES; i++) {
        slot[i] = hold_state(small, kb, i);
        assert_int_equal(slot[i], i);
        assert_int_equal(hold_state(large, kb, i), i);
        if (i % 7 == 0)
            lw_state_rows_run(small, NULL);
    }
    lw_state_rows_run(small, NULL);
    lw_state_rows_run(large, NULL);
    assert_int_equal(lw_state_rows_counted(small)->scored, STATES);
    assert_memory_equal(lw_state_rows_values(small), lw_state_rows_values(large),
                        STATES * sizeof(float));
    for (int32_t i = 0; i < STATES; i++) /* found again where they were */
        assert_int_equal(hold_state(small, kb, i), i);
    lw_state_rows_prepare(small);
    lw_state_rows_prepare(large);
    lw_state_rows_query(small, 0, slot, 1);
    lw_state_rows_query(large, 0, slot, 1);
    for (int i = 0; i < 8; i++) {
        int32_t k = lw_state_rows_choose(small, 0, 0, slot, STATES, i / 8.0, &p[0]);
        assert_int_equal(k, lw_state_rows_choose(large, 0, 0, slot, STATES, i / 8.0, &p[1]));
        assert_true(p[0] == p[1] && p[0] < 0.0);
    }
}

static bool greedy = false, sampled = true;

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(network_walks_depend_on_the_walk_alone, &greedy),
        cmocka_unit_test_prestate(network_walks_depend_on_the_walk_alone, &sampled),
        cmocka_unit_test(narrow_products_are_as_pure),
        cmocka_unit_test(every_environment_is_as_pure),
        cmocka_unit_test(equal_logits_take_the_first),
        cmocka_unit_test(draws_follow_the_policy),
        cmocka_unit_test(new_weights_are_noticed),
        cmocka_unit_test(family_walks_depend_on_the_walk_alone),
        cmocka_unit_test(memory_is_bounded_and_told),
        cmocka_unit_test(a_network_run_recovers_from_errors),
        cmocka_unit_test(a_table_grows_with_what_it_holds),
    };
    return cmocka_run_group_tests_name("walks by a network", tests, NULL, NULL);
}
