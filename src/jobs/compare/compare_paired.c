/* SPDX-License-Identifier: Apache-2.0 */
/* What narrow operands do to pictures: the same noise through the network in f32. */
#include <math.h>

#include "jobs/compare/compare_parts.h"

enum { PAIRS = 64 };

static int pair(comparing *w, const lw_source *from, lw_compare_setting how, const compare_set *s,
                lw_paired *out)
{
    int64_t n = LW_MIN(s->n, PAIRS), count = n * w->side * w->side * 3;
    LW_CLEANUP(lw_sampler_free) lw_sampler *sampler = NULL;
    LW_CLEANUP(lw_free) float *f32 = lw_calloc((size_t)count, sizeof *f32);
    lw_sampler_opts o = lw_compare_sampler(w, from, how, n);
    double sum = 0.0, worst = 0.0;
    if (!f32)
        return LW_ENOMEM;
    o.precision = LW_NUM_F32;
    LW_TRY(lw_sampler_new(w->dev, from->net, &o, &sampler));
    LW_TRY(lw_sampler_run(sampler, 0, n, s->classes, NULL, f32));
    if (lw_picture_channels(from->net) == 1)
        lw_gray_to_rgb(f32, n * w->side * w->side);
    for (int64_t i = 0; i < count; i++) {
        double d = (double)s->x[i] - (double)f32[i];
        sum += d * d;
        worst = fmax(worst, fabs(d));
    }
    *out = (lw_paired){.n = n, .rms = sqrt(sum / (double)count), .worst = worst};
    return 0;
}

int lw_compare_paired(comparing *w)
{
    if (w->c->precision == LW_NUM_F32)
        return 0;
    lw_compare_progress(w, 0, "the same pictures in f32");
    LW_TRY(pair(w, w->drift, (lw_compare_setting){.evaluations = 1, .alpha = w->out->drift_alpha},
                &w->drift_set, &w->out->paired_drift));
    for (int i = 0; i < w->n_others; i++)
        LW_TRY(pair(w, w->other[i].source, w->other[i].usual, &w->other[i].set,
                    &w->out->other[i].paired));
    return 0;
}
