/* SPDX-License-Identifier: Apache-2.0 */
/* Rules applied once: answers, scores and ranks against every assignment of every variable; files of rule miners. */
#include "unit/proof_naive.h"

#include <math.h>

#include "jobs/prove/rank/rank_job.h"

enum { PROGRAMS = 120, MOST = 32 };

static nprogram program; /* large */

/* ---- the obvious way --------------------------------------------------------------------------- */

static int32_t under(const lw_kb *kb, int32_t arg, const int32_t *value)
{
    return arg > kb->n_constants ? value[arg - kb->n_constants - 1] : arg;
}

/* Some assignment makes the rule's head `want` and its body facts other than `but`. */
static bool gives(const lw_kb *kb, const lw_rule *r, lw_atom want, const lw_atom *but)
{
    int32_t value[MOST];
    int64_t all = 1;
    for (int32_t v = 0; v < r->n_vars; v++)
        all *= kb->n_constants;
    for (int64_t n = 0; n < all; n++) {
        int64_t rest = n;
        for (int32_t v = 0; v < r->n_vars; v++, rest /= kb->n_constants)
            value[v] = (int32_t)(rest % kb->n_constants) + 1;
        bool is = under(kb, r->head.arg[0], value) == want.arg[0] &&
                  under(kb, r->head.arg[1], value) == want.arg[1];
        for (int32_t b = 0; b < r->n_body && is; b++) {
            const lw_atom t = kb->body[r->first + b],
                          a = {t.p, {under(kb, t.arg[0], value), under(kb, t.arg[1], value)}};
            is = lw_facts_find(&kb->facts, a) >= 0 && !(but && lw_atom_eq(a, *but));
        }
        if (is)
            return true;
    }
    return false;
}

/* Confidences of the rules that give an atom, descending; then the score as three numbers. */
typedef struct obvious {
    double c[MOST_RULES];
    int n;
} obvious;

static obvious score_of(const lw_kb *kb, const double *confidence, lw_atom a, const lw_atom *but)
{
    obvious o = {.n = 0};
    for (int32_t r = 0; r < kb->n_rules; r++)
        if (kb->rules[r].head.p == a.p && gives(kb, &kb->rules[r], a, but))
            o.c[o.n++] = confidence[r];
    for (int i = 1; i < o.n; i++)
        for (int k = i; k > 0 && o.c[k] > o.c[k - 1]; k--) {
            const double was = o.c[k];
            o.c[k] = o.c[k - 1];
            o.c[k - 1] = was;
        }
    return o;
}

static int compare(const obvious *x, const obvious *y, int score)
{
    if (score == LW_RULE_NOISY_OR) {
        double a = 1, b = 1;
        for (int i = 0; i < x->n; i++)
            a *= 1 - x->c[i];
        for (int i = 0; i < y->n; i++)
            b *= 1 - y->c[i];
        if (x->n == 0 || y->n == 0)
            return (x->n > 0) - (y->n > 0);
        return fabs(a - b) < 1e-12 ? 0 : a < b ? 1 : -1;
    }
    const int most = score == LW_RULE_MAX ? 1 : LW_MAX(x->n, y->n);
    for (int i = 0; i < most; i++) {
        const double a = i < x->n ? x->c[i] : -1, b = i < y->n ? y->c[i] : -1;
        if (a != b)
            return a > b ? 1 : -1;
    }
    return 0;
}

static lw_atom with(lw_atom a, int side, int32_t c)
{
    a.arg[side] = c;
    return a;
}

/* ---- answers ----------------------------------------------------------------------------------- */

static void draw_confidences(const lw_kb *kb, uint64_t seed, double *confidence)
{
    dice d = {lw_rng_key_of(seed, 77), 0};
    for (int32_t r = 0; r < kb->n_rules; r++)
        confidence[r] = (double)(1 + roll(&d, 4)) / 5;
}

static int expect_goal(const lw_kb *kb, lw_rule_asker *q, const double *confidence, lw_atom a,
                       int side, int score)
{
    const bool own = lw_facts_find(&kb->facts, a) >= 0;
    const int32_t *constant;
    obvious of[MOST];
    ok(lw_rule_ask(q, a, side, own));
    int scored = 0;
    for (int32_t c = 1; c <= kb->n_constants; c++) {
        of[c] = score_of(kb, confidence, with(a, side, c), own ? &a : NULL);
        scored += of[c].n > 0;
        if (score != LW_RULE_NOISY_OR)
            assert_true(lw_rule_value(q, c) == (of[c].n ? of[c].c[0] : 0));
    }
    assert_int_equal(lw_rule_answers(q, &constant), scored);
    for (int32_t x = 1; x <= kb->n_constants; x++)
        for (int32_t y = 1; y <= kb->n_constants; y++)
            assert_int_equal(lw_rule_compare(q, x, y), compare(&of[x], &of[y], score));
    return scored;
}

static void answers_are_those_of_all_assignments(void **state)
{
    (void)state;
    int scored = 0;
    for (uint64_t seed = 0; seed < PROGRAMS; seed++) {
        random_program(&program, seed + 5);
        LW_CLEANUP(lw_kb_free) lw_kb *kb = program_kb(&program);
        LW_CLEANUP(lw_rule_plans_free) lw_rule_plans *plans = NULL;
        LW_CLEANUP(lw_rule_asker_free) lw_rule_asker *q = NULL;
        const int score = (int)(seed % LW_RULE_SCORES);
        double confidence[MOST_RULES];
        draw_confidences(kb, seed, confidence);
        ok(lw_rule_plans_new(kb, confidence, (lw_rule_score)score, &plans));
        ok(lw_rule_asker_new(plans, &q));
        for (int32_t p = 1; p <= kb->n_predicates; p++)
            for (int32_t c = 1; c <= kb->n_constants; c++)
                for (int side = 0; side < 2; side++)
                    scored += expect_goal(kb, q, confidence,
                                          (lw_atom){p, {c, c % kb->n_constants + 1}}, side, score);
    }
    assert_true(scored > 1000);
}

/* ---- ranks ------------------------------------------------------------------------------------- */

static lw_rank rank_of(const lw_kb *kb, const lw_corruptor *pool, const double *confidence,
                       lw_atom query, lw_corrupt_mode mode, int score)
{
    const bool own = lw_facts_find(&kb->facts, query) >= 0;
    const obvious mine = score_of(kb, confidence, query, own ? &query : NULL);
    lw_rank r = {0};
    lw_corruptions c;
    lw_atom a;
    lw_corruptions_begin(pool, query, mode, &c);
    while (lw_corruptions_next(pool, &c, &a)) {
        const obvious other = score_of(kb, confidence, a, NULL);
        const int above = compare(&other, &mine, score);
        r.higher += above > 0;
        r.ties += above == 0;
        r.lower += above < 0;
    }
    return r;
}

static lw_queries every_atom(const lw_kb *kb)
{
    lw_queries q = {0};
    q.atom = lw_calloc((size_t)kb->n_predicates * MOST * MOST, sizeof *q.atom);
    assert_non_null(q.atom);
    for (int32_t p = 1; p <= kb->n_predicates; p++)
        for (int32_t x = 1; x <= kb->n_constants; x++)
            for (int32_t y = 1; y <= kb->n_constants; y += 1 + (x % 2))
                q.atom[q.n++] = (lw_atom){p, {x, y}};
    return q;
}

static void expect_ranks(const lw_kb *kb, const lw_queries *q, const lw_queries *positive,
                         const double *confidence, int64_t drawn, int score)
{
    LW_CLEANUP(lw_corruptor_free) lw_corruptor *pool = NULL;
    LW_CLEANUP(lw_rank_lists_clear) lw_rank_lists got = {0};
    const lw_corrupt_options co = {.n = drawn, .filtered = true, .seed = 3};
    ok(lw_corruptor_new(kb, &co, &positive, 1, &pool));
    const lw_rules_rank_options o = {.kb = kb,
                                     .pool = pool,
                                     .drawn = drawn > 0,
                                     .mode = {true, true, true},
                                     .score = score,
                                     .confidence = confidence};
    ok(lw_rules_rank(&o, q, 1 + (int)(drawn + score) % 2, NULL, &got));
    for (int m = 0; m < LW_CORRUPT_MODES; m++)
        for (int32_t i = 0; i < q->n; i++) {
            const lw_rank want = rank_of(kb, pool, confidence, q->atom[i], (lw_corrupt_mode)m,
                                         score);
            assert_int_equal(got.list[m][i].higher, want.higher);
            assert_int_equal(got.list[m][i].ties, want.ties);
            assert_int_equal(got.list[m][i].lower, want.lower);
        }
}

static void ranks_are_those_of_candidates_one_by_one(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < PROGRAMS / 6; seed++) {
        random_program(&program, seed + 900);
        LW_CLEANUP(lw_kb_free) lw_kb *kb = program_kb(&program);
        LW_CLEANUP(lw_queries_clear) lw_queries q = every_atom(kb), known = {0};
        double confidence[MOST_RULES];
        lw_atom *some = lw_calloc((size_t)q.n, sizeof *some);
        assert_non_null(some);
        for (int32_t i = 0; i < q.n; i += 3)
            some[known.n++] = q.atom[i];
        known.atom = some;
        draw_confidences(kb, seed, confidence);
        expect_ranks(kb, &q, &known, confidence, 0, (int)(seed % LW_RULE_SCORES));
        expect_ranks(kb, &q, &known, confidence, 2, (int)(seed % LW_RULE_SCORES));
    }
}

/* ---- files of rule miners ---------------------------------------------------------------------- */

static const char FACTS[] = "p(a,b).\np(b,c).\nq(b,c).\nq(c,X1).\n";

static void expect_rules(const char *text, const char *const *rule, const double *weight, int n)
{
    LW_CLEANUP(lw_kb_free) lw_kb *kb = kb_of(FACTS, text);
    assert_int_equal(kb->n_rules, n);
    for (int r = 0; r < n; r++) {
        LW_CLEANUP(lw_str_clear) lw_str s = {0};
        lw_kb_print_rule(kb, r, &s);
        assert_string_equal(lw_str_c(&s), rule[r]);
        assert_true(kb->rules[r].weight == weight[r]);
    }
}

static void rules_of_anyburl_are_read(void **state)
{
    (void)state;
    expect_rules("1200\t900\t0.75\tp(X,Y) <= q(X,A), p(A,Y)\n"
                 "10\t5\t0.5\tp(X,b) <= q(X,A)\n"
                 "10\t4\t0.4\tp(a,Y) <= q(X1,Y)\n"
                 "7\t1\t0.142\tq(X,c) <= \n",
                 (const char *const[]){"p(V1, V2) :- q(V1, V3), p(V3, V2)", "p(V1, b) :- q(V1, V2)",
                                       "p(a, V1) :- q('X1', V1)"},
                 (const double[]){0.75, 0.5, 0.4}, 3);
}

static void rules_of_amie_are_read(void **state)
{
    (void)state;
    expect_rules("Using HeadCoverage as pruning metric with minimum threshold 0.01\n"
                 "Rule\tHead Coverage\tStd Confidence\tPCA Confidence\tPositive Examples\n"
                 "?g  q  ?b  ?a  p  ?g   => ?a  p  ?b\t0.1\t0.2\t0.75\t12\t60\t16\t?a\n"
                 "?a  q  c   => ?a  p  b\t0,1\t0,25\t0,5\t3\n"
                 "p(?x, ?y), q(?y, ?z) => q(?x, ?z)\t0.3\n"
                 "Mining done in 3 s\n3 rules mined.\n",
                 (const char *const[]){"p(V1, V2) :- q(V3, V2), p(V1, V3)", "p(V1, b) :- q(V1, c)",
                                       "q(V1, V2) :- p(V1, V3), q(V3, V2)"},
                 (const double[]){0.75, 0.5, 0.3}, 3);
}

static void bad_rules_name_their_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"1\t1\t0.5\tp(X,Y) <= q(X,Y)\n1\tx\t0.5\tp(X,Y) <= q(X,Y)\n", "rules:2: predicted, right"},
        {"1\t1\t0.5\tp(X,Y) <= q(X,Y)\n1\t1\t0.5\tp(X,Y)\n", "rules:2: head(X,Y) <= body"},
        {"1\t1\t0.5\tp(X,Y) <= q(X,A)\n", "rules:1: the head's variable Y is not bound"},
        {"1\t1\tnan\tp(X,Y) <= q(X\n", "rules:1: "},
        {"1\t1\t1\tp(X,Y) <= q(X,Y), \n", "rules:1: "},
        {"?a  p  ?b   => ?a  q\t1\t1\t1\n", "rules:1: an AMIE atom is subject"},
        {"?a  p  ?b   => ?a  q  ?b\t1\tx\t1\n", "rules:1: a confidence is expected"},
        {"?a  p  ?b   => ?a  q  ?c\t1\t1\t1\n", "rules:1: the head's variable ?c is not bound"},
        {"   => ?a  q  ?c\t1\t1\t1\n", "rules:1: the rule has no body"},
    };
    for (size_t i = 0; i < LW_COUNT(bad); i++) {
        lw_problems problems = {0};
        lw_kb *kb = NULL;
        const lw_kb_texts t = {lw_span_of(FACTS), lw_span_of(bad[i].text), {NULL, 0}};
        fails(lw_kb_parse(&t, &problems, &kb), LW_EFORMAT, bad[i].why);
        lw_problems_clear(&problems);
    }
}

static void confidences_are_one_a_rule(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = kb_of(FACTS, "p(X,Y) :- q(X,Y).\nq(X,Y) :- p(X,Y).\n");
    LW_CLEANUP(lw_rule_plans_free) lw_rule_plans *plans = NULL;
    double c[2];
    ok(lw_rule_confidences(kb, "c", lw_span_of("% two\nr0 0.25\n\n.5\n"), c));
    assert_true(c[0] == 0.25 && c[1] == 0.5);
    fails(lw_rule_confidences(kb, "c", lw_span_of("1\n"), c), LW_EFORMAT, "c: 1 confidences for 2");
    fails(lw_rule_confidences(kb, "c", lw_span_of("1\n2\n3\n"), c), LW_EFORMAT,
          "c:3: a confidence");
    fails(lw_rule_confidences(kb, "c", lw_span_of("1\nx\n"), c), LW_EFORMAT, "c:2: a number");
    fails(lw_rule_confidences(kb, "c", lw_span_of("nan\n1\n"), c), LW_EFORMAT, "c:1: a number");
    fails(lw_rule_plans_new(kb, (const double[]){1, 7}, LW_RULE_NOISY_OR, &plans), LW_EFORMAT,
          "rule 2 has a confidence of 7: noisy-or wants 0 to 1");
    fails(lw_rule_plans_new(kb, (const double[]){1, (double)INFINITY}, LW_RULE_MAX, &plans),
          LW_EFORMAT, "not a number");
}

/* Three variables that are all needed on, 165^3 rows. */
static void a_body_that_explodes_is_refused(void **state)
{
    (void)state;
    enum { N = 165 };
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    for (int i = 0; i < N * N; i++)
        lw_str_addf(&facts, "t(n%d,n%d).\n", i / N, i % N);
    LW_CLEANUP(lw_kb_free)
    lw_kb *kb = kb_of(lw_str_c(&facts), "t(X,Y) :- t(Y,X).\n"
                                        "p(X,Y) :- t(X,A), t(A,B), t(A,C), t(B,C), t(A,D), t(B,D), "
                                        "t(C,D), t(D,Y).\n");
    LW_CLEANUP(lw_rule_plans_free) lw_rule_plans *plans = NULL;
    LW_CLEANUP(lw_rule_asker_free) lw_rule_asker *q = NULL;
    ok(lw_rule_plans_new(kb, NULL, LW_RULE_MAX, &plans));
    ok(lw_rule_asker_new(plans, &q));
    fails(lw_rule_ask(q, atom_of(kb, "p(n1,n2)"), 1, false), LW_ENOMEM,
          "rule of line 2: more than 4194304 matches");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_are_those_of_all_assignments),
                                       cmocka_unit_test(ranks_are_those_of_candidates_one_by_one),
                                       cmocka_unit_test(rules_of_anyburl_are_read),
                                       cmocka_unit_test(rules_of_amie_are_read),
                                       cmocka_unit_test(bad_rules_name_their_line),
                                       cmocka_unit_test(confidences_are_one_a_rule),
                                       cmocka_unit_test(a_body_that_explodes_is_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
