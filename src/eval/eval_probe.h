/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A linear probe: which class do frozen features name? Ridge regression on the classes, in double
 * precision (Alain and Bengio 2016; the solution is that of scikit-learn's RidgeClassifier on standardised
 * features).
 *
 *   z = (f - mean) / sd                 per feature, of the rows it is fitted on; sd 0: 1
 *   W = (Z^T Z + ridge (n - 1) I)^-1 Z^T Y    Y [n][classes]: 1 for the row's class
 *   answer = argmax of z W + share of each class; ties go to the lower class
 *
 * ridge is the one of LW_PROBE_RIDGES that names most of every fifth row right, fitted on the others
 * (ties: the larger); then all rows are fitted.
 */
#ifndef LW_EVAL_PROBE_H
#define LW_EVAL_PROBE_H

#include <stdint.h>

#include "base/base.h"

#define LW_PROBE_RIDGES             \
    {                               \
        10.0, 1.0, 0.1, 0.01, 0.001 \
    }

typedef struct lw_probe {
    int32_t dim, classes;
    int64_t rows; /* fitted */
    double ridge;
    double *mean, *sd;      /* [dim] */
    double *weight, *share; /* [classes][dim], [classes] */
} lw_probe;

/* features [n][dim], labels [n] below classes. LW_EUSAGE: fewer than 10 rows or a class without one;
 * LW_ENUMERIC: a number that is not finite. Same bits for any number of threads. */
int lw_probe_fit(lw_pool *pool, const float *features, int64_t n, int32_t dim,
                 const int32_t *labels, int32_t classes, lw_probe **out);
void lw_probe_free(lw_probe **pp);
/* The class of each of n rows. */
void lw_probe_answer(const lw_probe *p, const float *features, int64_t n, int32_t *out);

#endif
