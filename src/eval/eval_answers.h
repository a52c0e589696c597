/* SPDX-License-Identifier: Apache-2.0 */
/* What a row of logits says: which answer, how probable, how sure. n >= 1 everywhere. */
#ifndef LW_EVAL_ANSWERS_H
#define LW_EVAL_ANSWERS_H

#include <stdint.h>

/* Where the largest is, the first one of equals. */
int32_t lw_argmax(const float *x, int64_t n);
/* p = softmax(z); p may be z. */
void lw_softmax_of(const double *z, int64_t n, double *p);
/* Its logarithm; out may be z. */
void lw_log_softmax_of(const double *z, int64_t n, double *out);
/* Of probabilities, in nats. */
double lw_entropy_of(const double *p, int64_t n);

#endif
