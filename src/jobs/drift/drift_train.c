/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training a drifting generator (Deng et al. 2026): pictures in one evaluation, pushed along the
 * drift field in the features of a frozen encoder. Groups are classes; negatives are the group's
 * own pictures. A leaf is whole groups: the field's S and lambda are those of its groups. With a
 * condition a group is one crop of a clip: its only positive is the clean crop, its negatives are what
 * several noises make of the same damaged one.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jobs/drift/drift_loss.h"
#include "jobs/drift/drift_run.h"

static const char loss_note[] = "the drift loss is flat by construction (every temperature is "
                                "scaled to unit size); watch raw_drift_*, "
                                "S, grad_norm and the Frechet distance instead";

static int32_t classes_of(const drift_run *r)
{
    return r->g.network.classes;
}

/* ---- callbacks of the training loop ---------------------------------------------------------- */

void lw_drift_feed_pictures(drift_run *r, lw_exec *e, int64_t step, int64_t first, int64_t n)
{
    const lw_drift_draws *d = &r->draws;
    int64_t *rows = lw_exec_write(e, "rows");
    for (int64_t i = 0; i < n; i++)
        rows[i] = step * d->groups * r->n + first + i;
    int32_t *labels = classes_of(r) ? lw_exec_write(e, "labels") : NULL;
    for (int64_t i = 0; labels && i < n; i++)
        labels[i] = d->group_class[(first + i) / r->n];
    float *told = r->g.network.alpha > 0.0f ? lw_exec_write(e, "alpha") : NULL;
    for (int64_t i = 0; told && i < n; i++)
        told[i] = (float)d->alpha[(first + i) / r->n];
}

/* Features of some real rows of a step: kept ones are read in place, others fetched. */
static int fetch(drift_run *r, lw_exec *e, const char *what, void *const *kept, int64_t first,
                 const int64_t *rows, int64_t n)
{
    void *dst[LW_MAX_FEATURE_KEYS];
    char name[LW_DRIFT_NAME];
    size_t size = lw_dtype_size(lw_drift_real_type(r));
    for (int k = 0; k < r->keys.n; k++) {
        lw_drift_name(name, what, &r->keys.key[k]);
        if (kept[k])
            LW_TRY(lw_exec_bind(e, name, (char *)kept[k] + lw_drift_kept_at(r, k, first) * size));
        else
            dst[k] = lw_exec_write(e, name);
    }
    return kept[0] ? 0 : lw_drift_sources_fetch(r, rows + first, n, dst);
}

/* Temperatures from temperature_anneal down to 1, by equal ratios; the last steps are the finishing phase. */
static void place(void *self, int64_t step, int64_t goal)
{
    drift_run *r = self;
    const lw_drift_config *c = &r->c;
    double end = c->temperature_anneal_end * (double)goal,
           left = 1.0 - (double)step / LW_MAX(end, 1.0);
    if (lw_drift_anneals(r))
        r->heat = (float)pow(c->temperature_anneal, LW_MAX(left, 0.0));
    r->finishing = goal > 0 && step >= goal - (int64_t)(c->finish_frechet * (double)goal);
}

void lw_drift_feed_heat(const drift_run *r, lw_exec *e)
{
    float *heat = lw_exec_write(e, "heat"); /* NULL: they are as they are, or no field is in it */
    if (heat)
        *heat = r->heat;
}

int lw_drift_feed_real(drift_run *r, lw_exec *e, int32_t first, int32_t groups)
{
    const lw_drift_draws *d = &r->draws;
    lw_drift_feed_heat(r, e);
    LW_TRY(fetch(r, e, "pos", r->kept.pos, (int64_t)first * r->np, d->positive,
                 (int64_t)groups * r->np));
    if (!r->nu)
        return 0;
    float *w = lw_exec_write(e, "weight");
    for (int32_t i = 0; i < groups; i++)
        w[i] = (float)lw_drift_draws_weight(d, first + i, r->n);
    return fetch(r, e, "unc", r->kept.unc, (int64_t)first * r->nu, d->unconditional,
                 (int64_t)groups * r->nu);
}

static int feed(void *self, int64_t leaf)
{
    drift_run *r = self;
    int64_t step = leaf / r->g.p.leaves.n, part = leaf % r->g.p.leaves.n;
    int32_t groups = (int32_t)(r->g.p.leaves.size / r->n);
    if (lw_drift_of_clips(r)) {
        lw_drift_feed_heat(r, r->g.p.exec);
        return lw_picture_run_feed(&r->g.p, leaf, false);
    }
    if (r->chunked)
        return lw_drift_chunks_leaf(r, step, part);
    LW_TRY(lw_drift_draws_of(&r->draws, step));
    lw_drift_feed_pictures(r, r->g.p.exec, step, part * r->g.p.leaves.size, r->g.p.leaves.size);
    return lw_drift_feed_real(r, r->g.p.exec, (int32_t)part * groups, groups);
}

static const float *stats_of(const drift_run *r, int k)
{
    char name[LW_DRIFT_NAME];
    return r->chunked ? r->stats[k]
                      : lw_exec_read(r->g.p.exec, lw_drift_name(name, "stats", &r->keys.key[k]));
}

static void put(json_t *row, const char *name, double x)
{
    json_object_set_new(row, name, lw_json_real(x));
}

/* How much unconditional pictures weigh, and of all that pushes. */
static void report_unconditional(const drift_run *r, json_t *row)
{
    double weight = 0, share = 0, groups = r->draws.groups;
    for (int32_t g = 0; r->nu && g < r->draws.groups; g++) {
        double w = lw_drift_draws_weight(&r->draws, g, r->n);
        weight += w / groups;
        share += r->nu * w / (r->nu * w + r->n - 1) / groups;
    }
    put(row, "mean_unconditional_weight", weight);
    put(row, "mean_unconditional_negative_fraction", share);
}

/* S and the last lambda of each key; averaged over keys S, the drift that the loss is of, and per
 * temperature lambda and the raw drift sqrt(mean V^2). */
static int report(void *self, json_t *row)
{
    drift_run *r = self;
    int32_t k_tau = r->c.n_temperatures, keys = r->keys.n;
    double scale = 0.0, drift = 0.0, all = 0.0, raw[LW_DRIFT_MAX_TAU] = {0},
           lambda[LW_DRIFT_MAX_TAU] = {0};
    char name[64];
    if (r->finishing) { /* no field was taken */
        put(row, "finish_frechet", (double)r->loss);
        lw_drift_draws_report(&r->draws, row);
        return 0;
    }
    for (int k = 0; k < keys; k++) {
        const float *s = stats_of(r, k);
        scale += (double)s[0] / keys;
        drift += sqrt(fmax((double)s[2], 0.0)) / keys;
        snprintf(name, sizeof name, "scale/%s", r->keys.key[k].name);
        put(row, name, (double)s[0]);
        for (int32_t t = 0; t < k_tau; t++) {
            lambda[t] += (double)s[3 + t] / keys;
            raw[t] += sqrt((double)s[3 + k_tau + t]) / keys;
        }
        snprintf(name, sizeof name, "lambda/%s", r->keys.key[k].name);
        put(row, name, (double)s[3 + k_tau - 1]);
    }
    put(row, "S", scale);
    if (lw_drift_anneals(r))
        put(row, "temperature_scale", (double)r->heat);
    put(row, "mean_drift_norm", drift);
    if (!lw_drift_of_clips(r)) {
        lw_drift_draws_report(&r->draws, row);
        report_unconditional(r, row);
    } else if (r->c.pixel_weight > 0) {
        put(row, "pixel_error",
            (double)*(const float *)lw_exec_read(r->g.p.exec, "stats/pixel_error"));
    }
    for (int32_t t = 0; t < k_tau; t++) {
        snprintf(name, sizeof name, "raw_drift_%g", (double)r->c.temperatures[t]);
        put(row, name, raw[t]);
        snprintf(name, sizeof name, "lambda_%g", (double)r->c.temperatures[t]);
        put(row, name, lambda[t]);
        all += lambda[t] / k_tau;
    }
    put(row, "mean_drift_scale", all);
    return 0;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

/* Leaves of whole groups; a step in parts may cut them again. */
static int cut_groups(drift_run *r, int32_t groups)
{
    const lw_train_config *c = &r->c.train;
    if (r->n < 2)
        return lw_fail(LW_EUSAGE,
                       "--negatives-per-group %d: at least 2, so that samples repel each other",
                       r->n);
    bool parts = lw_drift_parts_asked(r);
    LW_TRY(lw_train_leaves(c, (int64_t)groups * r->n, parts ? 1 : r->n,
                           "--groups times --negatives-per-group", &r->g.p.leaves));
    r->groups = (int32_t)(r->g.p.leaves.size / r->n);
    r->draws.groups = (int32_t)(lw_drift_pictures(r) / r->n);
    return 0;
}

/* Groups are samples of the clip. */
static int choose_clip_groups(drift_run *r)
{
    const lw_drift_config *c = &r->c;
    int32_t groups = c->groups ? c->groups : 8;
    r->n = c->negatives_per_group ? c->negatives_per_group : 4;
    r->np = 1;
    if (lw_drift_parts_asked(r) || c->use_queue || lw_alpha_used(&c->alpha))
        return lw_fail(LW_EUSAGE,
                       "--condition: groups are crops: leave out --class-chunk, --memory-limit, "
                       "--finish-frechet, --use-queue and --alpha-...");
    if (c->positives_per_group > 1 || c->unconditional_per_group > 0)
        return lw_fail(LW_EUSAGE,
                       "--condition: a group has one positive, its clean frame: leave out "
                       "--positives-per-group and --unconditional-per-group");
    LW_TRY(cut_groups(r, groups));
    return lw_picture_run_clips(&r->g.p, r->n);
}

/* Groups default to the classes the batch has room for; without labels there is one group. */
static int choose_groups(drift_run *r)
{
    const lw_drift_config *c = &r->c;
    bool labels = classes_of(r) > 0;
    if (lw_drift_of_clips(r))
        return choose_clip_groups(r);
    int32_t groups = c->groups ? c->groups : labels ? LW_MIN(classes_of(r), 8) : 1;
    r->n = c->negatives_per_group ? c->negatives_per_group : labels ? 16 : 128;
    r->np = c->positives_per_group ? c->positives_per_group : labels ? 64 : 128;
    r->nu = c->unconditional_per_group;
    if (!labels && groups != 1)
        return lw_fail(LW_EUSAGE, "--groups %d needs labels: without them there is one group",
                       groups);
    LW_TRY(cut_groups(r, groups));
    r->draws.np = r->np;
    r->draws.nu = r->nu;
    r->draws.flip = c->pictures.flip && r->g.p.data->flip;
    return lw_drift_draws_open(&r->draws, c, r->g.p.data, labels);
}

/* Kept features, and what --eval-every measures. */
static int prepare(void *self, lw_train_job *job)
{
    drift_run *r = self;
    const lw_drift_config *c = &r->c;
    LW_TRY(lw_picture_run_prepare(&r->g.p));
    LW_TRY(lw_drift_sources_fill(r));
    LW_TRY(lw_drift_finish_open(r));
    return lw_generator_measure(&r->g, lw_drift_sources_measured(r), &c->heldout, job);
}

static void close_run(void *self)
{
    drift_run *r = self;
    lw_drift_finish_close(r);
    lw_drift_sources_close(r);
    lw_drift_draws_clear(&r->draws);
    lw_drift_kept_close(r);
    lw_drift_phases_clear(r);
    lw_generator_clear(&r->g);
    lw_free(&r);
}

static int set_up(void *self, lw_train_job *job)
{
    drift_run *r = self;
    const lw_drift_config *c = &r->c;
    if (c->variant == LW_DRIFT_TAU_TIMES_DIM)
        lw_log(LW_LOG_WARN, "drift",
               "tau-times-dim reproduces an early port whose kernel is nearly flat: for "
               "parity studies, not for good pictures");
    r->g.noise.prediction = LW_PREDICT_SAMPLE;
    r->c.net.alpha = (float)lw_alpha_most(&c->alpha);
    LW_TRY(lw_generator_init(&r->g, LW_METHOD_DRIFT, &c->net));
    LW_TRY(choose_groups(r));
    LW_TRY(lw_drift_sources_open(r));
    LW_TRY(lw_drift_finish_check(r));
    LW_TRY(lw_drift_sources_real(r, job));
    job->kept_bytes += lw_drift_finish_bytes(r);
    return lw_drift_fit(r, job);
}

static int begin(const lw_drift_config *c, const lw_observer *obs, lw_train_job *job)
{
    drift_run *r = lw_calloc(1, sizeof *r);
    if (!r)
        return LW_ENOMEM;
    r->c = *c;
    r->heat = 1.0f;
    *job = lw_generator_job("train drift", &r->g, &r->c.train, &r->c.pictures, obs);
    job->set_up = set_up;
    job->prepare = prepare;
    job->close = close_run;
    job->feed = feed;
    if (lw_drift_anneals(r) || r->c.finish_frechet > 0.0) {
        job->place = place;
        job->follows_goal = true;
    }
    job->report = report;
    job->loss_note = loss_note;
    job->predict = lw_drift_predict;
    job->conclude = lw_drift_conclude;
    return 0;
}

int lw_train_drift_open(const lw_drift_config *c, const lw_observer *obs, lw_training **out)
{
    lw_train_job job;
    LW_TRY(begin(c, obs, &job));
    return lw_training_open(&job, &((drift_run *)job.self)->c.train, obs, out);
}

int lw_train_drift(const lw_drift_config *c, const lw_observer *obs, lw_train_result *out)
{
    lw_train_job job;
    LW_TRY(lw_generator_config_check(&c->pictures, &c->heldout, c->train.eval_every));
    LW_TRY(begin(c, obs, &job));
    return lw_train_run(&job, &c->train, obs, out);
}
