/* SPDX-License-Identifier: Apache-2.0 */
/* Facts, rules, domains and queries from text: every format, and what bad lines say. */
#include "test_proof_util.h"

#include "base/base.h"
#include "logic/logic.h"

static int parse(const char *facts, const char *rules, const char *domains, lw_problems *p,
                 lw_kb **kb)
{
    const lw_kb_texts t = {lw_span_of(facts), lw_span_of(rules), lw_span_of(domains)};
    lw_problems_clear(p);
    lw_errclear();
    return lw_kb_parse(&t, p, kb);
}

/* The texts must be refused with a message that holds `part`. */
#define refused(facts, rules, domains, part)                                      \
    do {                                                                          \
        lw_problems p_ = {0};                                                     \
        lw_kb *kb_ = NULL;                                                        \
        fails(parse((facts), (rules), (domains), &p_, &kb_), LW_EFORMAT, (part)); \
        assert_null(kb_);                                                         \
        lw_problems_clear(&p_);                                                   \
    } while (0)

static void facts_in_every_form(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free)
    lw_kb *kb = kb_of("\xef\xbb\xbf% a comment\n\n likes(ann, bob).\r\n"
                      "/m/film./x/cast(/m/01,/m/02).\n"
                      "ann\tlikes\teve\n"
                      "'big city'('new york','a,(b)').\n"
                      "likes(\xc3\xa9va,\xe6\x97\xa5).\n"
                      "likes(ann,bob)", /* again, and without a dot or a newline */
                      "");
    assert_int_equal(kb->facts.n, 5);
    assert_int_equal(kb->duplicate_facts, 1);
    assert_int_equal(kb->n_predicates, 3);
    assert_string_equal(kb->predicates.name[1], "/m/film./x/cast"); /* sorted by bytes */
    assert_string_equal(kb->predicates.name[3], "likes");
    assert_true(lw_facts_find(&kb->facts, atom_of(kb, "likes(ann,eve)")) >= 0);
    assert_true(lw_facts_find(&kb->facts, atom_of(kb, "likes(bob,ann)")) < 0);
    assert_true(lw_symbols_find(&kb->constants, lw_span_of("a,(b)")) > 0);
    assert_true(lw_symbols_find(&kb->constants, lw_span_of("new york")) > 0);
    for (int32_t c = 2; c <= kb->n_constants; c++)
        assert_true(strcmp(kb->constants.name[c - 1], kb->constants.name[c]) < 0);
}

static void rules_in_every_form(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free)
    lw_kb *kb = kb_of("b(x,y).\n", "r0:0.75:b(x,h), c(h,y) -> head(x,y)\n"
                                   "b(A,B) -> head(A,B)\n"
                                   "head(X,Y) :- b(X, Z), c(Z, Y).\n"
                                   "(('p0', 'X0'), ('p1', 'X0'))\n"
                                   "0.5\thead(X,x) :- b(X,_), c(_,Y)\n"
                                   "c(X,Y) :- b(X,'Z')  , b(y,Y).\n");
    assert_int_equal(kb->n_rules, 5);
    assert_true(kb->rules[0].weight == 0.75 && kb->rules[1].weight == 1);
    assert_true(kb->rules[3].weight == 0.5);
    assert_int_equal(kb->rules[0].n_vars, 3);
    assert_int_equal(kb->rules[3].n_vars, 4); /* X, Y and two nameless ones */
    /* Quoted names and small letters are constants in Prolog's form only. */
    assert_int_equal(kb->body[kb->rules[4].first].arg[1],
                     lw_symbols_find(&kb->constants, lw_span_of("Z")));
    assert_int_equal(kb->rules[3].head.arg[1], lw_symbols_find(&kb->constants, lw_span_of("x")));
    int32_t head = lw_symbols_find(&kb->predicates, lw_span_of("head"));
    assert_int_equal(kb->rule_first[head + 1] - kb->rule_first[head], 4);
    for (int32_t i = 0; i < 4; i++) /* in the order of the file */
        assert_int_equal(kb->rule_order[kb->rule_first[head] + i], i);
}

/* Names of other people's tables: Paris_(Texas). An atom with tabs in it stays one. */
static void columns_may_hold_parentheses(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free)
    lw_kb *kb = kb_of("Paris_(Texas)\tlies in (since 1845)\tUSA (48)\n"
                      "p(\ta,\tb).\nx\ty\t(z)\n",
                      "");
    assert_int_equal(kb->facts.n, 3);
    for (size_t i = 0; i < 3; i++) {
        static const char *const predicate[] = {"lies in (since 1845)", "p", "y"},
                                 *const constant[] = {"Paris_(Texas)", "a", "(z)"};
        assert_int_not_equal(lw_symbols_find(&kb->predicates, lw_span_of(predicate[i])), 0);
        assert_int_not_equal(lw_symbols_find(&kb->constants, lw_span_of(constant[i])), 0);
    }
    refused("p(a,b)\t0.5\tnote\n", "", "", "something behind the fact"); /* no name p(a,b) */
    refused("p\t(a,b)\tnote\n", "", "", "something behind the fact");
    refused("a(\tb\tc\n", "", "", "facts:1:");
}

/* Predicates that look like something else. */
static void predicates_in_every_form(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free)
    lw_kb *kb = kb_of("b(x,y).\n", "'big city'(X,Y) :- b(X,Y).\n5(X,Y) :- b(X,Y).\n");
    assert_int_equal(kb->n_rules, 2);
    assert_true(lw_symbols_find(&kb->predicates, lw_span_of("big city")) >= 0);
    assert_true(lw_symbols_find(&kb->predicates, lw_span_of("5")) >= 0);
    assert_true(kb->rules[1].weight == 1);
    refused("b(x,y).", "(X,Y) :- b(X,Y).", "", "a predicate is missing");
    refused("b(x,y).", "a)b(X,Y) :- b(X,Y).", "", "a predicate has a blank");
    refused("b(x,y).",
            "0.00000000000000000000000000000000000000000000000000000000000001 h(X,Y) :- b(X,Y).",
            "", "a predicate has a blank"); /* 64 letters: too long for a weight */
    refused("b(x,y).", "b(x,y) -> h(x,y) <3>", "", "a template of rules");
}

static void bad_lines_are_named(void **state)
{
    (void)state;
    refused("p(a,b).\np(a b).\n", "", "", "facts:2: it has one argument, two are needed: p(a b).");
    refused("p(a,b,c).", "", "", "facts:1: it has more than two arguments");
    refused("p(a,).", "", "", "an argument is empty");
    refused("p('',a).", "", "", "an argument is empty");
    refused("p(a,b", "", "", "the closing parenthesis is missing");
    refused("(a,b).", "", "", "the predicate is missing");
    refused("p(a(1),b).", "", "", "facts:1:");
    refused("p(a,b). q(b,c).", "", "", "facts:1: one atom pred(a,b). is expected");
    refused("p(a,b) 3", "", "", "something behind the fact");
    refused("what is this", "", "", "facts:1: pred(a,b). or head<TAB>pred<TAB>tail is expected");
    refused("a\t\tb", "", "", "a column is empty");
    refused("p(a,\x01).", "", "", "a control character");
    refused("p(a,b).\np(a,\xff).", "", "", "facts:2: it is not UTF-8");
    refused("p(a,\xed\xa0\x80).", "", "", "it is not UTF-8"); /* a surrogate */
    refused("p(a,b).", "p(X,Y)", "", "rules:1:");
    refused("p(a,b).", "\n\np(X,Y) :- .", "", "rules:3: the rule has no body");
    refused("p(a,b).", "p(X,Y) :- q(X,Z) q(Z,Y).", "", "a comma is expected between the atoms");
    refused("p(a,b).", "p(X, Y) :- q(X, Z), r(Z, Y) <3>", "", "a template of rules");
    refused("p(a,b).", "r0:1:p(x,y) -> q(x,y), q(y,x)", "", "something behind the head");
    refused("p(a,b).", "", "people\n", "domains:1: a domain without constants: people");
    refused("p(a,b).\np(\np(", "", "", "(and 1 more; `leeway prove check` lists them)");
    LW_CLEANUP(lw_str_clear) lw_str many = {0};
    for (int i = 0; i < 51; i++)
        lw_str_add(&many, "p(\n");
    refused(lw_str_c(&many), "", "", "(and 50 more; `leeway prove check` lists the first ones)");
}

static void unsafe_rules_are_refused(void **state)
{
    (void)state;
    refused("p(a,b).", "r0:1:p(x,y) -> q(x,z)", "",
            "rules:1: the head's variable z is not bound: no atom of the body has it");
    refused("p(a,b).", "q(X,Y) :- p(X,a).", "", "the head's variable Y is not bound");
    LW_CLEANUP(lw_str_clear) lw_str wide = {0}, body = {0};
    for (int i = 0; i < 65; i++)
        lw_str_addf(&wide, "%sp(v%d,v%d)", i ? ", " : "", i, i + 1);
    lw_str_add(&wide, " -> q(v0,v1)");
    refused("p(a,b).", lw_str_c(&wide), "", "the body has more than 32 atoms");
    for (int i = 0; i < 32; i++)
        lw_str_addf(&body, "%sp(v%d,w%d)", i ? ", " : "", i, i);
    lw_str_add(&body, ", p(v0,v1) -> q(v0,v1)");
    refused("p(a,b).", lw_str_c(&body), "", "the body has more than 32 atoms");
}

static void nothing_in_it(void **state)
{
    (void)state;
    refused("", "", "", "facts: there is no fact in it");
    refused("% nothing\n\n", "r0:1:p(x,y) -> q(x,y)", "", "there is no fact in it");
    refused("\xef\xbb\xbf", "", "", "there is no fact in it"); /* a mark that editors write */
    LW_CLEANUP(lw_kb_free) lw_kb *kb = kb_of("p(a,b).", "");   /* no rules: a warning */
    assert_int_equal(kb->n_rules, 0);
    LW_CLEANUP(lw_kb_free) lw_kb *lone = kb_of("'(a,b).", ""); /* one quote encloses nothing */
    assert_true(lw_symbols_find(&lone->predicates, lw_span_of("'")) >= 0);
    lw_problems p = {0};
    lw_queries q = {0};
    ok(lw_queries_parse(kb, &(lw_query_options){.split = "test"}, lw_span_of("% none\n"),
                        (lw_span){NULL, 0}, &p, &q));
    assert_int_equal(q.n, 0);
    lw_queries_clear(&q);
    const lw_kb_options missing = {.dir = "/nowhere/at/all"};
    fails(lw_kb_open(&missing, &p, &kb), LW_EIO, "no such directory");
    lw_problems_clear(&p);
}

static void domains_are_read(void **state)
{
    (void)state;
    lw_problems p = {0};
    LW_CLEANUP(lw_kb_free) lw_kb *kb = NULL;
    ok(parse("in(rome,italy).\nin(paris,france).\n", "",
             "in:cities:states\ncities rome paris\nstates italy france atlantis rome\nno:a:b\n", &p,
             &kb));
    const lw_domains *d = &kb->domains;
    int32_t cities = lw_symbols_find(&d->names, lw_span_of("cities")),
            states = lw_symbols_find(&d->names, lw_span_of("states")),
            in = lw_symbols_find(&kb->predicates, lw_span_of("in"));
    assert_int_equal(d->of_arg[0][in], cities);
    assert_int_equal(d->of_arg[1][in], states);
    assert_int_equal(d->first[states + 1] - d->first[states], 4);
    for (int32_t i = d->first[states] + 1; i < d->first[states + 1]; i++)
        assert_true(d->member[i - 1] < d->member[i]);
    assert_int_equal(d->of[lw_symbols_find(&kb->constants, lw_span_of("rome"))], cities);
    assert_non_null(strstr(lw_str_c(&p.warnings.text), "constant atlantis is in no fact"));
    assert_non_null(strstr(lw_str_c(&p.warnings.text), "1 constant is in more than one domain"));
    assert_non_null(strstr(lw_str_c(&p.warnings.text), "predicate no of a declaration"));
    lw_problems_clear(&p);
}

static void queries_and_their_depths(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free) lw_kb *kb = kb_of("p(a,b).\nq(a,b).\n", "r:1:p(y,x) -> p(x,y)\n");
    lw_problems p = {0};
    lw_queries q = {0};
    lw_query_options o = {.split = "test"};
    const lw_span text = lw_span_of("p(b,a).\nq(b,a).\np(a,a)\n"),
                  depths = lw_span_of("p(b,a) 1\np(zzz,a) 4\nq(b,a)\t-1\n");
    ok(lw_queries_parse(kb, &o, text, depths, &p, &q));
    assert_int_equal(q.n, 3);
    assert_int_equal(q.annotated, 2);
    assert_int_equal(q.published[0], 1);
    assert_int_equal(q.published[1], LW_DEPTH_NONE);
    assert_int_equal(q.published[2], LW_DEPTH_UNKNOWN);
    lw_queries_clear(&q);
    o.filter_by_rules = true;
    ok(lw_queries_parse(kb, &o, text, depths, &p, &q));
    assert_int_equal(q.n, 2);
    assert_int_equal(q.no_rule, 1);
    lw_queries_clear(&q);
    fails(lw_queries_parse(kb, &o, lw_span_of("p(b,c)."), depths, &p, &q), LW_EFORMAT,
          "queries:1: constant c is in no fact, rule or domain");
    lw_problems_clear(&p);
    fails(lw_queries_parse(kb, &o, lw_span_of("\nr(b,a)."), depths, &p, &q), LW_EFORMAT,
          "queries:2: predicate r is in no fact");
    lw_problems_clear(&p);
    o.skip_unknown = true;
    ok(lw_queries_parse(kb, &o, lw_span_of("p(b,c).\np(b,a)."), depths, &p, &q));
    assert_true(q.n == 1 && q.unknown == 1);
    lw_queries_clear(&q);
    fails(lw_queries_parse(kb, &o, text, lw_span_of("p(b,a) one"), &p, &q), LW_EFORMAT,
          "depths:1: the depth is not -1 or a count of steps");
    lw_problems_clear(&p);
    fails(lw_kb_atom(kb, "pp(a,b)", &(lw_atom){0}), LW_EFORMAT, "predicate pp is unknown; did you");
}

static void cycles_are_found(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free)
    lw_kb *kb = kb_of("e(a,b).\n", "r:1:b(x,y) -> a(x,y)\nr:1:c(x,y) -> b(x,y)\n"
                                   "r:1:a(x,y) -> c(x,y)\nr:1:a(x,y), none(x,y) -> d(x,y)\n"
                                   "r:1:f(x,z), f(z,y) -> f(x,y)\nr:1:e(x,y) -> e(x,y)\n");
    lw_problems p = {0};
    lw_survey s = {0};
    const lw_env_options o = lw_env_defaults();
    ok(lw_survey_run(kb, &o, &p, &s));
    const char *cyclic = "abcef"; /* d only leads into a cycle */
    for (const char *name = "abcdef"; *name; name++) {
        int32_t at = lw_symbols_find(&kb->predicates, (lw_span){name, 1});
        assert_int_equal(s.of[at].recursive, strchr(cyclic, *name) != NULL);
    }
    assert_int_equal(s.recursive, 5);
    assert_int_equal(s.no_source, 1);
    assert_non_null(strstr(lw_str_c(&p.warnings.text), "predicate none of a rule's body"));
    lw_survey_clear(&s);
    lw_problems_clear(&p);
}

static void indexes_agree_with_a_scan(void **state)
{
    (void)state;
    enum { P = 5, C = 23, N = 700 };
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_rng_key key = lw_rng_key_of(7, lw_hash_name("index"));
    for (uint64_t i = 0; i < N; i++)
        lw_str_addf(&text, "p%u(c%u,c%u).\n", lw_rng_below(key, 0, i, 0, P),
                    lw_rng_below(key, 0, i, 1, C), lw_rng_below(key, 0, i, 2, C));
    LW_CLEANUP(lw_kb_free) lw_kb *kb = kb_of(lw_str_c(&text), "");
    const lw_facts *f = &kb->facts;
    for (int32_t p = 1; p <= kb->n_predicates; p++)
        for (int32_t c = 1; c <= kb->n_constants; c++)
            for (int side = 0; side < 2; side++) {
                lw_fact_range r = lw_facts_with(f, p, side, c);
                int32_t seen = 0;
                for (int32_t i = 0; i < f->n; i++) { /* facts ascend, so matches come in order */
                    if (f->atom[i].p != p || f->atom[i].arg[side] != c)
                        continue;
                    assert_true(seen < r.n);
                    int32_t row = r.first + seen++;
                    assert_int_equal(side ? f->by_second[row] : row, i);
                }
                assert_int_equal(seen, r.n);
            }
    for (int32_t i = 0; i < f->n; i++)
        assert_int_equal(lw_facts_find(f, f->atom[i]), i);
    assert_int_equal(lw_facts_with(f, 1, 0, 0).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(facts_in_every_form),
                                       cmocka_unit_test(rules_in_every_form),
                                       cmocka_unit_test(columns_may_hold_parentheses),
                                       cmocka_unit_test(predicates_in_every_form),
                                       cmocka_unit_test(bad_lines_are_named),
                                       cmocka_unit_test(unsafe_rules_are_refused),
                                       cmocka_unit_test(nothing_in_it),
                                       cmocka_unit_test(domains_are_read),
                                       cmocka_unit_test(queries_and_their_depths),
                                       cmocka_unit_test(cycles_are_found),
                                       cmocka_unit_test(indexes_agree_with_a_scan)};
    return cmocka_run_group_tests_name("proof files", tests, NULL, NULL);
}
