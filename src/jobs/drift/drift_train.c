/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training a drifting generator (Deng et al. 2026): pictures in one evaluation, pushed along the
 * drift field in the features of a frozen encoder. Groups are classes; negatives are the group's
 * own pictures. A leaf is whole groups: the field's S and lambda are those of its groups. With a
 * condition a group is one crop of a clip: its only positive is the clean crop, its negatives are what
 * several noises make of the same damaged one.
 */
#include "train/pictures/train_generator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "jobs/drift/drift_job.h"

typedef struct drift_run {
    lw_generator g; /* first: its callbacks take the run for it */
    lw_drift_config c;
    lw_network *encoder;
    lw_feature_set keys;
    lw_real_features *real;
    char features_note[LW_REAL_FEATURES_NOTE + 64];
    lw_class_sampler *classes;
    int32_t groups, n, np, nu;         /* groups: of a leaf */
    int64_t drawn;                     /* step of what follows, -1: none */
    int32_t *group_class;              /* of a step's groups */
    int64_t *positive, *unconditional; /* rows */
    bool flip;                         /* they may be mirrored */
    int64_t *wanted;                   /* of a leaf: those rows, or their mirror images */
} drift_run;

static const char loss_note[] = "the drift loss is flat by construction (every temperature is "
                                "scaled to unit size); watch raw_drift_*, "
                                "S, grad_norm and the Frechet distance instead";

static bool of_clips(const drift_run *r)
{
    return r->c.pictures.clip.condition != NULL;
}

static int32_t classes_of(const drift_run *r)
{
    return r->g.network.classes;
}

/* ---- the step's graph ------------------------------------------------------------------------ */

static lw_dtype type_of_real_features(const drift_run *r)
{
    return r->c.feature_type ? LW_BF16 : LW_F32;
}

static lw_val input_real_features(const drift_run *r, lw_graph *g, const char *what,
                                  const lw_feature_key *k, int32_t rows)
{
    char name[40];
    snprintf(name, sizeof name, "%s/%s", what, k->name);
    lw_val x = lw_input(g, name, lw_type_of(type_of_real_features(r), 3, rows, k->slots, k->c));
    return type_of_real_features(r) == LW_F32 ? x : lw_cast(g, x, LW_F32, LW_NOVAL);
}

static lw_attr_drift field_of(const drift_run *r, const lw_feature_key *k)
{
    const lw_drift_config *c = &r->c;
    lw_attr_drift a = {.groups = r->groups,
                       .n = r->n,
                       .np = r->np,
                       .nu = r->nu,
                       .slots = k->slots,
                       .c = k->c,
                       .n_tau = c->n_temperatures,
                       .normalize_over_x = c->normalize_over_x,
                       .variant = c->variant,
                       .products = c->field_precision};
    memcpy(a.tau, c->temperatures, sizeof a.tau);
    return a;
}

static void build_features(const drift_run *r, lw_graph *g, lw_val images,
                           lw_val v[LW_MAX_FEATURE_KEYS])
{
    lw_taps taps;
    lw_network_append(r->encoder, g, (lw_network_in){.x = images}, &taps);
    lw_features_build(g, &r->keys, images, &taps, v);
}

/* Sum over keys of the field's loss; each key's statistics become an output. real: the positives;
 * without them their features are inputs. */
static lw_val build_loss(const drift_run *r, lw_graph *g, lw_val images, lw_val real)
{
    lw_val v[LW_MAX_FEATURE_KEYS], p[LW_MAX_FEATURE_KEYS] = {{0}}, total = LW_NOVAL,
                                   weight = LW_NOVAL;
    const char *up = lw_scope_part(g, "encoder");
    build_features(r, g, images, v);
    if (lw_val_ok(real))
        build_features(r, g, real, p);
    lw_scope_part(g, "field");
    if (r->nu)
        weight = lw_input(g, "weight", lw_type_of(LW_F32, 1, r->groups));
    for (int k = 0; k < r->keys.n; k++) {
        const lw_feature_key *key = &r->keys.key[k];
        lw_attr_drift a = field_of(r, key);
        const char *field = lw_scope_push(g, key->name);
        lw_val pos = lw_val_ok(real) ? p[k]
                                     : input_real_features(r, g, "pos", key, r->groups * r->np);
        lw_val unc = LW_NOVAL;
        if (r->nu)
            unc = input_real_features(r, g, "unc", key, r->groups * r->nu);
        lw_drift_out o = lw_drift_field(g, v[k], pos, unc, weight, &a);
        char name[40];
        snprintf(name, sizeof name, "stats/%s", key->name);
        lw_graph_output_add(g, name, o.stats, LW_NOVAL);
        total = lw_val_ok(total) ? lw_add(g, total, o.loss) : o.loss;
        lw_scope_set(g, field);
    }
    lw_scope_set(g, up);
    return total;
}

/* Of each group the one picture, as often as it has negatives: [G,..] -> [G n,..]. */
static lw_val for_each(const drift_run *r, lw_graph *g, lw_val x)
{
    lw_type t = lw_val_type(g, x);
    lw_val one = lw_reshape(g, x, lw_type_of(LW_F32, 2, t.dim[0], t.dim[1] * t.dim[2] * t.dim[3]));
    lw_val all = one;
    for (int32_t i = 1; i < r->n; i++)
        all = lw_concat(g, all, one, 1);
    t.dim[0] *= r->n;
    return lw_reshape(g, all, t);
}

/* Beside the field, which finds where the clean frames are, the way there by least squares. */
static lw_val add_pixels(const drift_run *r, lw_graph *g, lw_val loss, lw_val images, lw_val real)
{
    if (r->c.pixel_weight <= 0)
        return loss;
    lw_val error = lw_mean(g, lw_sqr(g, lw_sub(g, images, for_each(r, g, real))), LW_OVER_ALL);
    lw_graph_output_add(g, "stats/pixel_error", error, LW_NOVAL);
    return lw_add(g, loss, lw_scale(g, error, (float)r->c.pixel_weight));
}

static int build_step(const drift_run *r, lw_graph *g)
{
    lw_network u = r->g.network;
    int32_t batch = r->groups * r->n, side = u.noise_size ? u.noise_size : u.image_size;
    lw_taps taps;
    lw_val rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch));
    lw_scope_part(g, "generator");
    lw_network_in in = {.x = lw_random(g, "drift.noise", LW_RANDOM_NORMAL, 0,
                                       lw_type_of(LW_F32, 4, batch, side, side, u.channels), rows),
                        .rows = rows};
    lw_network_draw(&u, g, "drift", rows, &in);
    if (u.classes)
        in.classes = lw_input(g, "labels", lw_type_of(LW_I32, 1, batch));
    lw_val real = LW_NOVAL;
    if (of_clips(r)) {
        lw_type t = lw_type_of(LW_F32, 4, r->groups, u.image_size, u.image_size, u.channels);
        real = lw_input(g, "images", t);
        t.dim[3] = u.condition;
        in.condition = for_each(r, g, lw_input(g, "condition", t));
    }
    u.training = true;
    lw_network_append(&u, g, in, &taps);
    lw_val images = lw_tap_find(&taps, "y"), loss = build_loss(r, g, images, real);
    lw_scope_set(g, "");
    if (lw_val_ok(real))
        loss = add_pixels(r, g, loss, images, real);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    return lw_grad_params(g, loss, LW_NOVAL);
}

/* ---- callbacks of the training loop ---------------------------------------------------------- */

/* Features of leaf i of a step: n of its rows, mirrored by one word of (seed, "drift.flip", step,
 * draw). */
static int fetch(drift_run *r, const char *what, int64_t step, int64_t i, const int64_t *rows,
                 int64_t n)
{
    const lw_rng_key flips = lw_rng_key_of((uint64_t)r->c.train.seed, lw_hash_name("drift.flip"));
    void *dst[LW_MAX_FEATURE_KEYS];
    for (int64_t k = 0; k < n; k++)
        r->wanted[k] = rows[i * n + k] +
                       (r->flip &&
                                (lw_rng_word(flips, (uint32_t)step, (uint64_t)(i * n + k), 0) & 1u)
                            ? r->g.p.data->n
                            : 0);
    for (int k = 0; k < r->keys.n; k++) {
        char name[40];
        snprintf(name, sizeof name, "%s/%s", what, r->keys.key[k].name);
        dst[k] = lw_exec_write(r->g.p.exec, name);
    }
    return lw_real_features_fetch(r->real, r->wanted, n, dst);
}

static int feed(void *self, int64_t leaf)
{
    drift_run *r = self;
    int64_t step = leaf / r->g.p.leaves.n, part = leaf % r->g.p.leaves.n,
            batch = r->g.p.leaves.size;
    if (of_clips(r))
        return lw_picture_run_feed(&r->g.p, leaf, false);
    int64_t *rows = lw_exec_write(r->g.p.exec, "rows");
    if (r->drawn != step)
        lw_class_sampler_draw(r->classes, step, r->group_class, r->positive, r->unconditional);
    r->drawn = step;
    for (int64_t i = 0; i < batch; i++)
        rows[i] = leaf * batch + i;
    if (classes_of(r)) {
        int32_t *labels = lw_exec_write(r->g.p.exec, "labels");
        for (int64_t i = 0; i < batch; i++)
            labels[i] = r->group_class[part * r->groups + i / r->n];
    }
    LW_TRY(fetch(r, "pos", step, part, r->positive, (int64_t)r->groups * r->np));
    if (!r->nu)
        return 0;
    float *w = lw_exec_write(r->g.p.exec, "weight");
    for (int32_t i = 0; i < r->groups; i++)
        w[i] = (float)r->c.uncond_weight;
    return fetch(r, "unc", step, part, r->unconditional, (int64_t)r->groups * r->nu);
}

/* S, and per temperature the raw drift sqrt(mean V^2), averaged over keys; S and raw drift of each
 * key. */
static int report(void *self, json_t *row)
{
    drift_run *r = self;
    int32_t k_tau = r->c.n_temperatures;
    double scale = 0.0, raw[LW_DRIFT_MAX_TAU] = {0};
    char name[64];
    for (int k = 0; k < r->keys.n; k++) {
        snprintf(name, sizeof name, "stats/%s", r->keys.key[k].name);
        const float *s = lw_exec_read(r->g.p.exec, name);
        scale += (double)s[0] / r->keys.n;
        snprintf(name, sizeof name, "scale/%s", r->keys.key[k].name);
        json_object_set_new(row, name, lw_json_real((double)s[0]));
        for (int32_t t = 0; t < k_tau; t++)
            raw[t] += sqrt((double)s[3 + k_tau + t]) / r->keys.n;
        snprintf(name, sizeof name, "lambda/%s", r->keys.key[k].name);
        json_object_set_new(row, name, lw_json_real((double)s[3 + k_tau - 1]));
    }
    json_object_set_new(row, "S", lw_json_real(scale));
    if (of_clips(r) && r->c.pixel_weight > 0)
        json_object_set_new(
            row, "pixel_error",
            lw_json_real((double)*(const float *)lw_exec_read(r->g.p.exec, "stats/pixel_error")));
    for (int32_t t = 0; t < k_tau; t++) {
        snprintf(name, sizeof name, "raw_drift_%g", (double)r->c.temperatures[t]);
        json_object_set_new(row, name, lw_json_real(raw[t]));
    }
    return 0;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

/* Leaves of whole groups, of which a micro-batch has `groups`. */
static int cut_groups(drift_run *r, int32_t groups)
{
    if (r->n < 2)
        return lw_fail(LW_EUSAGE,
                       "--negatives-per-group %d: at least 2, so that samples repel each other",
                       r->n);
    LW_TRY(lw_train_leaves(&r->c.train, (int64_t)groups * r->n, r->n,
                           "--groups times --negatives-per-group", &r->g.p.leaves));
    r->groups = (int32_t)(r->g.p.leaves.size / r->n);
    return 0;
}

/* Groups are samples of the clip. */
static int choose_clip_groups(drift_run *r)
{
    const lw_drift_config *c = &r->c;
    int32_t groups = c->groups ? c->groups : 8;
    r->n = c->negatives_per_group ? c->negatives_per_group : 4;
    r->np = 1;
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
    if (of_clips(r))
        return choose_clip_groups(r);
    int32_t groups = c->groups ? c->groups : labels ? LW_MIN(classes_of(r), 8) : 1;
    r->n = c->negatives_per_group ? c->negatives_per_group : labels ? 16 : 128;
    r->np = c->positives_per_group ? c->positives_per_group : labels ? 64 : 128;
    r->nu = c->unconditional_per_group;
    if (!labels && groups != 1)
        return lw_fail(LW_EUSAGE, "--groups %d needs labels: without them there is one group",
                       groups);
    LW_TRY(cut_groups(r, groups));
    r->drawn = -1;
    int64_t all = r->groups * r->g.p.leaves.n; /* of a step */
    const lw_class_opts o = {.seed = (uint64_t)c->train.seed,
                             .groups = (int32_t)all,
                             .positives = r->np,
                             .unconditional = r->nu,
                             .rule = LW_CLASS_DISTINCT,
                             .ignore_labels = !labels};
    r->group_class = lw_calloc((size_t)all, sizeof *r->group_class);
    r->positive = lw_calloc((size_t)all * (size_t)r->np, sizeof *r->positive);
    r->unconditional = lw_calloc((size_t)all * (size_t)r->nu + 1u, sizeof *r->unconditional);
    r->wanted = lw_calloc((size_t)r->groups * (size_t)LW_MAX(r->np, r->nu), sizeof *r->wanted);
    if (!r->group_class || !r->positive || !r->unconditional || !r->wanted)
        return LW_ENOMEM;
    return lw_class_sampler_new(r->g.p.data, &o, &r->classes);
}

static int open_features(drift_run *r)
{
    const lw_drift_config *c = &r->c;
    char fit[64];
    LW_TRY(lw_encoder_open(c->encoder ? c->encoder : "none", &r->encoder));
    LW_TRY(lw_encoder_fit(r->encoder, c->encoder_size, c->encoder_resize));
    if (*lw_encoder_fit_text(r->encoder, r->g.network.image_size, r->g.network.image_size, fit))
        lw_observe_say(r->g.p.obs, "for the encoder pictures are %s", fit);
    const char *keys = c->feature_keys ? c->feature_keys : r->encoder->dir ? "col" : "pixels";
    return lw_features_parse(keys, r->encoder, r->g.network.image_size, r->g.network.channels,
                             &r->keys);
}

/* Kept features are memory, others are time: both are part of the prediction. */
static void note_real_features(drift_run *r, lw_train_job *job)
{
    const lw_real_features_cost c = lw_real_features_get_cost(r->real, (int64_t)r->groups * r->np),
                                u = lw_real_features_get_cost(r->real, (int64_t)r->groups * r->nu);
    char note[LW_REAL_FEATURES_NOTE];
    lw_real_features_note(r->real, note);
    snprintf(r->features_note, sizeof r->features_note, "%s%s", note,
             !c.kept && type_of_real_features(r) == LW_F32 ? ", half of it with --feature-type bf16"
                                                           : "");
    job->note = r->features_note;
    job->kept_bytes = c.kept ? c.bytes : 0;
    job->side_flops = c.kept ? 0.0 : c.flops + u.flops;
}

static int open_real_features(drift_run *r, lw_train_job *job)
{
    const lw_drift_config *c = &r->c;
    job->frozen_bytes = r->encoder->store ? lw_store_bytes(r->encoder->store) : 0;
    if (of_clips(r)) /* are part of the step */
        return 0;
    const lw_real_features_opts o = {.cache_bytes = (int64_t)c->feature_cache_mb << 20,
                                     .disk_bytes = (int64_t)c->feature_disk_mb << 20,
                                     .conv = c->train.conv,
                                     .precision = c->train.precision,
                                     .type = type_of_real_features(r),
                                     .flip = r->flip};
    LW_TRY(lw_real_features_new(r->g.p.dev, r->g.p.data, r->encoder, &r->keys, &o, &r->real));
    note_real_features(r, job);
    return 0;
}

/* Kept features, and what --eval-every measures. */
static int prepare(void *self, lw_train_job *job)
{
    drift_run *r = self;
    const lw_drift_config *c = &r->c;
    if (r->real) {
        lw_observe_say(r->g.p.obs, "real features: %s", r->features_note);
        LW_TRY(lw_real_features_fill(r->real, r->g.p.obs));
    }
    return lw_generator_measure(&r->g, c->encoder, &c->heldout, job);
}

static void close_run(void *self)
{
    drift_run *r = self;
    lw_real_features_free(&r->real);
    lw_class_sampler_free(&r->classes);
    lw_free(&r->group_class);
    lw_free(&r->positive);
    lw_free(&r->unconditional);
    lw_free(&r->wanted);
    lw_generator_clear(&r->g);
    lw_network_close(&r->encoder);
    lw_free(&r);
}

static int set_up(void *self, lw_train_job *job)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    drift_run *r = self;
    const lw_drift_config *c = &r->c;
    if (c->variant == LW_DRIFT_TAU_TIMES_DIM)
        lw_log(LW_LOG_WARN, "drift",
               "tau-times-dim reproduces an early port whose kernel is nearly flat: for "
               "parity studies, not for good pictures");
    r->g.prediction = LW_PREDICT_SAMPLE;
    LW_TRY(lw_generator_init(&r->g, LW_METHOD_DRIFT, &c->net));
    r->flip = c->pictures.flip && r->g.p.data->flip;
    LW_TRY(choose_groups(r));
    LW_TRY(open_features(r));
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build_step(r, g));
    LW_TRY(lw_picture_run_job(&r->g.p, g, job));
    return open_real_features(r, job);
}

static int begin(const lw_drift_config *c, const lw_observer *obs, lw_train_job *job)
{
    drift_run *r = lw_calloc(1, sizeof *r);
    if (!r)
        return LW_ENOMEM;
    r->c = *c;
    *job = lw_generator_job("train drift", &r->g, &r->c.train, &r->c.pictures, obs);
    job->set_up = set_up;
    job->prepare = prepare;
    job->close = close_run;
    job->feed = feed;
    job->report = report;
    job->loss_note = loss_note;
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
