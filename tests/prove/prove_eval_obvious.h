/* SPDX-License-Identifier: Apache-2.0 */
/* The obvious evaluation: every candidate of a list walked alone, every score kept, ranks by
 * counting, the area under the curve by its definition. For test_prove_eval.c. */
#ifndef LW_TESTS_PROVE_EVAL_OBVIOUS_H
#define LW_TESTS_PROVE_EVAL_OBVIOUS_H
#include "unit/test_proof_util.h"
#include "logic/logic.h"
#include "eval/eval.h"
#include "jobs/prove/walk/prove_walks.h"
#include "jobs/prove/rank/rank_job.h"

enum { QUERIES = 9, MOST = 200 };

typedef struct obvious {
    int64_t n;
    lw_walk_result of[MOST]; /* [0] the query */
    double score[MOST];
} obvious;

typedef struct one {
    const lw_walk *walk;
    bool given;
    lw_walk_result r;
} one;

static bool next_one(void *self, lw_walk *out)
{
    one *o = self;
    if (o->given)
        return false;
    o->given = true;
    *out = *o->walk;
    return true;
}

static int done_one(void *self, const lw_walk_result *r)
{
    ((one *)self)->r = *r;
    return 0;
}

static lw_walk_result walk_alone(lw_walks *w, int64_t id, lw_atom a)
{
    const lw_walk walk = {.id = id, .query = a};
    one o = {.walk = &walk};
    ok(lw_walks_run(w, next_one, done_one, &o));
    assert_int_equal(o.r.walk.id, id);
    return o.r;
}

static double plausibility(lw_atom a)
{
    return -0.25 * (double)((a.arg[0] * 7 + a.arg[1] * 3) % 5);
}

static int log_score(void *self, const lw_atom *atom, int32_t n, float *out)
{
    (void)self;
    for (int32_t i = 0; i < n; i++)
        out[i] = (float)plausibility(atom[i]);
    return 0;
}

static void walk_list(lw_walks *w, const lw_corruptor *c, const lw_prove_eval_options *o,
                      int32_t query, int mode, lw_atom a, obvious *out)
{
    lw_corruptions s;
    lw_atom candidate = a;
    out->n = 0;
    lw_corruptions_begin(c, a, (lw_corrupt_mode)mode, &s);
    do {
        int64_t id = ((int64_t)query * 3 + mode) << 32 | out->n;
        lw_walk_result r = walk_alone(w, id, candidate);
        bool proved = r.end == LW_PROOF_PROVED;
        assert_true(out->n < MOST);
        out->of[out->n] = r;
        out->score[out->n++] = o->kge.log_score ? 2 * plausibility(candidate) + (proved ? 1 : -0.5)
                                                : r.log_prob - (proved ? 0 : 100);
    } while (lw_corruptions_next(c, &s, &candidate));
}

static void compare_list(const obvious *all, const lw_prove_list *l)
{
    int64_t higher = 0, ties = 0, proved = 0;
    for (int64_t i = 1; i < all->n; i++) {
        higher += all->score[i] > all->score[0];
        ties += all->score[i] == all->score[0];
        proved += all->of[i].end == LW_PROOF_PROVED;
    }
    assert_true(l->whole);
    assert_int_equal(l->negatives, all->n - 1);
    assert_int_equal(l->rank.higher, higher);
    assert_int_equal(l->rank.ties, ties);
    assert_int_equal(l->rank.lower, all->n - 1 - higher - ties);
    assert_int_equal(l->proved, proved);
    assert_true(l->score == all->score[0]);
    assert_int_equal(l->end, all->of[0].end);
    assert_int_equal(l->depth, all->of[0].depth);
    assert_true(lw_prove_rank(l, LW_RANK_REALISTIC) == 1 + (double)higher + 0.5 * (double)ties);
}

/* All scores of one mode, for the area under its curve by the definition. */
typedef struct pooled {
    double positive[QUERIES], negative[QUERIES * MOST];
    int64_t n, m;
} pooled;

static double plain_area(const pooled *p)
{
    double sum = 0;
    for (int64_t i = 0; i < p->n; i++) {
        double hits = 0, all = 0;
        for (int64_t k = 0; k < p->n; k++)
            hits += p->positive[k] >= p->positive[i];
        for (int64_t k = 0; k < p->m; k++)
            all += p->negative[k] >= p->positive[i];
        sum += hits / (hits + all);
    }
    return sum / (double)p->n;
}

#endif
