/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uncertainty in one pass: a normal distribution over the weights of a network's last layer, by
 * Laplace's approximation (MacKay 1992; of last layers: Kristiadi et al. 2020, arXiv 2002.10118;
 * Daxberger et al. 2021, arXiv 2106.14806), made in one sweep over calibration pictures.
 *
 * The last layer is g = W f: f [in] what goes into it, with a 1 behind it where it has a bias, which
 * is a column of W then. Of N calibration pictures, whose labels play no part:
 *
 *    A = sum f f^T    B = sum H    H [out][out]: second derivatives of the loss with respect to g,
 *                                  Gauss-Newton: nothing of how g bends the answers
 *
 *    precision of W = T / N  A (x) B / N + prior I    (Kronecker factors: Ritter et al. 2018)
 *
 * where they stand for T pictures that the network was trained on (T = N: for themselves).
 *
 * It is the Gauss-Newton matrix sum f f^T (x) H itself when there is one picture, or when f f^T and
 * H do not vary together. With sqrt(T) / N A = sum a_i u_i u_i^T, and b_j, v_j likewise of B, no
 * damping of the factors, g of a picture has the covariance
 *
 *    S = sum_j s_j v_j v_j^T    s_j = sum_i (u_i f)^2 / (a_i b_j + prior)
 *
 * The prior that makes the calibration pictures most probable (evidence; the loss at W does not
 * depend on it) maximises - prior |W|^2 / 2 + sum_ij log(prior / (a_i b_j + prior)) / 2, so
 *
 *    prior |W|^2 = gamma,   gamma = sum_ij a_i b_j / (a_i b_j + prior)
 *
 * where the left side rises and the right one falls: there is one solution, found by bisection.
 * gamma is the number of weights that the pictures say something of.
 *
 * The answers z [answers], their mean m and covariance C:
 *
 *    classifier     z = g: m = g, C = S; softmax: H = diag p - p p^T
 *    texts t_c      z_c = scale cos(g, t_c) + shift (CLIP, SigLIP), as BayesVLM has it (Baumann et
 *                   al. 2024, arXiv 2412.06014), the texts being exact and of length 1:
 *                     J = (I - g g^T / |g|^2) / |g|    H = scale^2 J T^T (diag p - p p^T) T J
 *                     m_c = scale g t_c / r + shift    C = scale^2 T S T^T / r^2
 *                     r^2 = E |g|^2 = |g|^2 + trace S
 *                   (there S is cut down to its diagonal; here it is whole). Of a network that was
 *                   trained with one sigmoid for each text H has diag p (1 - p), p the sigmoids.
 *
 * Scores, all larger where less is certain, p = softmax z of the network as it is:
 *
 *    laplace_logit_var           mean over the answers of their variance C_cc
 *    laplace_entropy             entropy of softmax(m_c / sqrt(1 + pi / 8 C_cc)): MacKay's probit
 *                                approximation of the mean probabilities
 *    laplace_mutual_information  tr((diag p - p p^T) C) / 2: to first order in C what knowing W would
 *                                tell of the answer, E KL(p(W) || E p) = H(E p) - E H(p), in nats; a
 *                                shift of all answers does not count
 *    entropy, least_confidence   of p; 1 - its largest. No Laplace in them: what these cost nothing
 *
 * All in f64. Rows are summed in blocks of a fixed number whatever calls they come in.
 */
#ifndef LW_EVAL_LAPLACE_H
#define LW_EVAL_LAPLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/thread/pool.h"

typedef enum lw_laplace_score {
    LW_LAPLACE_LOGIT_VAR,
    LW_LAPLACE_ENTROPY,
    LW_LAPLACE_MUTUAL_INFORMATION,
    LW_LAPLACE_PLAIN_ENTROPY,
    LW_LAPLACE_LEAST_CONFIDENCE,
    LW_LAPLACE_SCORES
} lw_laplace_score;
extern const char *const lw_laplace_score_name[LW_LAPLACE_SCORES];

typedef struct lw_laplace_opts {
    int32_t in, out; /* numbers that go into the last layer (without the 1), and that come out */
    bool bias;
    double squares;     /* |W|^2, the bias's included */
    double prior;       /* precision of each weight; 0: that of largest evidence */
    double pictures;    /* that the calibration pictures stand for; 0: themselves */
    int32_t texts;      /* 0: a classifier */
    const double *text; /* [texts][out], of any length but 0; copied */
    double scale, shift;
    bool sigmoid;
} lw_laplace_opts;

typedef struct lw_laplace lw_laplace;
int lw_laplace_new(const lw_laplace_opts *o, lw_laplace **out);
void lw_laplace_free(lw_laplace **pp);
/* Adds calibration pictures: f [n][in], g [n][out]. LW_ENUMERIC: one is not finite, or a g to be
 * compared with texts is 0. */
int lw_laplace_add(lw_pool *pool, lw_laplace *l, const float *f, const float *g, int64_t n);
/* Behind the last picture. LW_EUSAGE: there was none; LW_ENUMERIC: no prior has the largest evidence,
 * for every answer is certain or all weights are 0. */
int lw_laplace_fit(lw_pool *pool, lw_laplace *l);

typedef struct lw_laplace_info {
    int64_t pictures;
    double prior, gamma;
} lw_laplace_info;
lw_laplace_info lw_laplace_get_info(const lw_laplace *l);

/* Numbers that lw_laplace_scores needs beside its arguments, at most. */
size_t lw_laplace_doubles(const lw_laplace *l);
/* Of one picture, after the fit; by several threads at once, each with its scratch, at whose start lie
 * mean m and variance C_cc of the answers then. LW_ENUMERIC as above. */
int lw_laplace_scores(const lw_laplace *l, const float *f, const float *g, double *scratch,
                      double out[LW_LAPLACE_SCORES]);

#endif
