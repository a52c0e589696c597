/* SPDX-License-Identifier: Apache-2.0 */
/* What a drift step is of: classes, real rows, strengths of guidance. */
#ifndef LW_DRIFT_DRAWS_H
#define LW_DRIFT_DRAWS_H

#include "data/data.h"
#include "jobs/drift/drift_job.h"

typedef struct lw_drift_draws {
    const lw_drift_config *c;
    const lw_dataset *data;
    int32_t groups, np, nu;    /* groups: of a step */
    bool flip;                 /* rows may be mirrored: row + n */
    lw_class_sampler *classes; /* one of the two */
    lw_queue *queue;
    int64_t step; /* of what follows, -1: none */
    int32_t *group_class;
    int64_t *positive, *unconditional; /* rows */
    double *alpha;
    json_t *warmup; /* what the queue held before the first step; NULL without one */
} lw_drift_draws;

/* groups, np, nu and flip are set; labels: whether rows have classes. Cleared in any case. */
int lw_drift_draws_open(lw_drift_draws *d, const lw_drift_config *c, const lw_dataset *data,
                        bool labels);
void lw_drift_draws_clear(lw_drift_draws *d);
int lw_drift_draws_of(lw_drift_draws *d, int64_t step);
/* Weight of an unconditional negative of group g of the step drawn last. */
double lw_drift_draws_weight(const lw_drift_draws *d, int32_t g, int32_t n);
/* Adds what there is to say of the step drawn last. */
void lw_drift_draws_report(const lw_drift_draws *d, json_t *row);

#endif
