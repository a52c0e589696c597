/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluations beside the obvious one: every candidate walked alone, all scores kept, ranks by
 * counting. Equal for any batch, cache, memory limit and number of threads; what is saved says the
 * same; interrupted ones have whole lists with the same numbers; bad scores and limits are errors.
 */
#include <math.h>

#include "models/proof/models_policy.h"
#include "prove/prove_eval_obvious.h"
#include "jobs/prove/rank/prove_eval_tables.h"
#include "session/session_device.h"
#include "kernels/kernels.h"
#include "jobs/prove/bench/prove_bench_job.h"

enum { PEOPLE = 40 };

static lw_kb *relatives(void)
{
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    for (int i = 0; i < PEOPLE; i++) {
        lw_str_addf(&facts, "parent(p%d,p%d).\n", i, (i + 1) % PEOPLE);
        lw_str_addf(&facts, "parent(p%d,p%d).\n", i, (i * 7 + 3) % PEOPLE);
        lw_str_addf(&facts, "near(p%d,p%d).\n", i, (i * 3 + 1) % PEOPLE);
    }
    return kb_of(lw_str_c(&facts), "r0:1:parent(x,y) -> older(x,y)\n"
                                   "r1:1:parent(x,z), older(z,y) -> older(x,y)\n"
                                   "r2:1:near(y,x) -> near(x,y)\n"
                                   "r3:1:near(x,z), older(y,z) -> near(x,y)\n");
}

static lw_queries some_queries(const lw_kb *kb)
{
    lw_problems problems = {0};
    lw_queries q = {0};
    ok(lw_queries_parse(kb, &(lw_query_options){.split = "test"},
                        lw_span_of("older(p0,p1).\nolder(p3,p5).\nolder(p9,p30).\nnear(p4,p7).\n"
                                   "near(p1,p4).\nolder(p20,p23).\nnear(p5,p5).\nolder(p6,p5).\n"
                                   "near(p30,p31).\n"),
                        lw_span_of("older(p0,p1) 1\nolder(p3,p5) 3\nnear(p30,p31) -1\n"), &problems,
                        &q));
    lw_problems_clear(&problems);
    assert_int_equal(q.n, QUERIES);
    return q;
}

/* ---- an evaluation --------------------------------------------------------------------------- */

typedef struct bench {
    lw_kb *kb;
    lw_queries q;
    const lw_queries *known[1];
    lw_store *store;
    lw_policy_config config;
    lw_policy_source source;
} bench;

static void bench_open(bench *b, bool network)
{
    *b = (bench){.kb = relatives()};
    b->q = some_queries(b->kb);
    b->known[0] = &b->q;
    if (!network)
        return;
    b->config = lw_policy_default(b->kb->n_constants, lw_kb_endf(b->kb));
    b->config.embed = 10;
    b->config.hidden = 16;
    b->config.blocks = 1;
    ok(lw_store_new(true, &b->store));
    ok(lw_policy_declare(&b->config, b->store));
    ok(lw_policy_formula(&b->config, 3, b->store));
    b->source = (lw_policy_source){&b->config, b->store};
}

static void bench_close(bench *b)
{
    lw_queries_clear(&b->q);
    lw_store_free(&b->store);
    lw_kb_free(&b->kb);
}

static int evaluate(bench *b, const lw_prove_eval_options *o, int threads, const lw_observer *obs,
                    lw_prove_eval *e)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    ok(lw_session_device(threads, &dev));
    return lw_prove_eval_run(b->kb, &b->q, b->known, 1, dev, &b->source, o, obs, e);
}

/* Beside the obvious evaluation; also the area under the curve of all candidates together. */
static void compare(bench *b, const lw_prove_eval_options *o, const lw_prove_eval *e)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    LW_CLEANUP(lw_corruptor_free) lw_corruptor *c = NULL;
    lw_walks_options wo = o->walks;
    obvious all;
    pooled of = {.n = 0};
    wo.fixed_batch_size = wo.rows = 1;
    wo.cache_bytes = 0;
    ok(lw_session_device(1, &dev));
    ok(lw_walks_new(b->kb, dev, &b->source, &wo, &w));
    ok(lw_corruptor_new(b->kb, &o->corrupt, b->known, 1, &c));
    int64_t candidates = 0, ended = 0;
    for (int32_t i = 0; i < e->n_lists; i++) {
        const lw_prove_list *l = &e->list[i];
        walk_list(w, c, o, l->query, l->mode, b->q.atom[l->query], &all);
        compare_list(&all, l);
        candidates += all.n;
        of.positive[of.n++] = all.score[0];
        for (int64_t k = 1; k < all.n; k++)
            of.negative[of.m++] = all.score[k];
        if (of.n == QUERIES) { /* lists are by mode */
            assert_true(fabs(plain_area(&of) - e->auc_pr[i / QUERIES]) < 1e-12);
            of.n = of.m = 0;
        }
    }
    assert_int_equal(e->candidates, candidates);
    assert_int_equal(e->whole, e->n_lists);
    assert_false(e->interrupted);
    for (int32_t d = 0; d < e->depths; d++)
        ended += e->positives.at[d] + e->negatives.at[d];
    assert_int_equal(ended, candidates);
    assert_int_equal(e->walks.query_steps, lw_walks_counted(w)->query_steps);
}

static void same(const lw_prove_eval *a, const lw_prove_eval *b)
{
    assert_int_equal(a->n_lists, b->n_lists);
    for (int32_t i = 0; i < a->n_lists; i++) {
        const lw_prove_list *x = &a->list[i], *y = &b->list[i];
        assert_true(x->score == y->score && x->end == y->end && x->depth == y->depth);
        assert_true(x->rank.higher == y->rank.higher && x->rank.ties == y->rank.ties);
        assert_true(x->negatives == y->negatives && x->known == y->known);
        assert_true(x->provable == y->provable && x->ceiling.higher == y->ceiling.higher);
    }
    for (int32_t m = 0; m < a->n_modes; m++)
        assert_true(a->auc_pr[m] == b->auc_pr[m]);
    assert_memory_equal(a->negatives.at, b->negatives.at, (size_t)a->depths * sizeof(int64_t));
}

static const lw_prove_eval_options *variant(lw_prove_eval_options *o, int k)
{
    *o = lw_prove_eval_defaults();
    o->corrupt = (lw_corrupt_options){.n = k % 3 == 0 ? 0 : 9, .filtered = k % 2 == 0, .seed = 5};
    o->mode[LW_CORRUPT_BOTH] = k % 2 == 0;
    o->walks.seed = 11;
    o->walks.rows = 16;
    o->least_model_memory = 16 << 20;
    if (k >= 4)
        o->kge = (lw_prove_kge){
            .name = "test", .log_score = log_score, .weight = 2, .bonus = 1, .penalty = 0.5};
    return o;
}

/* And in two stages. The tests' networks are small, so that some fall back. */
static void ranks_in_two_stages(bench *b, const lw_prove_eval_options *ranks_only,
                                const lw_prove_eval *e)
{
    LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval f = {0};
    lw_prove_eval_options p = *ranks_only;
    p.two_stage = true;
    ok(evaluate(b, &p, 3, NULL, &f));
    assert_int_equal(f.candidates, e->candidates);
    assert_true(f.two_stage.on == (b->store != NULL));
    for (int32_t i = 0; i < e->n_lists; i++) {
        assert_true(f.list[i].whole && f.list[i].score == e->list[i].score);
        assert_memory_equal(&f.list[i].rank, &e->list[i].rank, sizeof(lw_rank));
    }
}

/* The same ranks from fewer steps. Returns the walks that were saved, in part or whole. */
static int64_t ranks_alone(bench *b, const lw_prove_eval_options *o, const lw_prove_eval *e)
{
    LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval f = {0};
    lw_prove_eval_options p = *o;
    p.ranks_only = true;
    p.memory_limit = 2 * lw_peak_rss() + ((size_t)64 << 20); /* a sanitizer keeps what was freed */
    ok(evaluate(b, &p, 2, NULL, &f));
    assert_int_equal(f.candidates, e->candidates);
    for (int32_t i = 0; i < e->n_lists; i++) {
        assert_true(f.list[i].whole);
        assert_memory_equal(&f.list[i].rank, &e->list[i].rank, sizeof(lw_rank));
    }
    assert_true(isnan(f.auc_pr[0]));
    assert_true(isnan(lw_prove_eval_means(&f, 0, -1, NULL, NULL).false_proved));
    assert_true(f.walks.query_steps <= e->walks.query_steps);
    ranks_in_two_stages(b, &p, e);
    return f.unwalked + f.negatives.end[LW_PROOF_ABANDONED];
}

static void evaluations_are_the_obvious_one(void **state)
{
    (void)state;
    int64_t proved = 0, candidates = 0, saved = 0;
    for (int k = 0; k < 12; k++) {
        bench b;
        lw_prove_eval_options o, p;
        LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval e = {0}, f = {0};
        bench_open(&b, k % 6 >= 3);
        ok(evaluate(&b, variant(&o, k % 6), 1, NULL, &e));
        compare(&b, &o, &e);
        p = o;
        p.walks.fixed_batch_size = 1 + k * 5;
        p.walks.rows = 1 + k * 3;
        p.walks.cache_bytes = k % 4 == 3 ? (size_t)1 << 40 : (size_t)k << 10;
        p.most_waiting = k % 2; /* 1: the stream stops until all queries are known */
        p.memory_limit = 2 * lw_peak_rss() + ((size_t)64 << 20);
        ok(evaluate(&b, &p, 3, NULL, &f));
        same(&e, &f);
        assert_true(f.bytes < p.memory_limit && f.used.cache_bytes < p.memory_limit);
        saved += ranks_alone(&b, &p, &e);
        proved += e.positives.end[LW_PROOF_PROVED] + e.negatives.end[LW_PROOF_PROVED];
        candidates += e.candidates;
        bench_close(&b);
    }
    print_message("%lld candidates, %lld proved; for ranks %lld are left early or not begun\n",
                  (long long)candidates, (long long)proved, (long long)saved);
    assert_true(saved > 100);
    assert_true(proved > 100 && candidates - proved > 100);
}

/* A chain: x is older than all behind it. Of most queries and corruptions there is no proof. */
static void the_ceiling_is_where_finding_every_proof_ranks(void **state)
{
    (void)state;
    enum { CHAIN = 12 };
    LW_CLEANUP(lw_str_clear) lw_str facts = {0};
    LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval e = {0};
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    lw_problems problems = {0};
    lw_queries q = {0};
    lw_prove_eval_options o = lw_prove_eval_defaults();
    for (int i = 0; i + 1 < CHAIN; i++)
        lw_str_addf(&facts, "parent(p%02d,p%02d).\n", i, i + 1);
    LW_CLEANUP(lw_kb_free)
    lw_kb *kb = kb_of(lw_str_c(&facts), "r0:1:parent(x,y) -> older(x,y)\n"
                                        "r1:1:parent(x,z), older(z,y) -> older(x,y)\n"
                                        "r2:1:older(x,y) -> parent(x,y)\n");
    ok(lw_queries_parse(kb, &(lw_query_options){.split = "test"},
                        lw_span_of("older(p02,p04).\nolder(p07,p03).\nparent(p04,p05).\n"),
                        lw_span_of(""), &problems, &q));
    o.corrupt = (lw_corrupt_options){.n = 0};
    o.walks.env.end_proof_action = false; /* more walks prove */
    o.least_model_memory = 1 << 20;
    ok(lw_session_device(1, &dev));
    ok(lw_prove_eval_run(kb, &q, NULL, 0, dev, NULL, &o, NULL, &e));
    /* head modes: older(x,p04) for 3 other x; older(x,p03) for 3; parent(x,p05): 4 others prove, and
     * parent(p04,p05) without itself does not: no other rule leads to it */
    static const bool provable[] = {true, false, false};
    static const int64_t head[] = {3, 3, 4}, tail[] = {8, 4, 6};
    assert_int_equal(e.n_lists, 6);
    assert_int_equal(e.least_atoms, (CHAIN - 1) * CHAIN);
    for (int32_t i = 0; i < 6; i++) {
        const lw_prove_list *l = &e.list[i];
        const int64_t proved = (l->mode == LW_CORRUPT_HEAD ? head : tail)[l->query];
        assert_int_equal(l->provable, provable[l->query]);
        assert_int_equal(l->provable ? l->ceiling.ties : l->ceiling.higher, proved);
        assert_int_equal(l->ceiling.higher + l->ceiling.ties + l->ceiling.lower, CHAIN - 1);
    }
    int64_t unwalked = 0, saved = 0;
    for (o.walks.seed = 0; o.walks.seed < 8; o.walks.seed++) {
        LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval whole = {0}, without = {0}, with = {0};
        lw_prove_eval_options p = o;
        ok(lw_prove_eval_run(kb, &q, NULL, 0, dev, NULL, &p, NULL, &whole));
        p.ranks_only = true;
        ok(lw_prove_eval_run(kb, &q, NULL, 0, dev, NULL, &p, NULL, &with));
        p.least_model_memory = 0;
        ok(lw_prove_eval_run(kb, &q, NULL, 0, dev, NULL, &p, NULL, &without));
        for (int32_t i = 0; i < 6; i++) {
            assert_memory_equal(&with.list[i].rank, &whole.list[i].rank, sizeof(lw_rank));
            assert_memory_equal(&without.list[i].rank, &whole.list[i].rank, sizeof(lw_rank));
        }
        assert_int_equal(with.candidates, whole.candidates);
        unwalked += with.unwalked;
        saved += without.walks.query_steps - with.walks.query_steps;
    }
    print_message("%lld not walked, %lld choices less\n", (long long)unwalked, (long long)saved);
    assert_true(unwalked > 0 && saved > 500);
    lw_queries_clear(&q);
    lw_problems_clear(&problems);
}

static void modes_and_means(void **state)
{
    (void)state;
    bench b;
    lw_prove_eval_options o;
    LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval e = {0};
    bench_open(&b, false);
    ok(evaluate(&b, variant(&o, 0), 1, NULL, &e)); /* all corruptions, three modes */
    assert_int_equal(e.n_modes, 3);
    double mrr[3], all = 0;
    for (int m = 0; m < 3; m++) {
        double sum = 0;
        for (int32_t i = 0; i < QUERIES; i++)
            sum += 1 / lw_prove_rank(&e.list[m * QUERIES + i], LW_RANK_PESSIMISTIC);
        mrr[m] = lw_prove_eval_means(&e, LW_RANK_PESSIMISTIC, m, NULL, NULL).rank.mrr;
        assert_true(fabs(mrr[m] - sum / QUERIES) < 1e-15);
        all += mrr[m] / 3;
    }
    lw_prove_means m = lw_prove_eval_means(&e, LW_RANK_PESSIMISTIC, -1, NULL, NULL);
    assert_true(fabs(m.rank.mrr - all) < 1e-15);
    assert_int_equal(m.lists, 3 * QUERIES);
    int64_t corruptions = 0, grouped = 0;
    for (int32_t i = 0; i < e.n_lists; i++)
        corruptions += e.list[i].negatives;
    assert_int_equal(m.negatives, corruptions);
    const lw_prove_context c = {.kb = b.kb, .queries = &b.q, .o = &o};
    for (int by = 0; by < LW_PROVE_BYS; by++) {
        LW_CLEANUP(lw_free) lw_prove_group *g = NULL;
        int32_t n;
        ok(lw_prove_groups(&c, &e, (lw_prove_by)by, &g, &n));
        for (int32_t i = grouped = 0; i < n; i++)
            grouped += g[i].m.lists;
        assert_int_equal(grouped, 3 * QUERIES);
        if (by == LW_PROVE_BY_PUBLISHED) {
            assert_int_equal(n, 4);
            assert_string_equal(lw_prove_group_name(&g[0]), "1");
            assert_string_equal(lw_prove_group_name(&g[1]), "3");
            assert_string_equal(lw_prove_group_name(&g[2]), "no proof");
            assert_string_equal(lw_prove_group_name(&g[3]), "not annotated");
            assert_int_equal(g[3].m.lists, 3 * (QUERIES - 3));
        }
    }
    bench_close(&b);
}

/* Every row of the CSV is the candidate's own walk. */
static void saved_scores_are_all_of_them(void **state)
{
    (void)state;
    bench b;
    lw_prove_eval_options o;
    LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval e = {0};
    LW_CLEANUP(lw_json_drop) json_t *rows = NULL;
    char dir[] = "/tmp/leeway-prove-XXXXXX", path[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/scores.csv", dir);
    bench_open(&b, true);
    variant(&o, 1);
    o.save_scores = path;
    ok(evaluate(&b, &o, 2, NULL, &e));
    ok(lw_csv_load(path, &rows));
    assert_int_equal(json_array_size(rows), 1 + e.candidates);
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    LW_CLEANUP(lw_walks_free) lw_walks *w = NULL;
    LW_CLEANUP(lw_corruptor_free) lw_corruptor *c = NULL;
    ok(lw_session_device(1, &dev));
    ok(lw_walks_new(b.kb, dev, &b.source, &o.walks, &w));
    ok(lw_corruptor_new(b.kb, &o.corrupt, b.known, 1, &c));
    size_t row = 1;
    for (int32_t i = 0; i < e.n_lists; i++) {
        obvious all;
        walk_list(w, c, &o, e.list[i].query, e.list[i].mode, b.q.atom[e.list[i].query], &all);
        for (int64_t k = 0; k < all.n; k++, row++) {
            const json_t *r = json_array_get(rows, row);
            lw_atom a = all.of[k].walk.query;
            assert_string_equal(json_string_value(json_array_get(r, 3)),
                                b.kb->predicates.name[a.p]);
            assert_string_equal(json_string_value(json_array_get(r, 5)),
                                b.kb->constants.name[a.arg[1]]);
            assert_true(strtod(json_string_value(json_array_get(r, 6)), NULL) == all.score[k]);
            assert_string_equal(json_string_value(json_array_get(r, 7)),
                                lw_prove_end_name(all.of[k].end));
            assert_int_equal(atoi(json_string_value(json_array_get(r, 8))), all.of[k].depth);
        }
    }
    assert_int_equal(row, json_array_size(rows));
    ok(lw_remove_tree(dir));
    lw_walks_free(&w); /* before its store */
    bench_close(&b);
}

static bool stop_soon(void *self)
{
    return --*(int *)self < 0;
}

static void interrupted_lists_are_whole_or_left_out(void **state)
{
    (void)state;
    bench b;
    lw_prove_eval_options o;
    LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval e = {0};
    bench_open(&b, false);
    variant(&o, 0);
    o.walks.fixed_batch_size = 4;
    ok(evaluate(&b, &o, 1, NULL, &e));
    bool some = false;
    for (int after = 0; after < 3000; after += 1 + after / 2) {
        LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval part = {0};
        int left = after;
        const lw_observer obs = {.self = &left, .should_stop = stop_soon};
        ok(evaluate(&b, &o, 1, &obs, &part));
        assert_true(part.interrupted == (part.whole < part.n_lists));
        some |= part.interrupted && part.whole > 0;
        assert_true(!part.interrupted || isnan(part.auc_pr[0]));
        for (int32_t i = 0; i < e.n_lists; i++)
            if (part.list[i].whole) {
                assert_true(part.list[i].score == e.list[i].score);
                assert_memory_equal(&part.list[i].rank, &e.list[i].rank, sizeof(lw_rank));
            }
    }
    assert_true(some);
    bench_close(&b);
}

static int no_number(void *self, const lw_atom *atom, int32_t n, float *out)
{
    (void)self, (void)atom;
    for (int32_t i = 0; i < n; i++)
        out[i] = NAN;
    return 0;
}

static void errors_say_what_is_wrong(void **state)
{
    (void)state;
    bench b;
    lw_prove_eval_options o;
    LW_CLEANUP(lw_prove_eval_clear) lw_prove_eval e = {0};
    bench_open(&b, true);
    variant(&o, 1);
    o.memory_limit = 1 << 20;
    fails(evaluate(&b, &o, 1, NULL, &e), LW_ENOMEM, "a memory limit of 1 MiB");
    variant(&o, 1);
    o.mode[0] = o.mode[1] = o.mode[2] = false;
    fails(evaluate(&b, &o, 1, NULL, &e), LW_EUSAGE, "corruption-modes");
    variant(&o, 1);
    o.ranks_only = true;
    o.save_scores = "scores.csv";
    fails(evaluate(&b, &o, 1, NULL, &e), LW_EUSAGE, "ranks-only");
    variant(&o, 1);
    o.two_stage = true;
    fails(evaluate(&b, &o, 1, NULL, &e), LW_EUSAGE, "two-stage");
    variant(&o, 1);
    o.penalty = -1;
    fails(evaluate(&b, &o, 1, NULL, &e), LW_EUSAGE, "must not be negative");
    variant(&o, 1);
    o.rank_rule = 3;
    fails(evaluate(&b, &o, 1, NULL, &e), LW_EUSAGE, "rank rule");
    variant(&o, 1);
    o.corrupt.domains = LW_DOMAINS_YES;
    fails(evaluate(&b, &o, 1, NULL, &e), LW_EUSAGE, "domain2constants.txt");
    variant(&o, 1);
    o.kge = (lw_prove_kge){.log_score = no_number, .weight = 1};
    fails(evaluate(&b, &o, 1, NULL, &e), LW_ENUMERIC, "is not a number");
    b.q.n = 0;
    variant(&o, 1);
    fails(evaluate(&b, &o, 1, NULL, &e), LW_EUSAGE, "no query");
    bench_close(&b);
}

/* Walks of up to two steps were faster than those of one: no step takes less than nothing. */
static void times_of_steps_do_not_go_back(void **state)
{
    (void)state;
    lw_prove_bench_step s[3] = {{.all.min = 5}, {.all.min = 4}, {.all.min = 7}};
    lw_prove_bench_step_times(s, 3);
    assert_true(s[0].ms == 4 && s[1].ms == 0 && s[2].ms == 3);
    assert_true(s[0].all.min == 4 && s[1].all.min == 4 && s[2].all.min == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_of_steps_do_not_go_back),
        cmocka_unit_test(evaluations_are_the_obvious_one),
        cmocka_unit_test(the_ceiling_is_where_finding_every_proof_ranks),
        cmocka_unit_test(modes_and_means),
        cmocka_unit_test(saved_scores_are_all_of_them),
        cmocka_unit_test(interrupted_lists_are_whole_or_left_out),
        cmocka_unit_test(errors_say_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
