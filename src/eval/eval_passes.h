/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What many noisy passes say of a picture, and whether saying it again gives the same answer.
 *
 * x [T][D]: the features of one picture in T passes ("pre"); u = x / |x| ("post"). Everything is
 * computed in f64. Scores of several T are those of the first rows: nested ones are the same bits as
 * separate ones.
 *
 *   trace_pre, trace_post   mean over dimensions of the variance over passes, divisor T
 *   angular_var             variance (divisor T - 1) of the angle between u and the mean of u
 *   max_dim_var, norm_var   the largest dimension's variance, that of |x| (T - 1)
 *   mean_cosine_dev         1 - mean cosine to the mean of u
 *   top_eigenvalue, effective_rank (sum l)^2 / sum l^2, spectral_entropy, top1_ratio
 *                           of the eigenvalues l of the covariance (T - 1), through the T x T Gram matrix
 *   weighted_trace_pre      variances (T - 1) weighted by how much each dimension's mean varies from
 *                           picture to picture; topk64_trace_pre: mean over the 64 that vary most
 */
#ifndef LW_EVAL_PASSES_H
#define LW_EVAL_PASSES_H

#include <stdbool.h>
#include <stdint.h>

typedef enum lw_pass_score {
    LW_PASS_TRACE_PRE,
    LW_PASS_TRACE_POST,
    LW_PASS_ANGULAR_VAR,
    LW_PASS_MAX_DIM_VAR,
    LW_PASS_NORM_VAR,
    LW_PASS_MEAN_COSINE_DEV,
    LW_PASS_TOP_EIGENVALUE,
    LW_PASS_EFFECTIVE_RANK,
    LW_PASS_SPECTRAL_ENTROPY,
    LW_PASS_TOP1_RATIO,
    LW_PASS_WEIGHTED_TRACE, /* of all pictures at once: lw_pass_scores_across */
    LW_PASS_TOPK_TRACE,
    LW_PASS_SCORES
} lw_pass_score;
extern const char *const lw_pass_score_name[LW_PASS_SCORES];

enum { LW_PASS_EIGS = 10, LW_PASS_TOPK = 64 };

/* The covariance (T - 1) of a picture's passes. */
typedef struct lw_pass_geometry {
    double trace;              /* over D */
    double offdiag;            /* Frobenius norm beside the diagonal over that of all */
    double eigs[LW_PASS_EIGS]; /* the largest, downwards */
} lw_pass_geometry;

/* out: the scores of one picture, but those across pictures; mean, variance (T - 1) [dim];
 * geometry [2], pre and post, or NULL. LW_EUSAGE: fewer than 2 passes; LW_ENUMERIC: a feature is not
 * finite. */
int lw_pass_scores(const float *x, int32_t passes, int32_t dim, double out[LW_PASS_SCORES],
                   double *mean, double *variance, lw_pass_geometry *geometry);
/* Adds the two scores that need all pictures: mean, variance [n][dim], scores [n]. */
int lw_pass_scores_across(const double *mean, const double *variance, int64_t n, int32_t dim,
                          double (*scores)[LW_PASS_SCORES]);

/* ---- is it the same again? -------------------------------------------------------------------- */

/*
 * Of scores [trials][n]:
 *   signal  variance (n - 1) over pictures of the mean over trials
 *   noise   mean over pictures of the variance (trials - 1) over trials
 *   snr     signal / noise
 *   icc     (trials signal - noise) / (trials signal + (trials - 1) noise): ICC(1)
 *   rho     Spearman's rank correlation of every pair of trials: median, quartiles
 */
typedef struct lw_reliability {
    int32_t trials;
    int64_t n;
    double signal, noise, snr, icc, rho_median, rho_iqr, rho_q25, rho_q75;
} lw_reliability;
int lw_reliability_of(const double *scores, int32_t trials, int64_t n, lw_reliability *out);
/* usable: rho >= .8, snr >= 2, icc >= .75; failed: rho < .6 or snr < 1; else marginal;
 * insufficient_trials: some are not numbers. */
const char *lw_reliability_status(const lw_reliability *r);

/* Spearman's rank correlation, ties at their mean rank; NaN when one side does not vary. LW_ENOMEM. */
int lw_spearman(const double *a, const double *b, int64_t n, double *out);

#endif
