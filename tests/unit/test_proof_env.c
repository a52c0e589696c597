/* SPDX-License-Identifier: Apache-2.0 */
/* Unification, numbering of variables, and each limit of the environment with its counter. */
#include "test_proof_util.h"

#include "base/base.h"
#include "logic/logic.h"

/* One env and one path on a small knowledge base. */
typedef struct rig {
    lw_kb *kb;
    lw_env *e;
    lw_path *path;
    lw_moves m;
} rig;

static void rig_open(rig *r, const char *facts, const char *rules, const lw_env_options *o)
{
    r->kb = kb_of(facts, rules);
    ok(lw_env_new(r->kb, o, &r->e));
    ok(lw_paths_new(o, 1, &r->path));
}

static void rig_ask(rig *r, const char *query)
{
    lw_env_begin(r->e, r->path, atom_of(r->kb, query));
    lw_env_moves(r->e, r->path, &r->m);
}

static void rig_take(rig *r, int32_t k)
{
    lw_env_take(r->e, r->path, &r->m, k);
    lw_env_moves(r->e, r->path, &r->m);
}

static void rig_close(rig *r)
{
    lw_paths_free(&r->path);
    lw_env_free(&r->e);
    lw_kb_free(&r->kb);
}

/* Moves as "a | b | c". */
static const char *moves(const rig *r)
{
    static char text[2048];
    text[0] = '\0';
    for (int32_t k = 0; k < r->m.n; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", k ? " | " : "",
                 move_text(r->kb, &r->m, k));
    return text;
}

static const char *const family = "parent(ann,bob).\nparent(bob,cid).\nparent(bob,dan).\n"
                                  "grand(ann,cid).\n";
static const char *const family_rules = "grand(X,Y) :- parent(X,Z), parent(Z,Y).\n";

static void a_proof_step_by_step(void **state)
{
    (void)state;
    rig r;
    const lw_env_options o = lw_env_defaults();
    rig_open(&r, family, family_rules, &o);
    rig_ask(&r, "grand(ann,dan)");
    assert_string_equal(moves(&r), "parent(ann,V1), parent(V1,dan) | Endf");
    assert_true(r.m.origin[0] == ~0); /* rule 0 */
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "True"); /* parent(bob,dan) is known and falls away */
    assert_true(lw_atom_eq(r.kb->facts.atom[r.m.origin[0]], atom_of(r.kb, "parent(ann,bob)")));
    lw_env_take(r.e, r.path, &r.m, 0);
    assert_true(r.path->end == LW_PROOF_PROVED && r.path->depth == 2);
    lw_env_moves(r.e, r.path, &r.m);
    assert_int_equal(r.m.n, 0);
    rig_ask(&r, "grand(dan,ann)"); /* nothing begins at dan */
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "False");
    lw_env_take(r.e, r.path, &r.m, 0);
    assert_true(r.path->end == LW_PROOF_FAILED);
    rig_ask(&r, "grand(ann,dan)");
    lw_env_take(r.e, r.path, &r.m, 1);
    assert_true(r.path->end == LW_PROOF_STOPPED);
    assert_int_equal(lw_env_counted(r.e)->proofs, 1);
    assert_int_equal(lw_env_counted(r.e)->dead_ends, 1);
    rig_close(&r);
}

static void the_query_is_no_fact_of_its_proof(void **state)
{
    (void)state;
    rig r;
    const lw_env_options o = lw_env_defaults();
    rig_open(&r, family, "grand(X,Y) :- grand(X,Y), parent(X,Z).\n", &o);
    rig_ask(&r, "grand(ann,cid)");
    assert_string_equal(moves(&r), "grand(ann,cid), parent(ann,V1) | Endf");
    rig_close(&r);
    rig_open(&r, family, family_rules, &o);
    rig_ask(&r, "parent(ann,bob)");
    assert_string_equal(moves(&r), "False"); /* a known fact, but nothing else says so */
    rig_close(&r);
}

static void unification_cases(void **state)
{
    (void)state;
    rig r;
    lw_env_options o = lw_env_defaults();
    o.end_proof_action = o.memory_pruning = false;
    const char *facts = "t(a,a).\nt(a,b).\nt(b,b).\nu(a,b).\nv(a,a).\n";
    const char *rules =
        "q(X,Y) :- t(Z,Z), u(Z,X), u(Z,Y).\n" /* goal t(V,V): equal arguments only */
        "r(X,Y) :- s(Z,W), u(Z,X), u(W,Y).\n"
        "s(X,X) :- v(X,X), w(X,X).\n" /* head p(X,X) against s(V1,V2) */
        "w(a,X) :- u(X,X).\n"
        "x(X,Y) :- w(X,b), w(b,Y).\n"; /* constants in heads */
    rig_open(&r, facts, rules, &o);
    rig_ask(&r, "q(b,a)");
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "u(a,a) | u(b,b), u(b,a)"); /* u(a,b) was known */
    rig_ask(&r, "r(a,b)");
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "v(V1,V1), w(V1,V1), u(V1,a), u(V1,b)");
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "w(a,a), u(a,a)");
    rig_ask(&r, "x(a,b)");
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "u(b,b), w(b,b)");
    rig_ask(&r, "w(b,a)"); /* the head's constant differs */
    assert_string_equal(moves(&r), "False");
    rig_close(&r);
}

static void numbering_of_variables(void **state)
{
    (void)state;
    rig r;
    lw_env_options o = lw_env_defaults();
    o.end_proof_action = false;
    const char *facts = "e(a,b).\ne(c,d).\n";
    const char *rules = "p(X,Y) :- f(X,Z), f(Z,Y).\nf(X,Y) :- e(X,Z), g(Z,Y).\nf(X,Y) :- g(X,Y).\n"
                        "f(a,d) :- e(a,a).\ng(X,Y) :- g(Y,X).\n";
    rig_open(&r, facts, rules, &o);
    rig_ask(&r, "p(a,b)");
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "e(a,V1), g(V1,V2), f(V2,b) | g(a,V1), f(V1,b) | "
                                   "e(a,a), f(d,b)");
    rig_close(&r);
    o.numbering = LW_NUMBER_PARITY; /* the state's V1 stays, the fresh one is V2 */
    rig_open(&r, facts, rules, &o);
    rig_ask(&r, "p(a,b)");
    assert_string_equal(moves(&r), "f(a,V1), f(V1,b)");
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "e(a,V2), g(V2,V1), f(V1,b) | g(a,V1), f(V1,b) | "
                                   "e(a,a), f(d,b)");
    rig_take(&r, 1);
    assert_string_equal(moves(&r), "g(V1,a), f(V1,b)");
    rig_close(&r);
    o.numbering = LW_NUMBER_PUBLISHED; /* one shift: the smallest becomes the next free number */
    rig_open(&r, facts, rules, &o);
    rig_ask(&r, "p(a,b)");
    const char *first = move_text(r.kb, &r.m, 0);
    assert_string_equal(first, "f(a,V1), f(V1,b)");
    rig_take(&r, 0);
    int32_t least = INT32_MAX;
    for (int32_t i = 0; i < r.m.first[r.m.n]; i++)
        for (int j = 0; j < 2; j++)
            if (r.m.atoms[i].arg[j] > r.kb->n_constants)
                least = LW_MIN(least, r.m.atoms[i].arg[j]);
    assert_int_equal(least, r.kb->n_constants + 2); /* V1 is used up */
    rig_close(&r);
}

static void facts_before_rules_but_not_in_parity(void **state)
{
    (void)state;
    const char *facts = "p(a,c).\np(a,b).\nz(a,a).\n";
    const char *rules = "q(X,Y) :- p(X,Z), z(Z,Y).\np(X,Y) :- z(Y,X).\n";
    for (int parity = 0; parity < 2; parity++) {
        rig r;
        lw_env_options o = lw_env_defaults();
        o.numbering = parity ? LW_NUMBER_PARITY : LW_NUMBER_CANONICAL;
        rig_open(&r, facts, rules, &o);
        rig_ask(&r, "q(a,c)");
        rig_take(&r, 0);
        assert_string_equal(moves(&r), parity ? "z(V1,a), z(V1,c) | z(b,c) | z(c,c) | Endf"
                                              : "z(b,c) | z(c,c) | z(V1,a), z(V1,c) | Endf");
        rig_close(&r);
    }
}

static void every_cut_is_counted(void **state)
{
    (void)state;
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    for (int i = 0; i < 9; i++)
        lw_str_addf(&facts, "e(a,b%d).\n", i);
    lw_str_add(&facts, "l(a,a).\n");
    const char *rules = "p(X,Y) :- e(X,Z), m(Z,Y).\nm(X,Y) :- n(X,A), n(A,B), n(B,Y).\n"
                        "n(X,Y) :- n(Y,X).\n";
    rig r;
    lw_env_options o = lw_env_defaults();
    o.padding_states = 5;
    o.padding_atoms = 2;
    o.max_fact_pairs = 7;
    o.max_depth = 2;
    rig_open(&r, lw_str_c(&facts), rules, &o);
    const lw_env_counts *c = lw_env_counted(r.e);
    rig_ask(&r, "p(a,a)");
    rig_take(&r, 0); /* e(a,V1), m(V1,a): nine facts, seven tried, five fit, four and Endf stay */
    assert_string_equal(moves(&r), "m(b0,a) | m(b1,a) | m(b2,a) | m(b3,a) | Endf");
    assert_int_equal(c->facts_cut, 2);
    assert_int_equal(c->states_cut, 2);
    assert_int_equal(c->end_cut, 1);
    assert_int_equal(c->atoms_cut, 0);
    rig_take(&r, 0);
    assert_true(r.path->end == LW_PROOF_DEEP && c->depth_cut == 1);
    rig_ask(&r, "m(a,b0)"); /* its one successor has three goals */
    assert_string_equal(moves(&r), "False");
    assert_int_equal(c->atoms_cut, 1);
    assert_int_equal(c->dead_ends, 1);
    rig_ask(&r, "n(a,b0)");
    rig_take(&r, 0); /* n(b0,a) leads only back */
    assert_string_equal(moves(&r), "False");
    assert_int_equal(c->visited, 1);
    assert_int_equal(c->steps, 5);
    assert_int_equal(c->proofs, 0);
    rig_close(&r);
    o.numbering = LW_NUMBER_PUBLISHED;
    o.max_total_vars = 1;
    o.padding_atoms = 6;
    rig_open(&r, lw_str_c(&facts), rules, &o);
    rig_ask(&r, "m(a,b0)"); /* needs two variables */
    assert_string_equal(moves(&r), "False");
    assert_int_equal(lw_env_counted(r.e)->vars_cut, 1);
    rig_close(&r);
}

static void a_proof_behind_the_limit_of_states(void **state)
{
    (void)state;
    rig r;
    lw_env_options o = lw_env_defaults();
    o.padding_states = 2;
    /* The last fact proves the goal: seen although only two successors are kept. */
    rig_open(&r, "e(a,b).\ne(a,c).\ne(a,d).\ng(d,z).\n", "p(X,Y) :- e(X,Z), g(Z,Y).\n", &o);
    rig_ask(&r, "p(a,z)");
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "True");
    rig_close(&r);
    /* A rule's proof behind the limit is lost, as published, but counted. */
    rig_open(&r, "e(a,b).\ng(a,z).\n", "p(X,Y) :- h(X,Y).\np(X,Y) :- i(X,Y).\np(X,Y) :- g(X,Y).\n",
             &o);
    rig_ask(&r, "p(a,z)");
    assert_string_equal(moves(&r), "h(a,z) | Endf");
    assert_int_equal(lw_env_counted(r.e)->states_cut, 1);
    rig_close(&r);
}

/* Rows behind the limit are counted, not visited: the query's own must not count. */
static void cuts_are_exact_around_the_query(void **state)
{
    (void)state;
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    for (int i = 0; i < 9; i++)
        lw_str_addf(&facts, "e(a,b%d).\ne(b%d,z).\n", i, i);
    lw_env_options o = lw_env_defaults();
    o.padding_states = 5;
    o.end_proof_action = false;
    static const char *const rules[2] = {"e(X,Y) :- e(X,Z), k(Z,Y).\n",
                                         "e(X,Y) :- e(Z,Y), k(Z,X).\n"};
    for (int side = 0; side < 2; side++) /* e(a,V) in the first order, e(V,z) in the second */
        for (int i = 0; i < 9; i++) {
            rig r;
            char query[32];
            rig_open(&r, lw_str_c(&facts), rules[side], &o);
            snprintf(query, sizeof query, side ? "e(b%d,z)" : "e(a,b%d)", i);
            rig_ask(&r, query);
            rig_take(&r, 0);
            assert_int_equal(r.m.n, 5); /* of eight facts and one rule */
            assert_int_equal(lw_env_counted(r.e)->states_cut, 4);
            rig_close(&r);
        }
}

static void visited_states_are_multisets(void **state)
{
    (void)state;
    const lw_atom a = {1, {2, 3}}, b = {2, {1, 4}}, ab[2] = {a, b}, ba[2] = {b, a}, aa[2] = {a, a};
    assert_true(lw_state_hash(ab, 2) == lw_state_hash(ba, 2) && lw_state_same(ab, ba, 2));
    assert_false(lw_state_same(ab, aa, 2));
    /* Equal sums of hashes alone must not count: goals are compared. */
    rig r;
    lw_env_options o = lw_env_defaults();
    o.end_proof_action = false;
    const char *rules = "p(X,Y) :- q(X,Y), r(X,Y).\nq(X,Y) :- r(X,Y), q(X,Y).\n"
                        "r(X,Y) :- q(X,Y).\n";
    rig_open(&r, "z(a,b).\n", rules, &o);
    rig_ask(&r, "p(a,b)"); /* q, r -> r, q, r -> q, q, r; then r, q, q, r .. */
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "r(a,b), q(a,b), r(a,b)");
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "q(a,b), q(a,b), r(a,b)");
    rig_close(&r);
    o.memory_pruning = true;
    rig_open(&r, "z(a,b).\n", "p(X,Y) :- q(X,Y), r(X,Y).\nq(X,Y) :- r(X,Y).\nr(X,Y) :- q(X,Y).\n",
             &o);
    rig_ask(&r, "p(a,b)");
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "r(a,b), r(a,b)");
    rig_take(&r, 0);
    assert_string_equal(moves(&r), "False"); /* q, r again */
    rig_close(&r);
}

static void steps_without_a_choice(void **state)
{
    (void)state;
    rig r;
    lw_env_options o = lw_env_defaults();
    o.skip_unary_actions = true;
    rig_open(&r, "z(a,b).\ny(c,d).\n",
             "p(X,Y) :- q(X,Y).\nq(X,Y) :- r(X,Y).\nr(X,Y) :- s(X,Y).\nr(X,Y) :- t(X,Y).\n"
             "u(X,Y) :- v(X,Y).\nv(X,Y) :- z(X,Y).\n",
             &o);
    rig_ask(&r, "p(a,d)");
    assert_string_equal(moves(&r), "s(a,d) | t(a,d) | Endf");
    assert_true(r.path->depth == 0 && lw_env_counted(r.e)->unary_steps == 2);
    rig_ask(&r, "u(a,b)");
    assert_string_equal(moves(&r), "True");
    rig_close(&r);
}

static void options_out_of_range(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = kb_of("p(a,b).\n", "");
    lw_env *e = NULL;
    lw_env_options o = lw_env_defaults();
    o.padding_atoms = 65;
    fails(lw_env_new(kb, &o, &e), LW_EUSAGE, "padding-atoms is 65, it must be 1 to 64");
    o = lw_env_defaults();
    o.padding_states = 0;
    fails(lw_env_new(kb, &o, &e), LW_EUSAGE, "padding-states is 0");
    assert_null(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_proof_step_by_step),
                                       cmocka_unit_test(the_query_is_no_fact_of_its_proof),
                                       cmocka_unit_test(unification_cases),
                                       cmocka_unit_test(numbering_of_variables),
                                       cmocka_unit_test(facts_before_rules_but_not_in_parity),
                                       cmocka_unit_test(every_cut_is_counted),
                                       cmocka_unit_test(a_proof_behind_the_limit_of_states),
                                       cmocka_unit_test(cuts_are_exact_around_the_query),
                                       cmocka_unit_test(visited_states_are_multisets),
                                       cmocka_unit_test(steps_without_a_choice),
                                       cmocka_unit_test(options_out_of_range)};
    return cmocka_run_group_tests_name("proof env", tests, NULL, NULL);
}
