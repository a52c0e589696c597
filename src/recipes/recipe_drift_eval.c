/* SPDX-License-Identifier: Apache-2.0 */
/* Frechet distance to held-out pictures in the drift encoder's pooled features. */
#include "recipes/recipe_drift_eval.h"

#include <string.h>

#include "eval/eval.h"

enum { BATCH = 64, REFERENCE = 2000 };

struct lw_drift_eval {
    lw_device *dev;
    lw_plan *plan;
    lw_exec *exec; /* NULL: colours */
    int64_t pixels;
    int32_t dim, samples;
    lw_stats *reference;
    double floor;
    float *pictures;
};

static int build(lw_drift_eval *v, const lw_encoder *e, int32_t h, int32_t w)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    if (e->kind == LW_ENCODER_NONE) {
        v->dim = 6;
        return 0;
    }
    LW_TRY(lw_graph_new(&g));
    lw_encoder_maps maps = {0};
    lw_encoder_build(e, g, lw_input(g, "images", lw_type_of(LW_F32, 4, BATCH, h, w, 3)), &maps);
    lw_graph_output_add(g, "pooled", maps.pooled, LW_NOVAL);
    v->dim = e->feature_dim;
    LW_TRY(lw_compile(g, v->dev, NULL, &v->plan));
    return lw_exec_new(v->plan, LW_SLAB_PARAM, &v->exec);
}

/* Adds the features of n pictures (at most BATCH, in `x`) to s. */
static int add_batch(lw_drift_eval *v, const float *x, int64_t n, lw_stats *s)
{
    if (!v->exec) {
        double f[6];
        for (int64_t i = 0; i < n; i++) {
            lw_colour_numbers(x + i * v->pixels * 3, v->pixels, f);
            LW_TRY(lw_stats_add_f64(s, f, 1));
        }
        return 0;
    }
    memcpy(lw_exec_data(v->exec, "images"), x, (size_t)(n * v->pixels * 3) * sizeof *x);
    LW_TRY(lw_exec_run(v->exec, NULL));
    return lw_stats_add(s, lw_exec_data(v->exec, "pooled"), n);
}

static int add_dataset(lw_drift_eval *v, const lw_dataset *d, lw_stats *s)
{
    int64_t n = LW_MIN(d->n, REFERENCE);
    for (int64_t at = 0; at < n; at += BATCH) {
        int64_t m = LW_MIN(n - at, BATCH);
        for (int64_t i = 0; i < m; i++)
            lw_data_get(d, at + i, false, v->pictures + i * v->pixels * 3);
        LW_TRY(add_batch(v, v->pictures, m, s));
    }
    return 0;
}

static int measure_reference(lw_drift_eval *v, const lw_dataset *train)
{
    const lw_data_opts o = {.image_size = train->image_size, .split = LW_SPLIT_HELDOUT, .count = 0};
    lw_dataset *held = NULL;
    LW_CLEANUP(lw_stats_free) lw_stats *own = NULL;
    LW_TRY(lw_data_open(train->spec, &o, &held));
    int rc = lw_stats_new(v->dim, &v->reference);
    if (rc == 0)
        rc = add_dataset(v, held, v->reference);
    lw_data_close(&held);
    LW_TRY(rc);
    LW_TRY(lw_stats_new(v->dim, &own));
    LW_TRY(add_dataset(v, train, own));
    return lw_frechet(own, v->reference, &v->floor);
}

int lw_drift_eval_new(lw_device *dev, const lw_dataset *train, const lw_encoder *e, int32_t samples,
                      lw_drift_eval **out)
{
    LW_CLEANUP(lw_drift_eval_free) lw_drift_eval *v = lw_calloc(1, sizeof *v);
    if (!v)
        return LW_ENOMEM;
    v->dev = dev;
    v->samples = samples ? samples : 512;
    v->pixels = (int64_t)train->h * train->w;
    v->pictures = lw_calloc((size_t)(BATCH * v->pixels * 3), sizeof *v->pictures);
    if (!v->pictures)
        return LW_ENOMEM;
    LW_TRY(build(v, e, train->h, train->w));
    LW_TRY(measure_reference(v, train));
    *out = lw_steal(&v);
    return 0;
}

void lw_drift_eval_free(lw_drift_eval **pp)
{
    lw_drift_eval *v = *pp;
    if (!v)
        return;
    lw_exec_free(&v->exec);
    lw_plan_free(&v->plan);
    lw_stats_free(&v->reference);
    lw_free(&v->pictures);
    lw_free(pp);
}

double lw_drift_eval_floor(const lw_drift_eval *v)
{
    return v->floor;
}

int lw_drift_eval_run(lw_drift_eval *v, lw_sampler *s, double *fd)
{
    LW_CLEANUP(lw_stats_free) lw_stats *own = NULL;
    LW_TRY(lw_stats_new(v->dim, &own));
    for (int64_t at = 0; at < v->samples; at += BATCH) {
        int64_t m = LW_MIN(v->samples - at, BATCH);
        LW_TRY(lw_sampler_run(s, at, m, NULL, NULL, v->pictures));
        LW_TRY(add_batch(v, v->pictures, m, own));
    }
    return lw_frechet(own, v->reference, fd);
}
