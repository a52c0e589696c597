/* SPDX-License-Identifier: Apache-2.0 */
/* The drift field over jobs' field of arrays. */
#include <string.h>

#include "plan/plan.h"
#include "jobs/field/field_job.h"

#include "api/api_private.h"

_Static_assert((int)LW_FIELD_PLAIN == (int)LW_DRIFT_PLAIN &&
                   (int)LW_FIELD_OFFICIAL == (int)LW_DRIFT_OFFICIAL &&
                   (int)LW_FIELD_TAU_TIMES_DIM == (int)LW_DRIFT_TAU_TIMES_DIM &&
                   (int)LW_FIELD_MAX_TEMPERATURES == (int)LW_DRIFT_MAX_TAU,
               "public and private names of the variants");

/* One size of a request; those that default to 1 may be 0. */
static int check_size(const char *field, int64_t n)
{
    if (n >= 0 && n <= INT32_MAX)
        return 0;
    return lw_fail(LW_EUSAGE, "lw_field_run: request.%s is %lld: must be 0 to %d", field,
                   (long long)n, INT32_MAX);
}

/* Sizes whose products below neither overflow nor pass what a pool can count. */
static int check_sizes(const lw_field_request *r)
{
    const double most = 0x1p44;
    LW_TRY(check_size("groups", r->groups));
    LW_TRY(check_size("slots", r->slots));
    LW_TRY(check_size("channels", r->channels));
    LW_TRY(check_size("generated", r->generated));
    LW_TRY(check_size("positives", r->positives));
    LW_TRY(check_size("unconditional", r->unconditional));
    double vectors = (double)LW_MAX(r->groups, 1) * (double)LW_MAX(r->slots, 1) *
                     (double)(r->generated + r->positives + r->unconditional);
    if (vectors >= INT32_MAX || vectors * (double)r->channels > most)
        return lw_fail(LW_EUSAGE,
                       "lw_field_run: request of %.4g vectors (groups x slots x all samples) of "
                       "%lld channels: fewer than %d vectors and %.4g numbers are possible",
                       vectors, (long long)r->channels, INT32_MAX, most);
    return 0;
}

static int check_arrays(const lw_field_request *r)
{
    const char *missing = !r->x                                ? "x"
                          : !r->positive                       ? "positive"
                          : r->unconditional > 0 && !r->uncond ? "uncond"
                          : !r->temperatures                   ? "temperatures"
                                                               : NULL;
    return missing ? lw_fail(LW_EUSAGE, "lw_field_run: request.%s is NULL", missing) : 0;
}

static int read_opts(const lw_field_request *r, lw_field_opts *out)
{
    lw_field_opts o = {.n_tau = r->temperature_count,
                       .normalize_over_x = !r->rows_only,
                       .variant = (lw_drift_variant)r->variant};
    if (r->temperature_count < 1 || r->temperature_count > LW_FIELD_MAX_TEMPERATURES)
        return lw_fail(LW_EUSAGE, "lw_field_run: request.temperature_count is %d: must be 1 to %d",
                       r->temperature_count, LW_FIELD_MAX_TEMPERATURES);
    if ((int)r->variant < 0 || r->variant > LW_FIELD_TAU_TIMES_DIM)
        return lw_fail(LW_EUSAGE, "lw_field_run: request.variant is %d: must be 0 to %d",
                       (int)r->variant, LW_FIELD_TAU_TIMES_DIM);
    memcpy(o.tau, r->temperatures, sizeof *o.tau * (size_t)o.n_tau);
    *out = o;
    return 0;
}

static int compute(lw_device *device, const lw_field_request *r, const float *weight,
                   lw_field_stats *out)
{
    lw_field_opts o;
    lw_field_arrays a = {.g = LW_MAX(r->groups, 1),
                         .n = r->generated,
                         .np = r->positives,
                         .nu = r->unconditional,
                         .t = LW_MAX(r->slots, 1),
                         .c = r->channels,
                         .x = r->x,
                         .pos = r->positive,
                         .unc = r->uncond,
                         .w_u = weight,
                         .f = r->field,
                         .dx = r->gradient};
    LW_TRY(read_opts(r, &o));
    return lw_field_compute(device, &o, &a, out);
}

int lw_field_run(lw_device *device, const lw_field_request *request, lw_field_report *report)
{
    lw_field_request r;
    lw_field_report out;
    lw_field_stats s;
    float *zeros = NULL;
    API_FLOATS();
    API_NEED(device);
    LW_TRY(API_READ(r, request));
    if (report)
        LW_TRY(API_READ(out, report)); /* its size, before anything is written */
    LW_TRY(check_arrays(&r));
    LW_TRY(check_sizes(&r));
    if (r.unconditional > 0 && !r.uncond_weight) {
        zeros = lw_calloc((size_t)LW_MAX(r.groups, 1), sizeof *zeros);
        if (!zeros)
            return LW_ENOMEM;
    }
    int rc = compute(device, &r, zeros ? zeros : r.uncond_weight, &s);
    lw_free(&zeros);
    if (rc < 0 || !report)
        return rc;
    out = (lw_field_report){
        .temperature_count = s.n_tau, .scale = s.scale, .sigma = s.sigma, .loss = s.loss};
    memcpy(out.lambda, s.lambda, sizeof *s.lambda * (size_t)s.n_tau);
    memcpy(out.raw_mean_v2, s.raw_mean_v2, sizeof *s.raw_mean_v2 * (size_t)s.n_tau);
    return API_WRITE(report, out);
}
