/* SPDX-License-Identifier: Apache-2.0 */
/* Distances to held-out pictures, of fresh and of fixed noises, beside what real pictures get. */
#include "train/pictures/train_heldout.h"

#include <stdio.h>
#include <string.h>

#include "eval/eval.h"
#include "session/session_contract.h"
#include "session/session_features.h"

enum { BATCH = 64, REFERENCE = 2000 };

/* One space of features and the real pictures in it. */
typedef struct view {
    const char *name;  /* column */
    lw_score_net *net; /* NULL: colours */
    int32_t dim;
    lw_stats *all, *half[2], *train;
    double floor, reporting_floor; /* of training pictures, to all and to the second half */
} view;

struct lw_heldout {
    lw_pool *pool;         /* of the device */
    int64_t pixels, count; /* samples, and training pictures */
    int32_t channels;
    view view[2];
    int n_views;
    const view *best; /* NULL: none */
    float *pictures, *features;
    char measure[256], names[256];
};

/* ---- adding pictures ------------------------------------------------------------------------- */

/* Adds n pictures (at most BATCH, in v->pictures) to `to`. */
static int add_batch(lw_heldout *v, const view *w, int64_t n, lw_stats *to)
{
    if (w->net) {
        LW_TRY(lw_score_net_run(w->net, v->pictures, n, v->features, NULL));
        return lw_stats_add(v->pool, to, v->features, n);
    }
    for (int64_t i = 0; i < n; i++) {
        double f[2 * LW_MAX_CHANNELS];
        lw_colour_numbers(v->pictures + i * v->pixels * v->channels, v->pixels, v->channels, f);
        LW_TRY(lw_stats_add_f64(to, f, 1));
    }
    return 0;
}

/* Drawn rows first .. end - 1 of d. */
static int add_rows(lw_heldout *v, const lw_dataset *d, int64_t first, int64_t end, const view *w,
                    lw_stats *to)
{
    LW_CLEANUP(lw_free) int64_t *drawn = NULL;
    LW_TRY(lw_data_drawn(d, &drawn));
    for (int64_t at = first; at < end; at += BATCH) {
        int64_t m = LW_MIN(end - at, BATCH);
        for (int64_t i = 0; i < m; i++)
            lw_data_get(d, drawn[at + i], false, v->pictures + i * v->pixels * v->channels);
        LW_TRY(add_batch(v, w, m, to));
    }
    return 0;
}

/* ---- real pictures --------------------------------------------------------------------------- */

static int measure_real(lw_heldout *v, const lw_dataset *train, const lw_dataset *held, view *w)
{
    int64_t n = LW_MIN(held->n, REFERENCE);
    LW_TRY(lw_stats_new(w->dim, &w->all));
    LW_TRY(lw_stats_new(w->dim, &w->train));
    LW_TRY(add_rows(v, held, 0, n, w, w->all));
    for (int h = 0; h < 2 && w == v->best; h++) {
        LW_TRY(lw_stats_new(w->dim, &w->half[h]));
        LW_TRY(add_rows(v, held, h * n / 2, (h + 1) * n / 2, w, w->half[h]));
    }
    LW_TRY(add_rows(v, train, 0, v->count, w, w->train));
    if (w == v->best)
        LW_TRY(lw_frechet(v->pool, w->train, w->half[1], &w->reporting_floor));
    return lw_frechet(v->pool, w->train, w->all, &w->floor);
}

static int add_view(lw_heldout *v, lw_device *dev, const char *name, const char *encoder,
                    int32_t side)
{
    view *w = &v->view[v->n_views++];
    w->name = name;
    w->dim = 2 * v->channels;
    if (!encoder || lw_str_eq(encoder, "none"))
        return 0;
    LW_TRY(lw_score_net_new(dev, encoder, side, v->channels, &w->net));
    w->dim = w->net->dim;
    return 0;
}

static int open_views(lw_heldout *v, lw_device *dev, const char *encoder,
                      const lw_heldout_config *c, int32_t side)
{
    int32_t most = 2 * v->channels;
    LW_TRY(add_view(v, dev, "fd", encoder, side));
    if (c->eval_encoder)
        LW_TRY(add_view(v, dev, "eval_fd", c->eval_encoder, side));
    for (int i = 0; i < v->n_views; i++)
        most = LW_MAX(most, v->view[i].dim);
    v->best = c->keep_best == LW_BEST_NONE ? NULL : &v->view[c->keep_best - LW_BEST_FD];
    v->features = lw_calloc((size_t)BATCH * (size_t)most, sizeof *v->features);
    v->pictures = lw_calloc((size_t)(BATCH * v->pixels * v->channels), sizeof *v->pictures);
    return v->features && v->pictures ? 0 : LW_ENOMEM;
}

static void name_views(lw_heldout *v, int32_t side)
{
    for (int i = 0; i < v->n_views; i++) {
        const view *w = &v->view[i];
        lw_contract c;
        char name[96] = "Frechet distance, colours";
        if (w->net) {
            lw_contract_of(w->net->encoder, LW_NUM_F32, side, side, &c);
            lw_contract_frechet(&c, name);
        }
        size_t n = strlen(v->names);
        snprintf(v->names + n, sizeof v->names - n, "%s%s: %s", i ? "; " : "", w->name, name);
    }
}

int lw_heldout_check(const lw_heldout_config *c, int64_t eval_every)
{
    if (c->keep_best != LW_BEST_NONE && eval_every <= 0)
        return lw_fail(LW_EUSAGE, "--keep-best %s: needs --eval-every N", lw_heldout_metric(c));
    if (c->keep_best == LW_BEST_EVAL_FD && !c->eval_encoder)
        return lw_fail(LW_EUSAGE, "--keep-best eval_fd: needs --eval-encoder SPEC");
    if (c->eval_encoder && lw_str_eq(c->eval_encoder, "none"))
        return lw_fail(LW_EUSAGE, "--eval-encoder none: has no features to measure distances in");
    return 0;
}

int lw_heldout_new(lw_device *dev, const lw_dataset *train, const char *encoder,
                   const lw_heldout_config *c, const lw_observer *obs, lw_heldout **out)
{
    LW_CLEANUP(lw_heldout_free) lw_heldout *v = lw_calloc(1, sizeof *v);
    const lw_data_opts o = {.image_size = train->h,
                            .channels = train->channels,
                            .split = LW_SPLIT_HELDOUT,
                            .on_error = train->on_error,
                            .pool = dev->pool,
                            .obs = obs};
    LW_CLEANUP(lw_data_close) lw_dataset *held = NULL;
    if (!v)
        return LW_ENOMEM;
    v->pool = dev->pool;
    v->count = LW_MIN(c->samples ? c->samples : LW_HELDOUT_SAMPLES, train->n);
    v->pixels = (int64_t)train->h * train->w;
    v->channels = train->channels;
    LW_TRY(open_views(v, dev, encoder, c, train->h));
    name_views(v, train->h);
    LW_TRY(lw_data_open(train->spec, &o, &held));
    for (int i = 0; i < v->n_views; i++)
        LW_TRY(measure_real(v, train, held, &v->view[i]));
    if (v->best)
        snprintf(v->measure, sizeof v->measure, "%s, %lld drawn pictures, %.200s", v->best->name,
                 (long long)v->count, v->best->net ? v->best->net->encoder->name : "colours");
    *out = lw_steal(&v);
    return 0;
}

void lw_heldout_free(lw_heldout **pp)
{
    lw_heldout *v = *pp;
    if (!v)
        return;
    for (int i = 0; i < v->n_views; i++) {
        view *w = &v->view[i];
        lw_score_net_close(&w->net);
        lw_stats_free(&w->all);
        lw_stats_free(&w->half[0]);
        lw_stats_free(&w->half[1]);
        lw_stats_free(&w->train);
    }
    lw_free(&v->features);
    lw_free(&v->pictures);
    lw_free(pp);
}

const char *lw_heldout_metric(const lw_heldout_config *c)
{
    static const char *const names[] = {NULL, "fd", "eval_fd"};
    return names[c->keep_best];
}

const char *lw_heldout_names(const lw_heldout *v)
{
    return v->names;
}

const char *lw_heldout_measure(const lw_heldout *v)
{
    return v->measure;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* Statistics of samples first, first + 1, ... in every view. */
static int add_samples(lw_heldout *v, lw_sampler *s, int64_t first, const lw_observer *obs,
                       lw_stats **to)
{
    for (int i = 0; i < v->n_views; i++)
        LW_TRY(lw_stats_new(v->view[i].dim, &to[i]));
    for (int64_t at = 0; at < v->count; at += BATCH) {
        int64_t m = LW_MIN(v->count - at, BATCH);
        if (lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "stopped within a held-out measure");
        LW_TRY(lw_sampler_run(s, first + at, m, NULL, obs, v->pictures));
        for (int i = 0; i < v->n_views; i++)
            LW_TRY(add_batch(v, &v->view[i], m, to[i]));
    }
    return 0;
}

static int put(json_t *row, const char *name, const char *what, double value)
{
    char key[48];
    snprintf(key, sizeof key, "%s%s", name, what);
    return json_object_set_new(row, key, lw_json_real(value)) == 0
               ? 0
               : lw_fail(LW_ENOMEM, "out of memory for a log row");
}

static int put_distance(lw_pool *pool, json_t *row, const char *name, const char *what,
                        const lw_stats *a, const lw_stats *b)
{
    double d;
    LW_TRY(lw_frechet(pool, a, b, &d));
    return put(row, name, what, d);
}

static int put_view(const lw_heldout *v, const view *w, const lw_stats *fresh,
                    const lw_stats *fixed, json_t *row)
{
    LW_TRY(put_distance(v->pool, row, w->name, "", fresh, w->all));
    LW_TRY(put_distance(v->pool, row, w->name, "_fixed", fixed, w->all));
    LW_TRY(put(row, w->name, "_floor", w->floor));
    if (w != v->best)
        return 0;
    LW_TRY(put_distance(v->pool, row, w->name, "_choosing", fresh, w->half[0]));
    LW_TRY(put(row, w->name, "_reporting_floor", w->reporting_floor));
    return put_distance(v->pool, row, w->name, "_reporting", fixed, w->half[1]);
}

int lw_heldout_run(lw_heldout *v, lw_sampler *s, int64_t step, const lw_observer *obs, json_t *row)
{
    lw_stats *fresh[LW_COUNT(v->view)] = {0}, *fixed[LW_COUNT(v->view)] = {0};
    /* sample number i has noises of its own: those of step 1 come behind the fixed ones */
    int rc = add_samples(v, s, step * v->count, obs, fresh);
    if (rc == 0)
        rc = add_samples(v, s, 0, obs, fixed);
    for (int i = 0; i < v->n_views && rc == 0; i++)
        rc = put_view(v, &v->view[i], fresh[i], fixed[i], row);
    for (int i = 0; i < v->n_views; i++) {
        lw_stats_free(&fresh[i]);
        lw_stats_free(&fixed[i]);
    }
    return rc;
}
