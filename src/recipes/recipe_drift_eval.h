/* SPDX-License-Identifier: Apache-2.0 */
/* The number that does move while drift trains: a Frechet distance on a fixed set of held-out
 * pictures. */
#ifndef LW_RECIPE_DRIFT_EVAL_H
#define LW_RECIPE_DRIFT_EVAL_H

#include "recipes/recipe_sampler.h"

typedef struct lw_drift_eval lw_drift_eval;
/* Features: the encoder's pooled output, or mean and sd of the colours without an encoder. The
 * reference is all held-out pictures up to 2,000; `samples` pictures are made each time (0: 512).
 */
int lw_drift_eval_new(lw_device *dev, const lw_dataset *train, const lw_encoder *e, int32_t samples,
                      lw_drift_eval **out);
void lw_drift_eval_free(lw_drift_eval **pp);
int lw_drift_eval_run(lw_drift_eval *v, lw_sampler *s, double *fd);
/* The same distance between held-out and training pictures: what a perfect generator gets. */
double lw_drift_eval_floor(const lw_drift_eval *v);

#endif
