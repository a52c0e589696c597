/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How high a true answer stands among false ones. Everything is counted as scores come, in any
 * order, so nothing keeps the scores: ranks are integers until the end.
 */
#ifndef LW_EVAL_RANK_H
#define LW_EVAL_RANK_H

#include <stdbool.h>
#include <stdint.h>

typedef enum lw_rank_rule {
    LW_RANK_REALISTIC,   /* 1 + higher + ties / 2: expected rank when ties are broken by lot */
    LW_RANK_OPTIMISTIC,  /* 1 + higher */
    LW_RANK_PESSIMISTIC, /* 1 + higher + ties */
    LW_RANK_RULES
} lw_rank_rule;

/* "realistic: 1 + higher + ties/2" and so on. */
const char *lw_rank_rule_text(lw_rank_rule rule);
const char *lw_rank_rule_name(lw_rank_rule rule);

/* Negatives beside one positive. */
typedef struct lw_rank {
    int64_t higher, ties, lower;
} lw_rank;

/* Scores that are not a number are LW_ENUMERIC with nothing counted; infinities are scores. */
int lw_rank_add(lw_rank *r, double positive, double negative);
double lw_rank_value(const lw_rank *r, lw_rank_rule rule);

enum { LW_RANK_HITS = 3 };
extern const int32_t lw_rank_hits_at[LW_RANK_HITS]; /* 1, 3, 10 */

/* Sums over queries, in the order of adding. */
typedef struct lw_rank_sum {
    int64_t n;
    double rank, reciprocal;
    int64_t hits[LW_RANK_HITS]; /* ranks of at most 1, 3, 10 */
} lw_rank_sum;

typedef struct lw_rank_metrics {
    int64_t n;
    double mrr, mean_rank, hits[LW_RANK_HITS]; /* means; NaN without queries */
} lw_rank_metrics;

void lw_rank_sum_add(lw_rank_sum *s, double rank);
lw_rank_metrics lw_rank_sum_means(const lw_rank_sum *s);

/*
 * Area under the precision-recall curve as average precision, of all candidates together:
 * the sum over thresholds t (the positives' scores, downwards) of the recall that t adds times the
 * precision at t, where equal scores pass a threshold together. The positives come first, then
 * negatives as a stream; memory is that of the positives.
 */
typedef struct lw_auc_pr lw_auc_pr;
/* n >= 1 scores, copied. LW_ENUMERIC when one is not a number. */
int lw_auc_pr_new(const double *positive, int64_t n, lw_auc_pr **out);
void lw_auc_pr_free(lw_auc_pr **pp);
int lw_auc_pr_add(lw_auc_pr *a, double negative);
double lw_auc_pr_value(const lw_auc_pr *a);

#endif
