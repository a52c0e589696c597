/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bf16 first, f32 where it decides: the ways and the ranks of f32, for any batch, rows and threads, greedy and
 * drawn, on made-up relatives and on every base of the test data; and that without a margin it is not so.
 */
#include <unistd.h>

#include "prove/test_walks_util.h"

#include "base/base.h"
#include "jobs/prove/rank/rank_job.h"
#include "session/session_device.h"

static lw_walk_how how;

static bool next_how(void *self, lw_walk *out)
{
    bool more = next(self, out);
    out->how = how;
    return more;
}

static void walk_as(lw_walks *w, const lw_kb *kb, lw_walk_how as, crowd *c)
{
    how = as;
    *c = (crowd){.kb = kb, .n = WALKS};
    ok(lw_walks_run(w, next_how, done, c));
}

/* The ways of `first`; log-probabilities within what is said. Returns the walks that went another way. */
static int compare_ways(const crowd *c)
{
    int others = 0, inexact = 0;
    for (int i = 0; i < WALKS; i++) {
        const lw_walk_result *a = &first.of[i], *b = &c->of[i];
        const double off = fabs(a->log_prob - b->log_prob);
        others += a->end != b->end || a->depth != b->depth || off > b->slack;
        inexact += b->slack > 0;
    }
    assert_true(inexact > 0);
    return others;
}

static void ways_are_those_of_f32(void **state)
{
    const bool sample = *(const bool *)*state;
    int64_t contested = 0, steps = 0, without = 0;
    for (uint64_t seed = 0; seed < 6; seed++) {
        LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
        LW_CLEANUP(net_clear) net n = {0};
        LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
        LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
        lw_walks_options o = lw_walks_defaults();
        net_of(kb, seed, &n);
        o.sample = sample;
        walk(kb, &n.source, &o, 1, &first);
        o.two_stage = true;
        o.fixed_batch_size = (int32_t[]){512, 7, 1}[seed % 3];
        o.rows = (int32_t[]){16, 1024, 1, 200}[seed % 4];
        o.cache_bytes = seed % 2 ? 0 : 64 << 20;
        ok(cpu_device(1 + (int)seed % 3, lw_isa_best(), &dev));
        ok(lw_walks_new(kb, dev, &n.source, &o, &w));
        walk_as(w, kb, LW_WALK_EXACT, &other);
        same_results(&first, &other);
        walk_as(w, kb, LW_WALK_FIRST, &other); /* no trust yet */
        same_results(&first, &other);
        assert_int_equal(lw_walks_see(w).choices, 0);
        walk_as(w, kb, LW_WALK_BOTH, &other);
        same_results(&first, &other);
        const lw_walks_seen seen = lw_walks_see(w);
        assert_true(seen.choices > WALKS && seen.logits > 2 * seen.choices);
        assert_true(seen.most.logit > 0 && seen.most.score > 0);
        /* what was seen is enough for the same walks again, nothing is not */
        lw_walks_trust(w, (lw_walks_margin){seen.most.logit, 2 * seen.most.score});
        const lw_walks_counts before = *lw_walks_counted(w);
        walk_as(w, kb, LW_WALK_FIRST, &other);
        assert_int_equal(compare_ways(&other), 0);
        contested += lw_walks_counted(w)->contested - before.contested;
        steps += lw_walks_counted(w)->query_steps - before.query_steps;
        lw_walks_trust(w, (lw_walks_margin){0, 2 * seen.most.score});
        walk_as(w, kb, LW_WALK_FIRST, &other);
        without += compare_ways(&other);
    }
    print_message("%lld of %lld choices in f32; without a margin %lld of %d walks go another way\n",
                  (long long)contested, (long long)steps, (long long)without, 6 * WALKS);
    assert_true(contested > 0 && contested < steps / 2);
    assert_true(without > 0);
}

static void two_stages_depend_on_the_walk_alone(void **state)
{
    const bool sample = *(const bool *)*state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(net_clear) net n = {0};
    lw_walks_options o = lw_walks_defaults();
    net_of(kb, 5, &n);
    o.two_stage = true;
    o.sample = sample;
    for (int i = 0; i < 12; i++) {
        LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
        LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
        o.fixed_batch_size = (int32_t[]){512, 1, 7}[i % 3];
        o.rows = (int32_t[]){1024, 16, 5, 1}[i % 4];
        o.cache_bytes = (size_t[]){64 << 20, 0, 1 << 16}[i / 4];
        ok(cpu_device((int[]){1, 2, 5}[(i + i / 3) % 3], lw_isa_best(), &dev));
        ok(lw_walks_new(kb, dev, &n.source, &o, &w));
        lw_walks_trust(w, (lw_walks_margin){0.02, 0.02});
        walk_as(w, kb, LW_WALK_FIRST, i == 0 ? &first : &other);
        if (i > 0)
            same_results(&first, &other);
        assert_true(lw_walks_counted(w)->contested > 0);
    }
}

static void two_stages_recover_from_errors(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = relatives();
    LW_CLEANUP(net_clear) net n = {0};
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    lw_walks_options o = lw_walks_defaults();
    net_of(kb, 3, &n);
    walk(kb, &n.source, &o, 1, &first);
    o.precision = LW_NUM_BF16;
    o.two_stage = true;
    ok(cpu_device(2, lw_isa_best(), &dev));
    fails(lw_walks_new(kb, dev, &n.source, &o, &w), LW_EUSAGE, "two-stage");
    o.precision = LW_NUM_F32;
    o.fixed_batch_size = 30;
    o.rows = 64;
    ok(lw_walks_new(kb, dev, &n.source, &o, &w));
    for (int i = 0; i < 5; i++) {
        how = LW_WALK_BOTH;
        other = (crowd){.kb = kb, .n = WALKS, .stop_after = 20 + i};
        fails(lw_walks_run(w, next_how, done, &other), LW_ESTOPPED, "enough");
    }
    walk_as(w, kb, LW_WALK_BOTH, &other);
    same_results(&first, &other);
    int32_t at = lw_store_find(n.store, "policy_head.out_transform.0.bias");
    lw_store_edit(n.store, at, LW_SLAB_PARAM)[0] = NAN;
    lw_store_touch(n.store, LW_SLAB_PARAM);
    how = LW_WALK_FIRST;
    other = (crowd){.kb = kb, .n = WALKS};
    fails(lw_walks_run(w, next_how, done, &other), LW_ENUMERIC, "not finite");
}

/* ---- ranks on every base ----------------------------------------------------------------------- */

typedef struct base {
    const char *name;
    int32_t rules; /* the first so many, 0: all */
    int64_t queries, corruptions;
} base;

static lw_kb *open_base(const base *b, const char *dir, lw_problems *problems)
{
    LW_CLEANUP(lw_free) char *text = NULL;
    char rules[] = "/tmp/leeway-rules-XXXXXX";
    lw_kb *kb = NULL;
    lw_kb_options o = {.dir = dir};
    if (b->rules > 0) {
        char path[700];
        size_t n, end = 0;
        snprintf(path, sizeof path, "%s/rules.txt", dir);
        ok(lw_file_read(path, 0, &text, &n));
        for (int32_t i = 0; i < b->rules && end < n; end++)
            i += text[end] == '\n';
        close(mkstemp(rules));
        ok(lw_file_write(rules, text, end));
        o.rules_file = rules;
    }
    ok(lw_kb_open(&o, problems, &kb));
    if (b->rules > 0)
        unlink(rules);
    return kb;
}

static void same_ranks(const lw_prove_eval *a, const lw_prove_eval *b)
{
    assert_int_equal(a->candidates, b->candidates);
    assert_int_equal(a->n_lists, b->n_lists);
    for (int32_t i = 0; i < a->n_lists; i++) {
        assert_true(a->list[i].score == b->list[i].score);
        assert_memory_equal(&a->list[i].rank, &b->list[i].rank, sizeof(lw_rank));
    }
}

static void ranks_of(const base *b, const lw_kb *kb, const lw_queries *q, bool sample,
                     uint64_t seed, int32_t constants_as)
{
    LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval plain = {0};
    LW_CLEANUP(lw_store_free) lw_store *store = NULL;
    lw_policy_config config = lw_policy_default(kb->n_constants, lw_kb_endf(kb));
    config.hidden = config.embed = 64; /* seconds, and bf16 is off as far */
    config.constants_as = constants_as;
    ok(lw_store_new(true, &store));
    ok(lw_policy_declare(&config, store));
    ok(lw_policy_formula(&config, seed, store));
    const lw_policy_source source = {&config, store};
    lw_prove_eval_options o = lw_prove_eval_defaults();
    o.corrupt = (lw_corrupt_options){.n = b->corruptions, .seed = seed};
    o.walks.sample = sample;
    o.walks.cache_bytes = 4 << 20;
    o.ranks_only = true;
    for (int i = 0; i < 3; i++) {
        LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
        LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval e = {0};
        o.two_stage = i > 0;
        o.walks.fixed_batch_size = (int32_t[]){512, 100, 512}[i];
        o.walks.rows = (int32_t[]){1024, 64, 1024}[i];
        ok(lw_session_device((int[]){2, 1, 3}[i], &dev));
        ok(lw_prove_eval_run(kb, q, NULL, 0, dev, &source, &o, NULL, i == 0 ? &plain : &e));
        if (i == 0)
            continue;
        same_ranks(&plain, &e);
        assert_true(e.two_stage.on);
        if (constants_as ==
            LW_POLICY_CONSTANTS_SHARED) /* equal rows tie: f32 is not asked about them */
            assert_true(2 * (e.walks.states_scored - e.walks.first_scored) <=
                        plain.walks.states_scored);
        print_message("%s%s, %s, constants %d: %lld rows of f32 alone; %lld in bf16 and %lld in "
                      "f32, %lld walked "
                      "again%s\n",
                      b->name, b->rules ? " (first rules)" : "", sample ? "drawn" : "greedy",
                      (int)constants_as, (long long)plain.walks.states_scored,
                      (long long)e.walks.first_scored,
                      (long long)(e.walks.states_scored - e.walks.first_scored),
                      (long long)e.two_stage.again, e.two_stage.fell_back ? ", fell back" : "");
    }
}

static void ranks_are_those_of_f32(void **state)
{
    (void)state;
    static const base bases[] = {{"family", 48, 12, 10},     {"family", 0, 12, 10},
                                 {"countries_s3", 0, 12, 4}, {"nations", 0, 3, 5},
                                 {"umls", 0, 8, 8},          {"wn18rr", 0, 8, 8}};
    const char *root = getenv("LW_TEST_DATA");
    if (!root) {
        print_message("skipped: LW_TEST_DATA names no directory of data\n");
        skip();
    }
    for (size_t i = 0; i < LW_COUNT(bases); i++) {
        LW_CLEANUP(lw_problems_clear) lw_problems problems = {0};
        LW_CLEANUP(lw_kb_free) lw_kb *kb = NULL;
        lw_queries q = {0};
        char dir[600];
        snprintf(dir, sizeof dir, "%s/kg/dprl/%s", root, bases[i].name);
        if (!lw_path_is_dir(dir)) {
            print_message("%s is not there\n", dir);
            continue;
        }
        kb = open_base(&bases[i], dir, &problems);
        ok(lw_queries_open(
            kb,
            &(lw_query_options){.split = "test", .limit = bases[i].queries, .skip_unknown = true},
            &problems, &q));
        for (int32_t as = 0; as < LW_POLICY_CONSTANTS; as++)
            if (as == LW_POLICY_CONSTANTS_OWN || as >= LW_POLICY_CONSTANTS_SHARED)
                ranks_of(&bases[i], kb, &q, false, i, as);
        ranks_of(&bases[i], kb, &q, true, i, LW_POLICY_CONSTANTS_OWN);
        lw_queries_clear(&q);
    }
}

static bool greedy = false, sampled = true;

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(ways_are_those_of_f32, &greedy),
        cmocka_unit_test_prestate(ways_are_those_of_f32, &sampled),
        cmocka_unit_test_prestate(two_stages_depend_on_the_walk_alone, &greedy),
        cmocka_unit_test_prestate(two_stages_depend_on_the_walk_alone, &sampled),
        cmocka_unit_test(two_stages_recover_from_errors),
        cmocka_unit_test(ranks_are_those_of_f32),
    };
    return cmocka_run_group_tests_name("proofs in two stages", tests, NULL, NULL);
}
