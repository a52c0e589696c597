/* SPDX-License-Identifier: Apache-2.0 */
/* Strength of guidance: what is drawn. */
#include "jobs/drift/drift_alpha.h"

#include <math.h>

#include "base/base.h"

int lw_alpha_check(const lw_alpha_config *c, int32_t nu)
{
    if (!lw_alpha_used(c))
        return 0;
    if (c->fixed > 0.0 && c->dist != LW_ALPHA_NONE)
        return lw_fail(LW_EUSAGE, "--alpha-fixed and --alpha-dist: one of the two");
    if (c->fixed > 0.0 && c->fixed < 1.0)
        return lw_fail(LW_EUSAGE, "--alpha-fixed %g: at least 1, which is no guidance", c->fixed);
    if (c->max < c->min)
        return lw_fail(LW_EUSAGE, "--alpha-max %g is below --alpha-min %g", c->max, c->min);
    if (c->dist == LW_ALPHA_MIXTURE && c->point > c->max)
        return lw_fail(LW_EUSAGE, "--alpha-point %g is above --alpha-max %g", c->point, c->max);
    if (nu < 1)
        return lw_fail(LW_EUSAGE,
                       "guidance (--alpha-...) is the weight of real pictures of any class: "
                       "say how many with --unconditional-per-group");
    return 0;
}

double lw_alpha_power(double a, double b, double k, double u)
{
    double e = 1.0 - k;
    if (fabs(e) < 1e-6)
        return a * pow(b / a, u);
    double low = pow(a, e);
    return fmin(fmax(pow(low + u * (pow(b, e) - low), 1.0 / e), a), b);
}

double lw_alpha_draw(const lw_alpha_config *c, uint64_t seed, int64_t step, int64_t group)
{
    const lw_rng_key key = lw_rng_key_of(seed, lw_hash_name("drift.alpha"));
    double u = lw_rng_uniform(key, (uint32_t)step, (uint64_t)group, 0),
           point = lw_rng_uniform(key, (uint32_t)step, (uint64_t)group, 1);
    switch ((lw_alpha_dist)c->dist) {
    case LW_ALPHA_UNIFORM:
        return c->min + u * (c->max - c->min);
    case LW_ALPHA_POWERLAW:
        return lw_alpha_power(c->min, c->max, c->power, u);
    case LW_ALPHA_MIXTURE:
        return point < c->point_prob ? c->point : lw_alpha_power(c->min, c->max, c->power, u);
    case LW_ALPHA_TABLE8:
        return point < 0.5 ? 1.0 : lw_alpha_power(c->min, c->max, 3.0, u);
    case LW_ALPHA_NONE:
        break;
    }
    return c->fixed;
}

double lw_alpha_most(const lw_alpha_config *c)
{
    return c->dist == LW_ALPHA_NONE ? 0.0 : c->max;
}
