/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Corruptions: every stream beside a list made the obvious way, on random knowledge bases with and
 * without domains, sampled and whole, filtered and not; small cases by hand.
 */
#include <math.h>

#include "base/base.h"
#include "logic/logic.h"

#include "test_proof_util.h"

static lw_kb *kb_with(const char *facts, const char *domains)
{
    lw_problems problems = {0};
    lw_kb *kb = NULL;
    const lw_kb_texts t = {lw_span_of(facts), {NULL, 0}, lw_span_of(domains)};
    ok(lw_kb_parse(&t, &problems, &kb));
    lw_problems_clear(&problems);
    return kb;
}

static lw_queries queries_of(const lw_kb *kb, const char *text)
{
    lw_problems problems = {0};
    lw_queries q = {0};
    ok(lw_queries_parse(kb, &(lw_query_options){.split = "test"}, lw_span_of(text),
                        (lw_span){NULL, 0}, &problems, &q));
    lw_problems_clear(&problems);
    return q;
}

/* All of a stream as text, blanks between. */
static const char *list(const lw_kb *kb, const lw_corruptor *c, const char *query,
                        lw_corrupt_mode mode, lw_corruptions *s)
{
    static char text[2000];
    LW_CLEANUP(lw_str_clear) lw_str all = {0};
    lw_atom a;
    lw_corruptions_begin(c, atom_of(kb, query), mode, s);
    while (lw_corruptions_next(c, s, &a)) {
        lw_kb_print_atom(kb, a, &all);
        lw_str_add(&all, " ");
    }
    snprintf(text, sizeof text, "%s", lw_str_c(&all));
    return text;
}

static void small_cases_by_hand(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free)
    lw_kb *kb = kb_with("in(rome,italy).\nin(nice,france).\nin(bonn,germany).", "");
    LW_CLEANUP(lw_queries_clear) lw_queries test = queries_of(kb, "in(nice,italy).");
    const lw_queries *sets[] = {&test};
    LW_CLEANUP(lw_corruptor_free) lw_corruptor *all = NULL, *true_too = NULL;
    lw_corruptions s;
    ok(lw_corruptor_new(kb, &(lw_corrupt_options){.n = 0}, NULL, 0, &true_too));
    ok(lw_corruptor_new(kb, &(lw_corrupt_options){.n = 0, .filtered = true}, sets, 1, &all));
    assert_string_equal(list(kb, true_too, "in(nice,france)", LW_CORRUPT_TAIL, &s),
                        "in(nice,bonn) in(nice,germany) in(nice,italy) in(nice,nice) "
                        "in(nice,rome) ");
    assert_string_equal(list(kb, all, "in(nice,france)", LW_CORRUPT_TAIL, &s),
                        "in(nice,bonn) in(nice,germany) in(nice,nice) in(nice,rome) ");
    assert_int_equal(s.known, 1);
    assert_int_equal(s.given, 4);
    assert_int_equal(s.missing, 0);
    assert_string_equal(list(kb, all, "in(nice,italy)", LW_CORRUPT_BOTH, &s),
                        "in(bonn,italy) in(france,italy) in(germany,italy) in(italy,italy) "
                        "in(nice,bonn) in(nice,germany) in(nice,nice) in(nice,rome) ");
    assert_int_equal(s.known, 2);
}

static void domains_hold(void **state)
{
    (void)state;
    LW_CLEANUP(lw_kb_free)
    lw_kb *kb = kb_with("in(rome,italy).\nin(nice,france).\nnear(rome,rome).",
                        "city rome nice bonn nice\nland italy france\n"
                        "near:land:city");
    LW_CLEANUP(lw_corruptor_free) lw_corruptor *c = NULL, *any = NULL;
    lw_corruptions s;
    ok(lw_corruptor_new(kb, &(lw_corrupt_options){.n = 0}, NULL, 0, &c));
    ok(lw_corruptor_new(kb, &(lw_corrupt_options){.n = 0, .domains = LW_DOMAINS_NO}, NULL, 0,
                        &any));
    assert_string_equal(list(kb, c, "in(rome,italy)", LW_CORRUPT_TAIL, &s), "in(rome,france) ");
    assert_string_equal(list(kb, c, "in(rome,italy)", LW_CORRUPT_HEAD, &s),
                        "in(bonn,italy) in(nice,italy) ");
    assert_string_equal(list(kb, c, "near(rome,rome)", LW_CORRUPT_HEAD, &s),
                        "near(france,rome) near(italy,rome) "); /* as declared */
    assert_int_equal(lw_corruptor_pool(any, atom_of(kb, "in(rome,italy)"), 1), 4);
    LW_CLEANUP(lw_corruptor_free) lw_corruptor *most = NULL, *bad = NULL;
    ok(lw_corruptor_new(kb, &(lw_corrupt_options){.n = 5}, NULL, 0, &most));
    list(kb, most, "in(rome,italy)", LW_CORRUPT_BOTH, &s); /* 3 heads of 2, 2 tails of 1 */
    assert_int_equal(s.given, 3);
    assert_int_equal(s.missing, 2);
    LW_CLEANUP(lw_kb_free) lw_kb *bare = kb_with("in(rome,italy).", "");
    fails(lw_corruptor_new(bare, &(lw_corrupt_options){.domains = LW_DOMAINS_YES}, NULL, 0, &bad),
          LW_EUSAGE, "domain2constants.txt");
    fails(lw_corruptor_new(bare, &(lw_corrupt_options){.n = -1}, NULL, 0, &bad), LW_EUSAGE,
          "n-corruptions -1");
    LW_CLEANUP(lw_queries_clear) lw_queries q = queries_of(bare, "in(italy,rome).");
    const lw_queries *sets[] = {&q};
    fails(lw_corruptor_new(bare, &(lw_corrupt_options){.filtered = true, .memory = 10}, sets, 1,
                           &bad),
          LW_EUSAGE, "positives to filter by");
}

/* A random knowledge base of 3 predicates and about 40 constants in up to 3 domains. */
static lw_kb *random_kb(lw_rng_key key, uint32_t round, lw_queries *extra)
{
    LW_CLEANUP(lw_str_clear) lw_str facts = {0}, domains = {0}, test = {0};
    enum { CONSTANTS = 40, FACTS = 150 };
    for (uint32_t i = 0; i < FACTS; i++) {
        const char *form = "p%u(c%u,c%u).\n";
        uint32_t p = lw_rng_below(key, round, i, 0, 3),
                 a = lw_rng_below(key, round, i, 1, CONSTANTS),
                 b = lw_rng_below(key, round, i, 2, CONSTANTS / 4);
        lw_str_addf(&facts, form, p, a, b);
        lw_str_addf(&test, form, p, b, a);
    }
    for (uint32_t c = 0; c < CONSTANTS; c++)
        lw_str_addf(&facts, "p0(c%u,c%u).\n", c, c);
    for (uint32_t d = 0; d < round % 4; d++) { /* some constants are in none, some in two */
        lw_str_addf(&domains, "d%u", d);
        for (uint32_t c = d; c < CONSTANTS; c += 2 + d)
            lw_str_addf(&domains, " c%u", c);
        lw_str_add(&domains, " c3\n");
    }
    lw_kb *kb = kb_with(lw_str_c(&facts), lw_str_c(&domains));
    *extra = queries_of(kb, lw_str_c(&test));
    return kb;
}

static bool is_positive(const lw_kb *kb, const lw_queries *extra, lw_atom a)
{
    for (int32_t i = 0; i < kb->facts.n; i++)
        if (lw_atom_eq(kb->facts.atom[i], a))
            return true;
    for (int32_t i = 0; i < extra->n; i++)
        if (lw_atom_eq(extra->atom[i], a))
            return true;
    return false;
}

/* Whether constant c may stand for `was`. */
static bool fits(const lw_kb *kb, int32_t c, int32_t was)
{
    const lw_domains *d = &kb->domains;
    int32_t domain = d->names.n > 0 ? d->of[was] : 0;
    for (int32_t i = d->names.n > 0 ? d->first[domain] : 0; domain && i < d->first[domain + 1]; i++)
        if (d->member[i] == c)
            return c != was;
    return domain == 0 && c != was;
}

/* What the obvious lists of this side are: all of them, marked in `may` [n_constants + 1]. */
static int64_t obvious(const lw_kb *kb, const lw_queries *extra, const lw_corrupt_options *o,
                       lw_atom q, int side, bool *may)
{
    int64_t n = 0;
    for (int32_t c = 1; c <= kb->n_constants; c++) {
        lw_atom a = q;
        a.arg[side] = c;
        may[c] = fits(kb, c, q.arg[side]) && !(o->filtered && is_positive(kb, extra, a));
        n += may[c];
    }
    return n;
}

static void check_stream(const lw_kb *kb, const lw_queries *extra, const lw_corrupt_options *o,
                         const lw_corruptor *c, lw_atom q, lw_corrupt_mode mode)
{
    bool may[2][200];
    int64_t have[2], want[2], got[2] = {0, 0}, missing = 0;
    lw_corruptions s;
    lw_atom a, before = {0};
    for (int side = 0; side < 2; side++) {
        int64_t n = mode == LW_CORRUPT_BOTH ? (o->n + 1 - side) / 2 : o->n;
        bool used = mode == LW_CORRUPT_BOTH || side == (int)mode;
        have[side] = obvious(kb, extra, o, q, side, may[side]);
        want[side] = !used ? 0 : o->n == 0 ? have[side] : LW_MIN(n, have[side]);
        missing += used && o->n > 0 ? n - want[side] : 0;
    }
    lw_corruptions_begin(c, q, mode, &s);
    for (; lw_corruptions_next(c, &s, &a); before = a) {
        int side = a.arg[0] != q.arg[0] ? 0 : 1;
        assert_true(a.p == q.p && a.arg[1 - side] == q.arg[1 - side]);
        assert_true(may[side][a.arg[side]]); /* fits, is unknown, and is new */
        may[side][a.arg[side]] = false;
        assert_true(side == 1 || got[1] == 0); /* heads first */
        if (o->n == 0 && got[side] > 0)
            assert_true(a.arg[side] > before.arg[side]);
        got[side]++;
    }
    assert_int_equal(got[0], want[0]);
    assert_int_equal(got[1], want[1]);
    assert_int_equal(s.given, got[0] + got[1]);
    assert_int_equal(s.missing, missing);
    assert_false(lw_corruptions_next(c, &s, &a));
}

static void streams_are_the_obvious_lists(void **state)
{
    (void)state;
    const lw_rng_key key = lw_rng_key_of(4, lw_hash_name("corrupt"));
    int64_t streams = 0;
    for (uint32_t round = 0; round < 24; round++) {
        lw_queries extra = {0};
        LW_CLEANUP(lw_kb_free) lw_kb *kb = random_kb(key, round, &extra);
        const lw_queries *sets[] = {&extra};
        for (int64_t n = 0; n < 60;
             n += 1 + (int64_t)lw_rng_below(key, round, (uint64_t)n, 9, 20)) {
            LW_CLEANUP(lw_corruptor_free) lw_corruptor *c = NULL;
            const lw_corrupt_options o = {.n = n, .filtered = (round + n) % 3 > 0, .seed = round};
            ok(lw_corruptor_new(kb, &o, sets, 1, &c));
            for (int32_t i = 0; i < extra.n; i += 7)
                for (int mode = 0; mode < LW_CORRUPT_MODES; mode++, streams++)
                    check_stream(kb, &extra, &o, c, extra.atom[i], (lw_corrupt_mode)mode);
        }
        lw_queries_clear(&extra);
    }
    print_message("%lld streams\n", (long long)streams);
    assert_true(streams > 5000);
}

/* Drawn corruptions: every constant equally often, and others with another seed. */
static void draws_are_uniform(void **state)
{
    (void)state;
    enum { ROUNDS = 4000, N = 8 };
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    for (int i = 0; i < 33; i++)
        lw_str_addf(&facts, "p(c%d,c%d).\n", i, i);
    LW_CLEANUP(lw_kb_free) lw_kb *kb = kb_with(lw_str_c(&facts), "");
    int64_t seen[2][40] = {{0}};
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        LW_CLEANUP(lw_corruptor_free) lw_corruptor *c = NULL;
        lw_corruptions s;
        lw_atom a, q = {1, {5, 9}};
        ok(lw_corruptor_new(kb, &(lw_corrupt_options){.n = N, .seed = seed}, NULL, 0, &c));
        lw_corruptions_begin(c, q, LW_CORRUPT_HEAD, &s);
        while (lw_corruptions_next(c, &s, &a))
            seen[0][a.arg[0]]++;
        for (uint64_t row = 0; row < N; row++) {
            assert_true(lw_corrupt_one(c, q, 1, lw_rng_key_of(seed, 1), 0, row, &a));
            assert_true(a.arg[0] == 5 && a.arg[1] != 9);
            seen[1][a.arg[1]]++;
        }
    }
    for (int k = 0; k < 2; k++)
        for (int32_t c = 1; c <= 33; c++) {
            double mean = ROUNDS * N / 32.0; /* six standard deviations of a binomial */
            if (c == (k ? 9 : 5))
                assert_int_equal(seen[k][c], 0);
            else
                assert_true(fabs((double)seen[k][c] - mean) < 6 * sqrt(mean));
        }
}

/* One corruption at a time: never a positive while something else is left, then none. */
static void one_is_found_when_there_is_one(void **state)
{
    (void)state;
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    for (int i = 0; i < 300; i++)
        if (i != 123)
            lw_str_addf(&facts, "p(a,c%03d).\nq(a,c%03d).\n", i, i);
    lw_str_add(&facts, "q(a,c123).\nq(a,a).\np(a,a).\n");
    LW_CLEANUP(lw_kb_free) lw_kb *kb = kb_with(lw_str_c(&facts), "");
    LW_CLEANUP(lw_corruptor_free) lw_corruptor *c = NULL;
    const lw_rng_key key = lw_rng_key_of(1, 2);
    ok(lw_corruptor_new(kb, &(lw_corrupt_options){.filtered = true}, NULL, 0, &c));
    lw_atom p = atom_of(kb, "p(a,c007)"), q = atom_of(kb, "q(a,c007)"), out;
    for (uint64_t row = 0; row < 50; row++) {
        assert_true(lw_corrupt_one(c, p, 1, key, 3, row, &out));
        assert_string_equal(text_of(kb, &out, 1), "p(a,c123)");
        assert_false(lw_corrupt_one(c, q, 1, key, 3, row, &out));
        assert_true(lw_atom_eq(out, q));
        assert_true(lw_corrupt_one(c, q, 0, key, 3, row, &out));
        assert_true(out.arg[0] != q.arg[0]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_cases_by_hand),
        cmocka_unit_test(domains_hold),
        cmocka_unit_test(streams_are_the_obvious_lists),
        cmocka_unit_test(draws_are_uniform),
        cmocka_unit_test(one_is_found_when_there_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
