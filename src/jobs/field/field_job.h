/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field: the drift field of arrays, as an oracle for other programs. Formulas in
 * kernels/drift/drift.h.
 */
#ifndef LW_FIELD_JOB_H
#define LW_FIELD_JOB_H

#include "base/base.h"
#include "formats/formats.h"
#include "plan/plan.h"

typedef enum lw_field_precision { LW_FIELD_F32, LW_FIELD_F64 } lw_field_precision;

/* How to compute a field. */
typedef struct lw_field_opts {
    double tau[LW_DRIFT_MAX_TAU];
    int32_t n_tau;
    bool normalize_over_x; /* softmax over the generated samples too */
    lw_drift_variant variant;
    lw_drift_products products;
    bool own_scale; /* S of each slot; the S that is told is then their mean, and so is sigma */
} lw_field_opts;

/* Dense [G,N,T,C] operands of one key: x, pos, unc with N, Np, Nu samples a group; w_u [G]. unc and
 * w_u may be NULL when nu is 0. Outputs f and dx have the shape of x; either may be NULL. */
typedef struct lw_field_arrays {
    int64_t g, n, np, nu, t, c;
    const float *x, *pos, *unc, *w_u;
    float *f, *dx;
} lw_field_arrays;

/* What the field says about itself. */
typedef struct lw_field_stats {
    int n_tau;
    double scale, sigma, loss; /* S, sigma, mean F^2 */
    double lambda[LW_DRIFT_MAX_TAU];
    double raw_mean_v2[LW_DRIFT_MAX_TAU]; /* mean V^2 before division by lambda */
    size_t work_bytes; /* memory of the computation beside operands and results */
} lw_field_stats;

/* In f32 on the device. LW_ESHAPE for empty or too large operands, LW_EUSAGE for temperatures that
 * are not positive and for vectors whose distances do not fit (beyond 5e16, or not numbers; results
 * are NaN then), LW_ENOMEM with the size of the workspace, LW_EDEVICE for what the device does not
 * compute. */
int lw_field_compute(lw_device *dev, const lw_field_opts *opts, const lw_field_arrays *a,
                     lw_field_stats *out);

typedef struct lw_field_config {
    const char *gen, *pos;     /* npy, [N,C], [G,N,C] or [G,N,T,C]; any float or integer type */
    const char *uncond;        /* npy of the same rank, or NULL */
    const char *uncond_weight; /* a number, or an npy of one element or [G]; NULL: 0 */
    const char *output;        /* npy, F in gen's shape; NULL: nothing is written */
    lw_field_opts opts;
    lw_field_precision precision; /* F64: plain loops in double on one thread, and F is f64 */
    int threads;
} lw_field_config;

/* The field of npy files. LW_ESHAPE names both shapes. */
int lw_job_field(const lw_field_config *config, lw_field_stats *out);

#endif
