/* SPDX-License-Identifier: Apache-2.0 */
/* Shortest proofs: limits that are kept and reported, threads, traces, and the published depths
 * (with LW_TEST_DATA). */
#include <unistd.h>

#include "base/base.h"
#include "logic/logic.h"

#include "test_proof_util.h"

static const lw_search_options usual = {
    .max_depth = 20, .max_atoms = 20, .max_states = 1000000, .memory = (size_t)64 << 20};

/* Chains of edges that leave goals behind which nothing proves: states multiply without end. */
static lw_kb *exploding_kb(void)
{
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    for (int i = 0; i < 40; i++)
        for (int j = 1; j <= 5; j++)
            lw_str_addf(&facts, "e(n%d,n%d).\n", i, (i * 7 + j * j) % 40);
    lw_str_add(&facts, "lonely(n0,far).\n");
    return kb_of(lw_str_c(&facts), "p(X,Y) :- e(X,Y).\np(X,Y) :- p(X,Z), p(Z,Y).\n"
                                   "p(X,Y) :- e(X,Z), e(X,W), p(Z,Y), never(W,Y).\n");
}

static lw_search_result search_once(const lw_kb *kb, const lw_search_options *o, const char *query)
{
    LW_CLEANUP(lw_search_free) lw_search *s = NULL;
    lw_search_result r;
    ok(lw_search_new(kb, o, &s));
    ok(lw_search_run(s, atom_of(kb, query), &r));
    assert_true(lw_search_bytes(s) <= o->memory);
    return r;
}

static void limits_are_told_apart(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = exploding_kb();
    lw_search_options o = usual;
    o.max_depth = 3;
    lw_search_result r = search_once(kb, &o, "p(n0,far)");
    assert_true(r.depth == -1 && r.end == LW_SEARCH_DEPTH && r.expanded > 10);
    o = usual;
    o.max_states = 500;
    r = search_once(kb, &o, "p(n0,far)");
    assert_true(r.depth == -1 && r.end == LW_SEARCH_STATES && r.states == 500);
    o = usual;
    o.max_atoms = 2;
    r = search_once(kb, &o, "p(n0,far)"); /* few states, all seen, but longer ones were refused */
    assert_true(r.depth == -1 && r.end == LW_SEARCH_CUT && r.atoms_cut > 0);
    o = usual;
    o.max_fact_pairs = 3;
    o.max_depth = 4;
    r = search_once(kb, &o, "p(n39,far)");
    assert_true(r.depth == -1 && r.facts_cut > 0);
    o.max_depth = 1000;
    o.max_states = 100000;
    r = search_once(kb, &o, "lonely(n0,far)"); /* nothing was left out on its way */
    assert_true(r.end == LW_SEARCH_NONE && r.facts_cut == 0);
    r = search_once(kb, &usual, "lonely(n0,far)"); /* the query itself is no fact */
    assert_true(r.depth == -1 && r.end == LW_SEARCH_NONE && r.states == 1 && r.atoms_cut == 0);
}

static void memory_stays_within_its_bound(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = exploding_kb();
    int64_t before = 0;
    for (size_t kib = 64; kib <= 4096; kib *= 4) {
        lw_search_options o = usual;
        o.memory = kib << 10;
        lw_search_result r = search_once(kb, &o, "p(n0,far)"); /* asserts the bound */
        assert_true(r.end == LW_SEARCH_MEMORY && r.depth == -1);
        assert_true(r.states > before); /* more memory, more states */
        before = r.states;
    }
    lw_search_options o = usual;
    lw_search *s = NULL;
    o.memory = 1000;
    fails(lw_search_new(kb, &o, &s), LW_EUSAGE, "at least 64 KiB");
    o = usual;
    o.max_atoms = 65;
    fails(lw_search_new(kb, &o, &s), LW_EUSAGE, "padding-atoms is 65");
}

/* A proof that is still found when the states beyond it do not fit, and is the shortest. */
static void proofs_at_the_edge_of_a_limit(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = exploding_kb();
    lw_search_options o = usual;
    for (int i = 1; i < 12; i++) {
        char query[32];
        snprintf(query, sizeof query, "p(n0,n%d)", i);
        o.max_states = 100000;
        lw_search_result all = search_once(kb, &o, query);
        assert_true(all.depth > 0);
        for (o.max_states = 1; o.max_states < all.states; o.max_states *= 2) {
            lw_search_result r = search_once(kb, &o, query);
            assert_true(r.depth == -1 ? r.end == LW_SEARCH_STATES : r.depth == all.depth);
        }
    }
}

/* A free goal whose proof is reached through another goal's few facts: at the last level and behind
 * a limit of successors. `at` is the one of them that fits, 3: none. */
static void proofs_through_the_narrowest_goal(void **state)
{
    (void)state;
    static const char *const rules[2] = {"s(Y,Y) :- p(Z,W), q(W,Y).\n",
                                         "s(Y,Y) :- p(W,Z), q(Y,W).\n"};
    lw_search_options o = usual;
    o.max_depth = 2;
    lw_env_options eo = lw_env_defaults();
    eo.padding_states = 2;
    for (int side = 0; side < 2; side++)
        for (int at = 0; at <= 3; at++) {
            LW_CLEANUP(lw_str_clear) lw_str facts = {0};
            LW_CLEANUP(lw_env_free) lw_env *e = NULL;
            LW_CLEANUP(lw_paths_free) lw_path *path = NULL;
            for (int i = 0; i < 3; i++)
                lw_str_addf(&facts, side ? "q(c,m%d).\n" : "q(m%d,c).\n", i);
            for (int i = 0; i < 9; i++)
                lw_str_addf(&facts, side ? "p(b%d,a%d).\n" : "p(a%d,b%d).\n", i, i);
            if (at < 3)
                lw_str_addf(&facts, side ? "p(m%d,z).\n" : "p(z,m%d).\n", at);
            LW_CLEANUP(lw_kb_free) lw_kb *kb = kb_of(lw_str_c(&facts), rules[side]);
            assert_int_equal(search_once(kb, &o, "s(c,c)").depth, at < 3 ? 2 : -1);
            ok(lw_env_new(kb, &eo, &e));
            ok(lw_paths_new(&eo, 1, &path));
            lw_moves m;
            lw_env_begin(e, path, atom_of(kb, "s(c,c)"));
            lw_env_moves(e, path, &m);
            lw_env_take(e, path, &m, 0);
            lw_env_moves(e, path, &m);
            assert_string_equal(move_text(kb, &m, 0), at < 3 ? "True"
                                                      : side ? "q(c,b0)"
                                                             : "q(b0,c)");
        }
}

/* Among 360,000 states some fifteen pairs share their 32-bit hash: all must be kept. */
static void equal_hashes_are_no_equal_states(void **state)
{
    (void)state;
    enum { N = 600 };
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    for (int i = 0; i < N; i++)
        lw_str_addf(&facts, "all(x,n%d).\n", i);
    LW_CLEANUP(lw_kb_free)
    lw_kb *kb = kb_of(lw_str_c(&facts), "s(X,X) :- all(X,A), all(X,B), never(A,B).\n");
    lw_search_result r = search_once(kb, &usual, "s(x,x)");
    assert_true(r.end == LW_SEARCH_NONE && r.depth == -1);
    assert_int_equal(r.states, 1 + 1 + N + N * N);
}

static lw_queries queries_of(const lw_kb *kb, const char *text)
{
    lw_problems p = {0};
    lw_queries q = {0};
    ok(lw_queries_parse(kb, &(lw_query_options){.split = "test"}, lw_span_of(text),
                        (lw_span){NULL, 0}, &p, &q));
    lw_problems_clear(&p);
    return q;
}

static void threads_do_not_matter(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = exploding_kb();
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    for (int i = 0; i < 700; i++)
        if (i % 5 == 0)
            lw_str_addf(&text, "p(n%d,far).\n", i % 40);
        else
            lw_str_addf(&text, "p(n%d,n%d).\n", i % 40, i / 40 * 3 % 40);
    LW_CLEANUP(lw_queries_clear) lw_queries q = queries_of(kb, lw_str_c(&text));
    LW_CLEANUP(lw_depths_clear) lw_depths one = {0};
    lw_depths_options o = {.search = usual, .memory_limit = (size_t)64 << 20, .threads = 1};
    o.search.memory = (size_t)128 << 10;
    ok(lw_depths_run(kb, &q, &o, &one));
    assert_true(one.threads == 1 && one.most_depth >= 3);
    assert_true(one.ends[LW_SEARCH_PROVED] > 0 && one.ends[LW_SEARCH_MEMORY] > 0);
    static const int threads[] = {2, 5, 64};
    for (size_t i = 0; i < LW_COUNT(threads); i++) {
        LW_CLEANUP(lw_depths_clear) lw_depths more = {0};
        o.threads = threads[i];
        o.memory_limit = threads[i] == 64 ? 3 * o.search.memory : (size_t)64 << 20;
        ok(lw_depths_run(kb, &q, &o, &more));
        assert_int_equal(more.threads, threads[i] == 64 ? 3 : threads[i]); /* as fit */
        assert_memory_equal(one.of, more.of, (size_t)q.n * sizeof *one.of);
        assert_memory_equal(one.ends, more.ends, sizeof one.ends);
    }
}

static bool stop_at_once(void *self, int64_t done, int64_t total)
{
    assert_true(done <= total);
    ++*(int *)self;
    return false;
}

static void work_can_be_stopped(void **state)
{
    (void)state;
    int asked = 0;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = exploding_kb();
    LW_CLEANUP(lw_queries_clear) lw_queries q = queries_of(kb, "p(n0,n1).\n");
    lw_depths d = {0};
    const lw_depths_options o = {.search = usual,
                                 .memory_limit = (size_t)64 << 20,
                                 .threads = 2,
                                 .self = &asked,
                                 .tick = stop_at_once};
    fails(lw_depths_run(kb, &q, &o, &d), LW_ESTOPPED, "interrupted after 0 of 1");
    assert_int_equal(asked, 1);
}

static void a_trace_reads_well(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free)
    lw_kb *kb = kb_of("near(Pa,'b c').\nnear('b c',d).\nin(d,'it''s').\n",
                      "r:1:near(x,z), in(z,y) -> in(x,y)\n");
    LW_CLEANUP(lw_search_free) lw_search *s = NULL;
    LW_CLEANUP(lw_str_clear) lw_str text = {0}, prolog = {0};
    lw_search_result r;
    lw_proof_origin origin[20];
    lw_trace t = {0};
    ok(lw_search_new(kb, &usual, &s));
    lw_atom query = {lw_symbols_find(&kb->predicates, lw_span_of("in")),
                     {lw_symbols_find(&kb->constants, lw_span_of("Pa")),
                      lw_symbols_find(&kb->constants, lw_span_of("it''s"))}};
    ok(lw_search_run(s, query, &r));
    assert_int_equal(r.depth, 4);
    lw_search_proof(s, origin);
    ok(lw_trace_build(kb, query, origin, r.depth, &t));
    lw_trace_print(kb, &t, &text);
    assert_string_equal(lw_str_c(&text),
                        "in(Pa,it''s)  rule 1: in(V1, V2) :- near(V1, V3), in(V3, V2)\n"
                        "  near(Pa,b c)  fact\n"
                        "  in(b c,it''s)  rule 1: in(V1, V2) :- near(V1, V3), in(V3, V2)\n"
                        "    near(b c,d)  fact\n"
                        "    in(d,it''s)  fact\n");
    lw_trace_prolog(kb, &t, &prolog);
    assert_non_null(strstr(lw_str_c(&prolog), "% ?- in('Pa', 'it\\'\\'s').\n"));
    assert_non_null(strstr(lw_str_c(&prolog), ":- table in/2.\n"));
    assert_non_null(strstr(lw_str_c(&prolog), "near('Pa', 'b c').\n"));
    assert_non_null(strstr(lw_str_c(&prolog), "proof(in('Pa', 'it\\'\\'s'), rule(1), [\n"
                                              "  proof(near('Pa', 'b c'), fact),\n"
                                              "  proof(in('b c', 'it\\'\\'s'), rule(1), [\n"
                                              "    proof(near('b c', d), fact),\n"
                                              "    proof(in(d, 'it\\'\\'s'), fact)])]).\n"));
    lw_trace_clear(&t);
    origin[1] = origin[2]; /* a derivation that is none */
    fails(lw_trace_build(kb, query, origin, r.depth, &t), LW_EFORMAT, "do not prove");
    fails(lw_trace_build(kb, query, origin, 1, &t), LW_EFORMAT, "do not prove");
}

/* ---- the published depths ------------------------------------------------------------------ */

typedef struct published {
    lw_kb *kb;
    lw_queries q;
    lw_depths d;
} published;

/* Depths of a shipped dataset's test queries; false (and a printed reason): no data. */
static bool published_run(published *p, const char *name, const char *rules, int32_t max_depth)
{
    const char *root = getenv("LW_TEST_DATA");
    char dir[600];
    snprintf(dir, sizeof dir, "%s/kg/dprl/%s", root ? root : "", name);
    if (!root || !lw_path_is_dir(dir)) {
        print_message("skipped: %s is not there (LW_TEST_DATA names a directory of data)\n", name);
        return false;
    }
    lw_problems problems = {0};
    const lw_kb_options k = {.dir = dir, .rules_file = rules};
    lw_depths_options o = {.search = usual, .memory_limit = (size_t)512 << 20, .threads = 2};
    o.search.max_depth = max_depth;
    ok(lw_kb_open(&k, &problems, &p->kb));
    ok(lw_queries_open(p->kb, &(lw_query_options){.split = "test"}, &problems, &p->q));
    ok(lw_depths_run(p->kb, &p->q, &o, &p->d));
    lw_problems_clear(&problems);
    return true;
}

static void published_close(published *p)
{
    lw_depths_clear(&p->d);
    lw_queries_clear(&p->q);
    lw_kb_free(&p->kb);
}

/* Queries filed with depth `filed` and found with `found`. */
static int count_of(const published *p, int32_t filed, int32_t found)
{
    int n = 0;
    for (int32_t i = 0; i < p->q.n; i++)
        n += p->q.published[i] == filed && p->d.of[i].depth == found;
    return n;
}

static void countries_are_as_published(void **state)
{
    (void)state;
    published p = {0};
    if (!published_run(&p, "countries_s3", NULL, 20))
        skip();
    assert_int_equal(p.d.compared, 24);
    assert_int_equal(p.d.equal, 24);
    static const int histogram[10] = {0, 0, 1, 18, 0, 3, 1, 0, 0, 1};
    assert_int_equal(p.d.most_depth, 9);
    for (int k = 0; k < 10; k++)
        assert_int_equal(p.d.histogram[k], histogram[k]);
    published_close(&p);
}

static void wn18rr_is_as_published_to_depth_3(void **state)
{
    (void)state;
    published p = {0};
    if (!published_run(&p, "wn18rr", NULL, 3))
        skip();
    assert_int_equal(p.d.compared, 2852);
    assert_int_equal(p.d.equal, 2852);
    assert_int_equal(p.d.deeper, 72);
    assert_true(p.d.histogram[1] == 1088 && p.d.histogram[2] == 111 && p.d.histogram[3] == 5);
    for (int32_t i = 0; i < p.q.n; i++) {
        int32_t filed = p.q.published[i];
        assert_int_equal(p.d.of[i].depth, filed <= 3 ? filed : -1);
    }
    published_close(&p);
}

static void family_is_as_published_with_48_rules(void **state)
{
    (void)state;
    const char *root = getenv("LW_TEST_DATA");
    char path[600], first[] = "/tmp/lw_rules_XXXXXX";
    char *text = NULL;
    size_t n = 0, end = 0;
    snprintf(path, sizeof path, "%s/kg/dprl/family/rules.txt", root ? root : "");
    if (!root || lw_file_read(path, 0, &text, &n) < 0) {
        print_message("skipped: family is not there (LW_TEST_DATA names a directory of data)\n");
        skip();
    }
    for (int line = 0; line < 48; end++)
        line += text[end] == '\n';
    int fd = mkstemp(first);
    assert_true(fd >= 0);
    ok(lw_file_write(first, text, end));
    lw_free(&text);
    published p = {0};
    assert_true(published_run(&p, "family", first, 3));
    unlink(first);
    close(fd);
    assert_int_equal(p.kb->n_rules, 48);
    assert_true(count_of(&p, 1, 1) == 318 && p.d.histogram[1] == 318);
    assert_true(count_of(&p, 2, 2) == 3979 && p.d.histogram[2] == 3979);
    assert_int_equal(count_of(&p, 4, 3), 21); /* shorter ones than those filed */
    assert_int_equal(count_of(&p, -1, 3), 9);
    published_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(limits_are_told_apart),
                                       cmocka_unit_test(memory_stays_within_its_bound),
                                       cmocka_unit_test(proofs_at_the_edge_of_a_limit),
                                       cmocka_unit_test(proofs_through_the_narrowest_goal),
                                       cmocka_unit_test(equal_hashes_are_no_equal_states),
                                       cmocka_unit_test(threads_do_not_matter),
                                       cmocka_unit_test(work_can_be_stopped),
                                       cmocka_unit_test(a_trace_reads_well),
                                       cmocka_unit_test(countries_are_as_published),
                                       cmocka_unit_test(wn18rr_is_as_published_to_depth_3),
                                       cmocka_unit_test(family_is_as_published_with_48_rules)};
    return cmocka_run_group_tests_name("proof search", tests, NULL, NULL);
}
