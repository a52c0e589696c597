/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strength of guidance of a group: how much real pictures of any class push its samples away.
 *
 * Of N samples each is pushed by N - 1 others of weight 1; the Nu unconditional pictures together weigh
 * alpha - 1 times as much, (alpha - 1)(N - 1) / Nu each. 1 is none: weight 0, though they stay in the
 * softmax.
 */
#ifndef LW_DRIFT_ALPHA_H
#define LW_DRIFT_ALPHA_H

#include <stdbool.h>
#include <stdint.h>

/* As users type them. */
#define LW_ALPHA_DISTS "none|uniform|powerlaw|mixture_point_powerlaw|table8_l2_latent"
typedef enum lw_alpha_dist {
    LW_ALPHA_NONE,     /* not drawn, and the generator is not told */
    LW_ALPHA_UNIFORM,  /* from min to max */
    LW_ALPHA_POWERLAW, /* p ~ alpha^-power there */
    LW_ALPHA_MIXTURE,  /* `point` with point_prob, else the power law */
    LW_ALPHA_TABLE8    /* of the published latent L/2: 1 with probability 0.5, else power 3 */
} lw_alpha_dist;

typedef struct lw_alpha_config {
    double fixed; /* of every group, and the generator is not told; 0: not fixed */
    int32_t dist;
    double min, max, power, point, point_prob;
} lw_alpha_config;

/* LW_EUSAGE: options that do not go together; nu: unconditional pictures of a group. */
int lw_alpha_check(const lw_alpha_config *c, int32_t nu);
/* Is there any? Else the weight is --uncond-weight. */
static inline bool lw_alpha_used(const lw_alpha_config *c)
{
    return c->fixed > 0.0 || c->dist != LW_ALPHA_NONE;
}
/* The strength of group number `group` of a step: a function of these and the seed. */
double lw_alpha_draw(const lw_alpha_config *c, uint64_t seed, int64_t step, int64_t group);
/* The value of u in [0, 1) by the power law of exponent k on [a, b]. */
double lw_alpha_power(double a, double b, double k, double u);
/* The greatest that is drawn, or 0: none. */
double lw_alpha_most(const lw_alpha_config *c);

static inline double lw_alpha_weight(double alpha, int32_t n, int32_t nu)
{
    return (alpha - 1.0) * (n - 1) / nu;
}

#endif
