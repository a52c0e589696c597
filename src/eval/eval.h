/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval: how good is a set of pictures, how high does a true answer rank? Numbers from features,
 * pixels, a judge's probabilities and scores; knows no network and no file of ours.
 *
 *   eval_stats      mean and covariance of features, streaming         -> lw_stats
 *   eval_frechet    Frechet distance of two Gaussians                  -> one number
 *   eval_frechet_gradient  the same distance as a loss of the rows     -> value and gradient
 *   eval_sliced     sliced Wasserstein distance of two sets of rows    -> one number
 *   eval_resample   rows drawn anew, intervals from replicates         -> an interval
 *   eval_kid        kernel distance (KID)                              -> one number, its spread
 *   eval_score      inception score of a classifier's answers          -> one number, its spread
 *   eval_near       nearest neighbours, close pairs, precision/recall  -> distances, counts
 *   eval_pictures   diversity and colour against real pictures
 *   eval_verdict    what several networks say of several sets, and of cheaters
 *   eval_answers    what a row of logits says
 *   eval_judge      accepted and agreeing shares, class histogram
 *   eval_laplace    uncertainty in one pass, from a network's last layer
 *   eval_rank       ranks of true answers among false ones, average precision
 *   eval_restore    how near a picture is to another, filters that restore it
 *   eval_probe      which class features name, by a linear probe
 *   eval_series     whether the frames of a series decay
 *   eval_zero_shot  how ambiguous a picture is against texts
 *   eval_ranks      rank correlation and area under the curve, with intervals
 *
 * All arrays are dense rows [n][dim]. Sums are in double and in row order, so results do not depend
 * on how rows were cut into calls, on the pool, on the number of threads or on the machine. Only
 * lw_stats, lw_frechet_loss, lw_laplace and lw_auc_pr own memory (new/free); everything else
 * fills the caller's arrays. What a pool runs can be stopped through lw_pool_watch (LW_ESTOPPED).
 */
#ifndef LW_EVAL_H
#define LW_EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "eval/eval_answers.h"
#include "eval/eval_laplace.h"
#include "eval/eval_passes.h"
#include "eval/eval_probe.h"
#include "eval/eval_rank.h"
#include "eval/eval_restore.h"
#include "eval/eval_series.h"
#include "eval/eval_zero_shot.h"

/* ---- statistics of features ---- */

typedef struct lw_stats lw_stats;
int lw_stats_new(int32_t dim, lw_stats **out);
void lw_stats_free(lw_stats **pp);
/* Adds n rows [n][dim]. LW_ENUMERIC (row and column named) for a value that is not finite; rows
 * before it are in. */
int lw_stats_add(lw_pool *pool, lw_stats *s, const float *rows, int64_t n);
int lw_stats_add_f64(lw_stats *s, const double *rows, int64_t n);
int64_t lw_stats_count(const lw_stats *s);
int32_t lw_stats_dim(const lw_stats *s);
/* Takes mean [dim] and covariance [dim][dim] as they are, of n rows (published or stored
 * statistics). */
int lw_stats_from(int32_t dim, int64_t n, const double *mean, const double *cov, lw_stats **out);
/* mean [dim], cov [dim][dim] with divisor n - 1; either may be NULL. LW_EUSAGE below 2 rows. */
int lw_stats_get(const lw_stats *s, double *mean, double *cov);
/* Sum of the variances. */
int lw_stats_trace(const lw_stats *s, double *out);

/* ---- Frechet distance ---- */

/*
 * |m1 - m2|^2 + tr(C1 + C2 - 2 (C1^1/2 C2 C1^1/2)^1/2) (Dowson and Landau 1982; Heusel et al.
 * 2017). The last trace is the nuclear norm of L1^T L2 with Ci = Li Li^T by Cholesky with
 * pivoting, so that rank-deficient covariances (fewer rows than dimensions) lose no digits.
 * Never negative.
 */
int lw_frechet(lw_pool *pool, const lw_stats *a, const lw_stats *b, double *out);
/* The same with its parts. A rank below dim (fewer rows than features) is no approximation. */
typedef struct lw_frechet_parts {
    double distance, means, traces; /* distance = |m1 - m2|^2 + tr(..) */
    int32_t dim, rank_a, rank_b;    /* of the covariances */
} lw_frechet_parts;
int lw_frechet_detail(lw_pool *pool, const lw_stats *a, const lw_stats *b, lw_frechet_parts *out);
int lw_frechet_arrays(int32_t dim, const double *mean_a, const double *cov_a, const double *mean_b,
                      const double *cov_b, double *out);
/* Distance of feature rows to a reference. */
int lw_frechet_rows(const float *rows, int64_t n, const lw_stats *reference, double *out);

/* ---- rows drawn anew: how far other draws of as many rows would move a number ---- */

typedef struct lw_interval {
    double value, low, high; /* low <= value <= high */
} lw_interval;

/* How rows are drawn, with replacement: n of n rows, or, with labels, of each class as many as it
 * has. A replicate's rows depend on seed, its number and the classes alone. */
typedef struct lw_resampling {
    int32_t replicates; /* 20 or more */
    uint64_t seed;
    const int32_t *labels; /* [n] in 0..classes-1, or NULL */
    int32_t classes;
} lw_resampling;
/*
 * Interval of a number from its replicates [n]: their quantiles, linear between ranks, moved so
 * that their median is the value, low not below zero. (Resampling adds to the upward bias that
 * every finite sample has; what is left in all three numbers is the bias of n rows, which a
 * real-against-real distance of n rows shares.) level: e.g. 0.95.
 */
int lw_interval_of_replicates(double value, const double *replicates, int32_t n, double level,
                              lw_interval *out);

/* Distance of rows [n][dim] to a reference, which stays as it is, and of each replicate of the
 * rows: replicates [how->replicates]. The pool runs replicates and changes no bit. */
int lw_frechet_replicates(lw_pool *pool, const float *rows, int64_t n, const lw_stats *reference,
                          const lw_resampling *how, double *value, double *replicates);
/* The two together, without classes. */
int lw_frechet_bootstrap(const float *rows, int64_t n, const lw_stats *reference,
                         int32_t replicates, double level, uint64_t seed, lw_pool *pool,
                         lw_interval *out);

/* ---- Frechet distance as a loss ---- */

/*
 * The same distance as a loss of the rows, with its gradient by every number of them: 2 (mean -
 * reference's mean) / n by the mean, 2 (I - Cr^1/2 (Cr^1/2 C Cr^1/2)^-1/2 Cr^1/2) (row - mean) /
 * (n - 1) by the covariance. Singular values below about 1e-7 of the traces are smoothed, so that
 * covariances of any rank have a gradient; the value is then lower than lw_frechet's by at most
 * that for each of them. The work grows with the cube of the smaller of n and dim.
 */
typedef struct lw_frechet_loss lw_frechet_loss;
int lw_frechet_loss_new(const lw_stats *reference, lw_frechet_loss **out);
void lw_frechet_loss_free(lw_frechet_loss **pp);
/* rows [n][dim], gradient [n][dim]. LW_EUSAGE below 2 rows; LW_ENUMERIC: a row is not finite. */
int lw_frechet_gradient(const lw_frechet_loss *l, const float *rows, int64_t n, double *value,
                        double *gradient);

/* ---- sliced Wasserstein distance ---- */

enum { LW_SLICED_DIRECTIONS = 1024 }; /* as usual */
/*
 * sqrt of the mean over `directions` unit vectors of W2^2 of the projections of a [n][dim] and b
 * [m][dim] (Bonneel et al. 2015): the integral over p in 0..1 of the squared difference of the two
 * empirical quantile functions, exact for n != m too. Directions are normal vectors of (seed,
 * direction, feature) scaled to length 1, projections and sums are in double. Values of one seed
 * and number of directions compare. LW_ENUMERIC when a row is not finite.
 */
int lw_sliced_wasserstein(lw_pool *pool, const float *a, int64_t n, const float *b, int64_t m,
                          int32_t dim, int32_t directions, uint64_t seed, double *out);
/* And of each replicate of a, b as it is: replicates [how->replicates]. Rows are projected and
 * sorted once. */
int lw_sliced_replicates(lw_pool *pool, const float *a, int64_t n, const float *b, int64_t m,
                         int32_t dim, int32_t directions, uint64_t seed, const lw_resampling *how,
                         double *value, double *replicates);

/* ---- kernel distance ---- */

/*
 * KID (Binkowski et al. 2018): squared maximum mean discrepancy under the kernel (x y / dim + 1)^3,
 * the unbiased estimate, which may be below zero: pairs of a row with itself are left out. Two ways:
 *   all       of all rows, n (n-1) / 2 + m (m-1) / 2 + n m products; NAN when not asked for
 *   mean, sd  of `subsets` draws of `rows` rows (min(rows, n, m)) from each set without
 *             replacement, what torch-fidelity and clean-fid report (100 of 1,000); sd with
 *             divisor `subsets`, as theirs
 */
typedef struct lw_kid_value {
    double all, mean, sd;
    int32_t subsets, rows;
} lw_kid_value;
int lw_kid(lw_pool *pool, const float *a, int64_t n, const float *b, int64_t m, int32_t dim,
           int32_t subsets, int32_t rows, uint64_t seed, bool all, lw_kid_value *out);

/* ---- inception score ---- */

/*
 * exp of the mean over rows of KL(p(y|x) || p(y)) (Salimans et al. 2016) for `splits` (usually 10)
 * runs of rows, split i from i n / splits to (i+1) n / splits, in the order given; mean over the
 * splits and deviation with divisor `splits`. logits [n][classes], softmax in double. LW_EUSAGE
 * when there are fewer rows than splits.
 */
int lw_inception_score(const float *logits, int64_t n, int32_t classes, int32_t splits,
                       double *mean, double *sd);

/* ---- intervals ---- */

/* Standard deviations of a normal distribution that 95 % lie within. */
#define LW_Z_95 1.959963984540054
/* Wilson's score interval of a share k of n at z standard deviations. */
lw_interval lw_share_interval(int64_t k, int64_t n, double z);
/* a - b of two independent estimates from their own intervals of one level, each side from the
 * bounds that make it: no symmetry is supposed (MOVER; of two Wilson intervals: Newcombe 1998). */
lw_interval lw_interval_difference(lw_interval a, lw_interval b);

/* ---- what a score knows ---- */

/*
 * lw_spearman (eval_passes.h), and the chance that a positive's score is above a negative's, ties
 * half (Mann-Whitney), with their 95 % intervals over the rows: quantiles of 1,000 draws of n of the
 * n rows with replacement, those left out in which there is no value. All three are NaN where there
 * is none; the interval alone where most draws have none.
 */
int lw_spearman_interval(const double *a, const double *b, int64_t n, uint64_t seed,
                         lw_interval *out);
int lw_auroc_interval(const double *score, const bool *positive, int64_t n, uint64_t seed,
                      lw_interval *out);
/* The area when the positives are dealt out anew, 200 times: mean, and the middle 95 %, which is
 * where the area of a score that knows nothing lies. */
int lw_auroc_shuffled(const double *score, const bool *positive, int64_t n, uint64_t seed,
                      lw_interval *out);
/* Share of rows whose number is larger than before, with its 95 % interval (Wilson's). */
lw_interval lw_share_rising(const double *before, const double *after, int64_t n);

/* ---- neighbours ---- */

/*
 * Euclidean distances from every row of q [m][dim] to its k nearest rows of r [n][dim], exact
 * (products in f32 only rule candidates out), ascending; ties go to the lower row. distance [m][k],
 * index [m][k] (NULL: not wanted). skip_self: row i of q is row i of r and not its own neighbour.
 * LW_EUSAGE when k > rows there are.
 */
int lw_nearest(lw_pool *pool, const float *q, int64_t m, const float *r, int64_t n, int32_t dim,
               int32_t k, bool skip_self, double *distance, int64_t *index);
/* Pairs i < j of x [n][dim] closer than eps, and rows that are in such a pair. */
int lw_close_pairs(lw_pool *pool, const float *x, int64_t n, int32_t dim, double eps,
                   int64_t *pairs, int64_t *rows);
/*
 * Improved precision and recall (Kynkaanniemi et al. 2019): precision = share of generated rows
 * inside the ball of some real row, whose radius reaches that row's k-th nearest other real row
 * (k = 3); recall the other way round. With the same real balls, density = how many of them a
 * generated row is in on average, by k, and coverage = share of real rows whose ball holds a
 * generated one (Naeem et al. 2020). Exact; a row on the border is inside; a row met twice is its
 * copy's nearest neighbour, at distance 0. No [m][n] matrix is kept.
 */
typedef struct lw_manifold {
    double precision, recall, density, coverage;
} lw_manifold;
int lw_precision_recall(lw_pool *pool, const float *gen, int64_t m, const float *real, int64_t n,
                        int32_t dim, int32_t k, lw_manifold *out);

/* ---- pictures ---- */

/* Mean over the classes with two members or more of the mean Euclidean distance between two of its
 * rows x [n][dim]. classes == 0 or labels NULL: one class. LW_EUSAGE when no class has two. */
int lw_spread(lw_pool *pool, const float *x, int64_t n, int32_t dim, const int32_t *labels,
              int32_t classes, double *out);
/* Diversity: lw_spread of generated pictures by predicted class / lw_spread of real ones. */
int lw_diversity(lw_pool *pool, const float *gen, int64_t m, const int32_t *gen_labels,
                 const float *real, int64_t n, const int32_t *real_labels, int32_t dim,
                 int32_t classes, double *out);
/* Colour distance: Frechet distance of the six numbers mean and sd of R, G, B of pictures
 * [n][pixels][3], divided by the trace of the covariance of the real ones. 0: right colours, near
 * 1: gray collapse. */
int lw_colour_distance(const float *gen, int64_t m, const float *real, int64_t n, int64_t pixels,
                       double *out);
/* Two numbers for each channel of one picture, six of RGB: mean R G B, sd R G B (divisor: pixels). */
void lw_colour_numbers(const float *picture, int64_t pixels, int32_t channels, double *out);

/* ---- a judge's answers ---- */

typedef struct lw_verdict {
    int64_t n;
    double accepted; /* share whose own (asked-for) class has probability >= threshold; any class
                        when nothing was asked for */
    double accepted_any; /* share with some real class >= threshold ("strict" with a junk class) */
    double agreement; /* share whose most probable output is the asked-for class; 1 - junk without
                         labels */
    double junk;      /* share whose most probable output is no real class */
    double class_min,
        class_max; /* smallest and largest share of a class among the most probable real ones */
    int64_t accepted_count;
} lw_verdict;
/*
 * probs [n][outputs]; outputs 0..classes-1 are the real classes, the rest (0 or more) are junk
 * classes. asked [n]: class asked for, or NULL. histogram [classes] (may be NULL): rows whose most
 * probable real class is c. LW_ENUMERIC when a row is no distribution (sum off 1 by over 1e-3, or
 * not finite).
 */
int lw_judge(const float *probs, int64_t n, int32_t outputs, int32_t classes, const int32_t *asked,
             double threshold, int64_t *histogram, lw_verdict *out);

#include "eval/eval_verdict.h" /* built on the above */

#endif
