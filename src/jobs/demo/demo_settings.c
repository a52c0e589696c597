/* SPDX-License-Identifier: Apache-2.0 */
/* What the demonstration trains, as configs and as the options a user would type. */
#include "jobs/demo/demo_job.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "formats/formats.h"

static const char *const names[] = {"encoder", "judge", "reader", "drift", "ddpm"};
const char *lw_demo_stage_name(lw_demo_stage_id id)
{
    return names[id];
}

/* Of the time: classifying is learnt quickly, reconstructing pays off longer; drift and DDPM get
 * the same, and take turns. */
static const double shares[LW_DEMO_STAGES] = {0.10, 0.07, 0.03, 0.40, 0.40};

/* ---- configs ---------------------------------------------------------------------------- */

static lw_train_config common(const lw_demo_config *c, double minutes)
{
    return (lw_train_config){.data = c->data,
                             .minutes = minutes,
                             .batch_size = 128,
                             .grad_accum_steps = 1,
                             .adam_beta1 = 0.9,
                             .adam_beta2 = 0.99,
                             .adam_eps = 1e-8,
                             .scheduler = LW_SCHEDULE_COSINE,
                             .lr_floor = 0.05,
                             .ema_decay = 0.995,
                             .log_every = 10,
                             .save_every = 200,
                             .keep_last_k_checkpoints = 2,
                             .seed = c->seed,
                             .threads = c->threads,
                             .conv = c->conv,
                             .dry_run = c->dry_run};
}

static lw_train_encoder_config encoder_config(const lw_demo_config *c, double minutes, int32_t side)
{
    lw_train_encoder_config e = {.train = common(c, minutes),
                                 .width = 16,
                                 .stages = side > 16 ? 4 : 3,
                                 .blocks = 1,
                                 .norm_groups = 8,
                                 .mask_ratio = 0.5,
                                 .mask_patch = 2};
    e.train.learning_rate = 3e-3;
    e.train.weight_decay = 0.01;
    e.train.warmup_steps = 50;
    e.train.grad_clip = 2.0;
    return e;
}

/* Attention in the middle only, 8 groups; one level more for larger pictures. */
static lw_net_config net_config(int32_t side)
{
    return (lw_net_config){.base_channels = 16,
                           .channel_mult = {1, 2, 4, 4},
                           .n_channel_mult = side > 16 ? 4 : 3,
                           .num_res_blocks = 1,
                           .heads = 4,
                           .norm_groups = 8,
                           .class_conditional = LW_YES,
                           .noise_shape = "full"};
}

/* A classifier: of the labels alone, or with junk as one more answer. */
static lw_train_encoder_config classifier_config(const lw_demo_config *c, lw_demo_stage_id id,
                                                 const char *data, double minutes, int32_t side)
{
    lw_train_encoder_config e = encoder_config(c, minutes * shares[id], side);
    e.objective = id == LW_DEMO_JUDGE ? LW_OBJECTIVE_JUDGE : LW_OBJECTIVE_CLASSIFY;
    e.width = 24;
    e.input_noise = 0.15;
    e.train.data = data;
    e.train.seed = c->seed + (id == LW_DEMO_JUDGE ? 7 : 8);
    e.pictures.limit = strcmp(data, c->data) != 0 ? 20000 : 0;
    return e;
}

void lw_demo_settings_fill(lw_demo_settings *s, const lw_demo_config *c, const char *judge_data,
                           const char *reader_data, int32_t side, double minutes)
{
    bool small = side <= 16;
    *s = (lw_demo_settings){.limit = small ? 8192 : 16384};
    memcpy(s->share, shares, sizeof shares);
    s->encoder = encoder_config(c, minutes * shares[LW_DEMO_ENCODER], side);
    s->encoder.pictures.limit = s->limit;

    s->judge = classifier_config(c, LW_DEMO_JUDGE, judge_data, minutes, side);
    s->reader = classifier_config(c, LW_DEMO_READER, reader_data, minutes, side);

    s->drift.train = common(c, minutes * shares[LW_DEMO_DRIFT]);
    s->drift.pictures.limit = s->limit;
    s->drift.train.learning_rate = 1e-3;
    s->drift.train.adam_beta2 = 0.95;
    s->drift.train.warmup_steps = 20;
    s->drift.train.grad_clip = 2.0;
    s->drift.train.sample_every = 100;
    s->drift.train.eval_every = 200; /* twice as many pictures as below: not every hundred */
    s->drift.net = net_config(side);
    s->drift.net.noise_shape = small ? "2x2" : "4x4";
    s->drift.net.latent_dim = small ? 16 : 32;
    s->drift.feature_keys = "col";
    s->drift.temperatures[0] = 0.02f;
    s->drift.temperatures[1] = 0.05f;
    s->drift.temperatures[2] = 0.2f;
    s->drift.n_temperatures = 3;
    s->drift.normalize_over_x = true;
    s->drift.groups = 8;
    s->drift.negatives_per_group = 16;
    s->drift.positives_per_group = 64;
    s->drift.uncond_weight = 1.0;
    s->drift.feature_cache_mb = 2048;

    s->ddpm.train = common(c, minutes * shares[LW_DEMO_DDPM]);
    s->ddpm.pictures.limit = s->limit;
    s->ddpm.train.learning_rate = 1e-3;
    s->ddpm.train.adam_beta2 = 0.999;
    s->ddpm.train.warmup_steps = 20;
    s->ddpm.train.grad_clip = 1.0;
    s->ddpm.train.sample_every = 200;
    s->ddpm.train.eval_every = 400;
    s->ddpm.net = net_config(side);
    s->ddpm.net.zero_init_output = true;
    s->ddpm.timesteps = 1000;
    s->ddpm.eval_steps = 10; /* nearly its best, and a measure takes seconds */
    s->drift.heldout.samples = s->ddpm.heldout.samples = 1000;
}

/* ---- options ---------------------------------------------------------------------------- */

static void set_text(json_t *o, const char *key, const char *v)
{
    json_object_set_new(o, key, json_string(v));
}
static void set_int(json_t *o, const char *key, int64_t v)
{
    json_object_set_new(o, key, json_integer((json_int_t)v));
}
static void set_real(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, lw_json_real(v));
}
static void set_bool(json_t *o, const char *key, bool v)
{
    json_object_set_new(o, key, json_boolean(v));
}

static void train_options(json_t *o, const lw_train_config *t, const lw_picture_config *p)
{
    set_text(o, "data", t->data);
    set_text(o, "output-dir", t->output_dir);
    set_real(o, "minutes", (double)(int64_t)(t->minutes * 1000.0 + 0.5) / 1000.0);
    set_int(o, "limit", p->limit);
    set_bool(o, "flip", p->flip);
    set_int(o, "batch-size", t->batch_size);
    set_real(o, "learning-rate", t->learning_rate);
    set_text(o, "scheduler", "cosine");
    set_real(o, "lr-floor", t->lr_floor);
    set_int(o, "warmup-steps", t->warmup_steps);
    set_real(o, "adam-beta2", t->adam_beta2);
    set_real(o, "weight-decay", t->weight_decay);
    set_real(o, "grad-clip", t->grad_clip);
    set_real(o, "ema-decay", t->ema_decay);
    set_int(o, "save-every", t->save_every);
    set_int(o, "keep-last-k-checkpoints", t->keep_last_k_checkpoints);
    set_int(o, "sample-every", t->sample_every);
    set_int(o, "eval-every", t->eval_every);
    set_int(o, "seed", t->seed);
}

static void net_options(json_t *o, const lw_net_config *n)
{
    json_t *mult = json_array();
    for (int i = 0; i < n->n_channel_mult; i++)
        json_array_append_new(mult, json_integer(n->channel_mult[i]));
    set_int(o, "base-channels", n->base_channels);
    json_object_set_new(o, "channel-mult", mult);
    set_int(o, "num-res-blocks", n->num_res_blocks);
    json_object_set_new(o, "attn-resolutions", json_array());
    set_int(o, "heads", n->heads);
    set_int(o, "norm-groups", n->norm_groups);
    set_real(o, "dropout", n->dropout);
    set_bool(o, "zero-init-output", n->zero_init_output);
    set_int(o, "latent-dim", n->latent_dim);
    set_text(o, "noise-shape", n->noise_shape);
    set_text(o, "class-conditional", "yes");
}

static const char *const objectives[] = {"mae", "classify", "judge"};

static void encoder_options(json_t *o, const lw_train_encoder_config *e)
{
    train_options(o, &e->train, &e->pictures);
    set_text(o, "objective", objectives[e->objective]);
    set_int(o, "width", e->width);
    set_int(o, "stages", e->stages);
    set_int(o, "blocks", e->blocks);
    set_int(o, "norm-groups", e->norm_groups);
    set_real(o, "mask-ratio", e->mask_ratio);
    set_real(o, "input-noise", e->input_noise);
}

json_t *lw_demo_encoder_options(const lw_train_encoder_config *e)
{
    json_t *o = json_object();
    set_text(o, "command", "train encoder");
    encoder_options(o, e);
    return o;
}

static void drift_options(json_t *o, const lw_drift_config *d)
{
    json_t *tau = json_array();
    train_options(o, &d->train, &d->pictures);
    net_options(o, &d->net);
    for (int i = 0; i < d->n_temperatures; i++) /* 0.02, not the float's 0.0199999996 */
        json_array_append_new(
            tau, lw_json_real((double)(int64_t)((double)d->temperatures[i] * 1e4 + 0.5) / 1e4));
    set_text(o, "encoder", d->encoder);
    set_text(o, "feature-keys", d->feature_keys);
    json_object_set_new(o, "feature-temperatures", tau);
    set_int(o, "groups", d->groups);
    set_int(o, "negatives-per-group", d->negatives_per_group);
    set_int(o, "positives-per-group", d->positives_per_group);
    set_int(o, "feature-cache", d->feature_cache_mb);
    set_int(o, "eval-samples", LW_HELDOUT_SAMPLES);
}

static void heldout_options(json_t *o, const lw_heldout_config *h)
{
    if (h->eval_encoder)
        set_text(o, "eval-encoder", h->eval_encoder);
    set_int(o, "eval-samples", h->samples);
}

json_t *lw_demo_options(const lw_demo_settings *s, lw_demo_stage_id id)
{
    json_t *o = json_object();
    set_text(o, "command",
             id == LW_DEMO_DRIFT  ? "train drift"
             : id == LW_DEMO_DDPM ? "train ddpm"
                                  : "train encoder");
    switch (id) {
    case LW_DEMO_ENCODER:
    case LW_DEMO_JUDGE:
    case LW_DEMO_READER:
        encoder_options(o, id == LW_DEMO_ENCODER ? &s->encoder
                           : id == LW_DEMO_JUDGE ? &s->judge
                                                 : &s->reader);
        break;
    case LW_DEMO_DRIFT:
        drift_options(o, &s->drift);
        heldout_options(o, &s->drift.heldout);
        break;
    default:
        train_options(o, &s->ddpm.train, &s->ddpm.pictures);
        net_options(o, &s->ddpm.net);
        set_int(o, "timesteps", s->ddpm.timesteps);
        set_int(o, "ddim-steps", s->ddpm.eval_steps);
        heldout_options(o, &s->ddpm.heldout);
        break;
    }
    return o;
}

/* A scalar as one word; lists with commas. */
static void add_value(const json_t *v, lw_str *out)
{
    char buf[32];
    if (json_is_string(v))
        lw_str_add(out, json_string_value(v));
    else if (json_is_integer(v))
        lw_str_addf(out, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        lw_str_add(out, lw_f64_text(buf, json_real_value(v)));
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
        lw_str_add(out, i ? "," : "");
        add_value(json_array_get(v, i), out);
    }
    if (json_is_array(v) && json_array_size(v) == 0)
        lw_str_add(out, "''");
}

void lw_demo_command(const json_t *options, lw_str *out)
{
    const char *key;
    json_t *value;
    size_t column = out->len;
    lw_str_addf(out, "leeway %s", json_string_value(json_object_get(options, "command")));
    json_object_foreach((json_t *)(uintptr_t)options, key, value)
    {
        LW_CLEANUP(lw_str_clear) lw_str word = {0};
        if (strcmp(key, "command") == 0)
            continue;
        if (json_is_boolean(value)) {
            lw_str_addf(&word, "--%s%s", json_is_true(value) ? "" : "no-", key);
        } else {
            lw_str_addf(&word, "--%s ", key);
            add_value(value, &word);
        }
        bool wrap = out->len - column + word.len > 110;
        lw_str_add(out, wrap ? " \\\n    " : " ");
        column = wrap ? out->len - 4 : column;
        lw_str_add(out, lw_str_c(&word));
    }
    lw_str_add(out, "\n");
}
