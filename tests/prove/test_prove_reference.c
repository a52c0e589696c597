/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks by a network against the slow, padded evaluation of prove_reference.h: the same ends, the
 * same ranks, scores within rounding, for any batch, number of rows, cache and number of threads,
 * and the same bits among these; the same ranks on the reference kernels.
 */
#include <math.h>

#include "cpu_device.h"
#include "eval/eval.h"
#include "prove/prove_reference_naive.h"
#include "session/session_device.h"
#include "kernels/kernels.h"
#include "store/store.h"
#include "models/models.h"
#include "logic/logic.h"
#include "jobs/prove/walk/prove_walks.h"

enum { MOST_QUERIES = 4000, PROGRAMS = 12, LIST = 1 + 2 * (NC - 1) };

/* Lists of candidates one behind the other; the first of each is the true one. */
typedef struct task {
    lw_atom query[MOST_QUERIES];
    int32_t first[MOST_QUERIES + 1];
    int32_t n, n_lists;
    double score[MOST_QUERIES]; /* of the run being made */
    double wanted[MOST_QUERIES];
    int32_t at, left;
    bool proved[MOST_QUERIES];
} task;
static task work; /* large */
static nprogram program;

/* ---- walks ----------------------------------------------------------------------------------- */

static double score_of(double log_prob, bool proved)
{
    return proved ? log_prob : log_prob - 100;
}

static bool next_query(void *self, lw_walk *out)
{
    task *t = self;
    if (t->at == t->n)
        return false;
    *out = (lw_walk){.id = t->at, .query = t->query[t->at]};
    t->at++;
    return true;
}

static int take_result(void *self, const lw_walk_result *r)
{
    task *t = self;
    bool proved = r->end == LW_PROOF_PROVED;
    assert_int_equal(proved, t->proved[r->walk.id]);
    t->score[r->walk.id] = score_of(r->log_prob, proved);
    t->left--;
    return 0;
}

/* What must not matter. */
typedef struct way {
    int threads;
    int32_t batch, rows;
    size_t cache;
    bool plain; /* reference kernels, which round otherwise */
} way;
static const way ways[] = {{1, 512, 1024, (size_t)64 << 20, false},
                           {2, 64, 32, (size_t)1 << 20, false},
                           {1, 1, 16, 0, false},
                           {3, 7, 64, 0, false},
                           {2, 30, 128, (size_t)64 << 20, true}};

static void run_walks(const lw_kb *kb, const lw_env_options *env, const lw_policy_source *policy,
                      const way *by, task *t)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    lw_walks_options o = lw_walks_defaults();
    o.env = *env;
    o.fixed_batch_size = by->batch;
    o.rows = by->rows;
    o.cache_bytes = by->cache;
    ok(cpu_device(by->threads, by->plain ? LW_ISA_REF : lw_isa_best(), &dev));
    ok(lw_walks_new(kb, dev, policy, &o, &w));
    t->at = 0;
    t->left = t->n;
    ok(lw_walks_run(w, next_query, take_result, t));
    assert_int_equal(t->left, 0);
}

/* ---- comparison ------------------------------------------------------------------------------ */

static void expect_ranks(const task *t)
{
    for (int32_t i = 0; i < t->n_lists; i++) {
        int32_t from = t->first[i], n = t->first[i + 1] - from;
        lw_rank r = {0};
        for (int32_t k = 1; k < n; k++)
            ok(lw_rank_add(&r, t->score[from], t->score[from + k]));
        double rank = lw_rank_value(&r, LW_RANK_REALISTIC), want = ref_rank(t->wanted + from, n);
        if (rank != want)
            print_error("list %d: rank %g, the reference's is %g\n", i, rank, want);
        assert_true(rank == want);
    }
}

static void expect_scores(const task *t)
{
    double worst = 0;
    for (int32_t i = 0; i < t->n; i++)
        worst = fmax(worst, fabs(t->score[i] - t->wanted[i]));
    if (worst >= 1e-4)
        print_error("a score is %g from the reference's\n", worst);
    assert_true(worst < 1e-4);
}

static void run_all(const lw_kb *kb, const lw_env_options *env, const lw_policy_source *policy,
                    task *t)
{
    static double first[MOST_QUERIES];
    for (size_t i = 0; i < LW_COUNT(ways); i++) {
        run_walks(kb, env, policy, &ways[i], t);
        expect_ranks(t);
        expect_scores(t);
        if (i == 0)
            memcpy(first, t->score, sizeof first);
        if (!ways[i].plain)
            assert_memory_equal(first, t->score, (size_t)t->n * sizeof *first);
    }
}

static void add_query(task *t, lw_atom a)
{
    assert_true(t->n < MOST_QUERIES);
    t->query[t->n++] = a;
    t->first[t->n_lists] = t->n;
}

static void begin_list(task *t)
{
    t->first[t->n_lists++] = t->n;
}

static void make_policy(const lw_kb *kb, const lw_env_options *env, lw_policy_config *c,
                        lw_store **s)
{
    *c = lw_policy_default(kb->n_constants, kb->n_predicates + 3);
    c->embed = 20;
    c->hidden = 24;
    c->blocks = 2;
    c->variables = env->max_total_vars;
    c->max_atoms = env->padding_atoms;
    ok(lw_store_new(true, s));
    ok(lw_policy_declare(c, *s));
    ok(lw_policy_formula(c, 7, *s));
}

/* ---- random programs ------------------------------------------------------------------------- */

static int ends[2]; /* not proved, proved */

/* The reference's scores of one query and its corruptions. */
static void reference_list(const ref_world *w, const lw_policy_config *c, const lw_store *s,
                           natom query, task *t)
{
    begin_list(t);
    for (int k = 0; k < LIST; k++) {
        natom a = query;
        int side = k < NC ? 0 : 1, other = side ? k - NC : k - 1;
        if (k > 0) /* every other constant in order */
            a.a[side] = other + (other >= query.a[side]);
        ref_result r;
        program.query = a;
        lw_atom atom = naive_numbers(w->kb, a);
        ok(ref_prove(w, c, s, atom, &r));
        t->proved[t->n] = r.proved;
        t->wanted[t->n] = score_of(r.log_prob, r.proved);
        ends[r.proved]++;
        add_query(t, atom);
    }
}

static void compare_program(uint64_t seed)
{
    static naive_world naive;
    ref_world w;
    lw_policy_config c;
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    lw_env_options env = lw_env_defaults();
    env.padding_atoms = NAIVE_ATOMS;
    env.padding_states = NAIVE_STATES;
    env.max_depth = NAIVE_DEPTH;
    random_program(&program, seed);
    LW_CLEANUP(lw_kb_free) lw_kb *kb = program_kb(&program);
    make_policy(kb, &env, &c, &s);
    w = naive_open(&program, kb, &naive);
    work.n = work.n_lists = 0;
    for (int p = 0; p < NP; p++) {
        natom query = {p, {p, (p + 1 + (int)seed) % NC}};
        if (naive_numbers(kb, query).p > 0) /* a predicate may be in no clause */
            reference_list(&w, &c, s, query, &work);
    }
    run_all(kb, &env, &(lw_policy_source){&c, s}, &work);
}

static void ranks_are_those_of_a_tiny_prolog(void **state)
{
    (void)state;
    ends[0] = ends[1] = 0;
    for (uint64_t seed = 0; seed < PROGRAMS; seed++)
        compare_program(seed + 900);
    assert_true(ends[0] > 20 && ends[1] > 20);
}

/* ---- datasets -------------------------------------------------------------------------------- */

static void reference_scores(const ref_world *w, const lw_policy_config *c, const lw_store *s,
                             task *t)
{
    for (int32_t i = 0; i < t->n; i++) {
        ref_result r;
        ok(ref_prove(w, c, s, t->query[i], &r));
        t->proved[i] = r.proved;
        t->wanted[i] = score_of(r.log_prob, r.proved);
    }
}

/* The first queries of a dataset, each with some corruptions of both sides. */
static void compare_dataset(const char *name, int32_t n_queries, int64_t corruptions)
{
    const char *data = getenv("LW_TEST_DATA");
    if (!data) {
        print_message("LW_TEST_DATA is not set\n");
        skip();
    }
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    LW_CLEANUP(lw_kb_free) lw_kb *kb = NULL;
    LW_CLEANUP(lw_queries_clear) lw_queries q = {0};
    LW_CLEANUP(lw_store_free) lw_store *s = NULL;
    LW_CLEANUP(lw_corruptor_free) lw_corruptor *corruptor = NULL;
    LW_CLEANUP(ref_engine_close) ref_engine engine = {.env = NULL};
    ref_world w;
    lw_policy_config c;
    lw_problems problems = {0};
    const lw_env_options env = lw_env_defaults();
    lw_str_addf(&dir, "%s/kg/dprl/%s", data, name);
    ok(lw_kb_open(&(lw_kb_options){.dir = lw_str_c(&dir)}, &problems, &kb));
    ok(lw_queries_open(
        kb, &(lw_query_options){.split = "test", .limit = n_queries, .order = LW_QUERY_FIRST},
        &problems, &q));
    ok(lw_corruptor_new(kb, &(lw_corrupt_options){.n = corruptions, .seed = 5}, NULL, 0,
                        &corruptor));
    make_policy(kb, &env, &c, &s);
    ok(ref_engine_open(kb, &env, &engine, &w));
    work.n = work.n_lists = 0;
    for (int32_t i = 0; i < q.n; i++) {
        lw_corruptions stream;
        lw_atom a;
        begin_list(&work);
        add_query(&work, q.atom[i]);
        lw_corruptions_begin(corruptor, q.atom[i], LW_CORRUPT_BOTH, &stream);
        while (lw_corruptions_next(corruptor, &stream, &a))
            add_query(&work, a);
    }
    reference_scores(&w, &c, s, &work);
    run_all(kb, &env, &(lw_policy_source){&c, s}, &work);
    lw_problems_clear(&problems);
}

static void ranks_of_countries_are_those_of_the_reference(void **state)
{
    (void)state;
    compare_dataset("countries_s3", 24, 20);
}

static void ranks_of_family_are_those_of_the_reference(void **state)
{
    (void)state;
    compare_dataset("family", 6, 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_those_of_a_tiny_prolog),
        cmocka_unit_test(ranks_of_countries_are_those_of_the_reference),
        cmocka_unit_test(ranks_of_family_are_those_of_the_reference)};
    return cmocka_run_group_tests_name("prove reference", tests, NULL, NULL);
}
