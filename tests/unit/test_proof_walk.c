/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proofs of family walked by uniform choice: the measure of the published workload (the first 100
 * test queries with 100 corruptions each and 48 rules: 41,112 steps, 4.07 a candidate, 17.1
 * successors a step, none active after 18 steps). Corruptions and choices are drawn anew here, so
 * numbers are near, not equal. Prints the time a step takes. Also: who walks a path does not
 * matter.
 */
#include <time.h>

#include "base/base.h"
#include "logic/logic.h"

#include "test_proof_util.h"

enum { QUERIES = 100, CORRUPTIONS = 100, PATHS = QUERIES * (1 + CORRUPTIONS) };

typedef struct walkers {
    const lw_kb *kb;
    lw_env *env[4];
    lw_path *path;
    lw_rng_key key;
    int32_t step;
} walkers;

/* One step of path i by env `worker`; choices depend on path and step alone. */
static void step(void *arg, int64_t i, int worker)
{
    walkers *w = arg;
    lw_moves m;
    lw_env_moves(w->env[worker], &w->path[i], &m);
    if (m.n > 0)
        lw_env_take(
            w->env[worker], &w->path[i], &m,
            (int32_t)lw_rng_below(w->key, (uint32_t)w->step, (uint64_t)i, 0, (uint32_t)m.n));
}

static lw_atom candidate(const walkers *w, const lw_queries *q, int64_t i)
{
    lw_atom a = q->atom[i / (1 + CORRUPTIONS)];
    int c = (int)(i % (1 + CORRUPTIONS));
    if (c > 0) /* half of them heads, half tails */
        a.arg[c % 2] = 1 + (int32_t)lw_rng_below(w->key, 1000, (uint64_t)i, 0,
                                                 (uint32_t)w->kb->n_constants);
    return a;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Walks all candidates with this many threads and adds up what was counted. Returns
 * seconds of CPU. */
static double walk(const lw_kb *kb, const lw_queries *q, int threads, lw_path **path,
                   lw_env_counts *sum)
{
    const lw_env_options o = lw_env_defaults();
    walkers w = {.kb = kb, .key = lw_rng_key_of(1, lw_hash_name("walk"))};
    LW_CLEANUP(lw_pool_free) lw_pool *pool = NULL;
    ok(lw_pool_new(threads, &pool));
    ok(lw_paths_new(&o, PATHS, path));
    w.path = *path;
    for (int t = 0; t < threads; t++)
        ok(lw_env_new(kb, &o, &w.env[t]));
    for (int64_t i = 0; i < PATHS; i++)
        lw_env_begin(w.env[0], &w.path[i], candidate(&w, q, i));
    uint64_t allocations = lw_alloc_count();
    double began = cpu_seconds();
    for (w.step = 0; w.step < o.max_depth; w.step++)
        lw_pool_run(pool, PATHS, step, &w);
    double seconds = cpu_seconds() - began;
    assert_true(lw_alloc_count() == allocations);
    for (int t = 0; t < threads; t++) {
        lw_env_counts_add(sum, lw_env_counted(w.env[t]));
        lw_env_free(&w.env[t]);
    }
    return seconds;
}

static bool open_family(lw_kb **kb, lw_queries *q)
{
    const char *root = getenv("LW_TEST_DATA");
    char dir[600];
    lw_problems problems = {0};
    snprintf(dir, sizeof dir, "%s/kg/dprl/family", root ? root : "");
    if (!root || !lw_path_is_dir(dir)) {
        print_message("skipped: family is not there (LW_TEST_DATA names a directory of data)\n");
        return false;
    }
    const lw_kb_options k = {.dir = dir};
    ok(lw_kb_open(&k, &problems, kb));
    (*kb)->n_rules = 48; /* the file of the published run: its other 39 rules came later */
    for (int32_t p = 1, to = 0; p <= (*kb)->n_predicates; p++) {
        int32_t from = (*kb)->rule_first[p], end = (*kb)->rule_first[p + 1];
        (*kb)->rule_first[p] = to;
        for (; from < end; from++)
            if ((*kb)->rule_order[from] < 48)
                (*kb)->rule_order[to++] = (*kb)->rule_order[from];
        if (p == (*kb)->n_predicates)
            (*kb)->rule_first[p + 1] = to;
    }
    ok(lw_queries_open(
        *kb, &(lw_query_options){.split = "test", .limit = QUERIES, .order = LW_QUERY_FIRST},
        &problems, q));
    lw_problems_clear(&problems);
    return true;
}

static void uniform_walks_go_as_far_as_published(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = NULL;
    LW_CLEANUP(lw_queries_clear) lw_queries q = {0};
    LW_CLEANUP(lw_paths_free) lw_path *one = NULL, *three = NULL;
    lw_env_counts a = {0}, b = {0};
    if (!open_family(&kb, &q))
        skip();
    double seconds = walk(kb, &q, 1, &one, &a);
    double steps = (double)a.steps, each = steps / PATHS, width = (double)a.successors / steps;
    print_message("%d candidates, %.0f steps, %.2f a candidate, %.1f successors a step, "
                  "%.2f us of CPU a step\n",
                  PATHS, steps, each, width, 1e6 * seconds / steps);
    assert_true(each > 3.8 && each < 4.35);
    assert_true(width > 16 && width < 18.3);
    walk(kb, &q, 3, &three, &b);
    assert_memory_equal(&a, &b, sizeof a);
    for (int64_t i = 0; i < PATHS; i++)
        assert_true(one[i].end == three[i].end && one[i].depth == three[i].depth &&
                    one[i].hash[one[i].n_states - 1] == three[i].hash[three[i].n_states - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(uniform_walks_go_as_far_as_published)};
    return cmocka_run_group_tests_name("proof walk", tests, NULL, NULL);
}
