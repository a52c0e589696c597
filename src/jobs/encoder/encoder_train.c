/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training Leeway's own encoder: `mae` hides cells of the picture and reconstructs them (He et al.
 * 2022, as scaled down for drifting by Deng et al. 2026), `classify` predicts the label, `distill` the
 * features of another network, `contrastive` tells pictures apart by two views of each.
 */

#include "data/data.h"
#include "eval/eval.h"
#include "models/models.h"
#include "jobs/encoder/encoder_job.h"
#include "jobs/encoder/encoder_contrast.h"
#include "jobs/encoder/encoder_distill.h"
#include "jobs/encoder/encoder_judge.h"
#include "jobs/encoder/encoder_mae.h"
#include "jobs/encoder/encoder_neighbours.h"
#include "jobs/encoder/encoder_settle.h"
#include "session/session_forward.h"

typedef struct encoder_run {
    const lw_train_encoder_config *c;
    lw_picture_run p;
    lw_encoder_config net;
    lw_encoder_mae mae;
    lw_junk *junk; /* of a judge */
    lw_distill *distill;
    lw_contrast *contrast;
    lw_settle *settle;    /* of BatchNorm */
    lw_picture_held held; /* of a classifier, as what follows */
    lw_forward *test;
} encoder_run;

/* Of a leaf; of contrast two views of each picture. */
static lw_type image_type(const encoder_run *r)
{
    int64_t n = r->p.leaves.size * (r->contrast ? 2 : 1);
    return lw_type_of(LW_F32, 4, (int32_t)n, r->p.data->h, r->p.data->w, r->p.data->channels);
}

/* x + s e with s uniform in [0, input_noise] per picture: makes a classifier look past
 * pixel noise. */
static lw_val add_noise(const encoder_run *r, lw_graph *g, lw_val x, lw_val rows)
{
    bool judge = r->c->objective == LW_OBJECTIVE_JUDGE;
    int32_t batch = (int32_t)r->p.leaves.size;
    if (r->c->input_noise <= 0.0)
        return x;
    lw_val e = lw_random(g, judge ? "judge.noise" : "encoder.noise", LW_RANDOM_NORMAL, 0,
                         image_type(r), rows);
    lw_val s = lw_random(g, judge ? "judge.noise_scale" : "encoder.noise_scale", LW_RANDOM_UNIFORM,
                         0, lw_type_of(LW_F32, 2, batch, 1), rows);
    s = lw_scale(g, lw_reshape(g, s, lw_type_of(LW_F32, 4, batch, 1, 1, 1)),
                 (float)r->c->input_noise);
    return lw_add(g, x, lw_mul(g, e, s));
}

static int build_step(const encoder_run *r, lw_graph *g)
{
    int32_t batch = (int32_t)r->p.leaves.size;
    lw_val x = lw_input(g, "images", image_type(r)),
           rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch));
    lw_builder b = {.g = g, .params = lw_store_params(r->p.store), .training = true, .rows = rows};
    lw_taps taps = {0};
    lw_val loss;
    if (r->c->objective == LW_OBJECTIVE_MAE) {
        loss = lw_encoder_mae_loss(&r->mae, &b, x);
    } else if (r->distill) {
        lw_encoder_net(&b, &r->net, x, &taps);
        loss = lw_distill_loss(r->distill, &b, &taps);
    } else if (r->contrast) {
        lw_encoder_net(&b, &r->net, x, &taps);
        loss = lw_contrast_loss(g, lw_encoder_project(&b, &r->net, &taps),
                                r->c->contrast_temperature);
    } else {
        lw_val labels = lw_input(g, "labels", lw_type_of(LW_I32, 1, batch));
        lw_encoder_net(&b, &r->net, add_noise(r, g, x, rows), &taps);
        loss = lw_cross_entropy(g, lw_tap_find(&taps, "logits"), labels);
    }
    loss = lw_mean(g, loss, LW_OVER_ALL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    return lw_grad_params(g, loss, LW_NOVAL);
}

static int feed(void *self, int64_t leaf)
{
    encoder_run *r = self;
    if (r->distill)
        return lw_distill_feed(r->distill, leaf);
    if (r->contrast)
        return lw_contrast_feed(r->contrast, leaf);
    if (r->junk)
        return lw_judge_feed(&r->p, r->junk, leaf);
    if (r->c->objective != LW_OBJECTIVE_MAE)
        return lw_picture_run_feed(&r->p, leaf, true);
    lw_encoder_mae_feed(&r->mae, r->p.exec, leaf / r->p.leaves.n);
    return lw_picture_run_feed(&r->p, leaf, lw_encoder_mae_labels(r->c));
}

/* ---- held-out accuracy of a classifier ------------------------------------------------------- */

static int prepare(void *self, lw_train_job *job)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    encoder_run *r = self;
    LW_TRY(lw_picture_run_prepare(&r->p));
    if (r->distill)
        return lw_distill_prepare(r->distill, r->c->train.eval_every > 0);
    if (r->contrast)
        return lw_contrast_prepare(r->contrast, r->c->train.eval_every > 0);
    if (!job->evaluate)
        return 0;
    LW_TRY(lw_picture_held_open(&r->p, &r->held));
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(r->p.store)};
    lw_taps taps = {0};
    lw_encoder_net(&b, &r->net, lw_input(g, "images", image_type(r)), &taps);
    lw_graph_output_add(g, "logits", lw_tap_find(&taps, "logits"), LW_NOVAL);
    return lw_forward_of(r->p.dev, &g, NULL, LW_SLAB_EMA, "the classifier", &r->test);
}

static int evaluate(void *self, int64_t step, json_t *row)
{
    encoder_run *r = self;
    if (r->distill)
        return lw_distill_evaluate(r->distill, row);
    if (r->contrast)
        return lw_contrast_evaluate(r->contrast, row);
    int32_t k = r->net.classes;
    int64_t n = LW_MIN(r->held.data->n, 2000), right = 0;
    LW_CLEANUP(lw_free) float *y = lw_calloc((size_t)(n * k), sizeof *y);
    lw_drawn drawn = {r->held.data, r->held.drawn};
    const lw_feed feed[] = {{.name = "images", .fill = lw_drawn_fill, .self = &drawn},
                            {.name = "logits", .out = y}};
    (void)step;
    if (!y)
        return LW_ENOMEM;
    LW_TRY(lw_forward_rows(r->test, "evaluate", n, feed, 2, NULL));
    for (int64_t i = 0; i < n; i++)
        right += lw_argmax(y + i * k, k) == r->held.data->labels[r->held.drawn[i]];
    json_object_set_new(row, "heldout_accuracy", lw_json_real((double)right / (double)n));
    return 0;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

enum { LEAST_BATCH = 8 }; /* of BatchNorm */

static int check(const lw_train_encoder_config *c)
{
    bool mae = c->objective == LW_OBJECTIVE_MAE, judge = c->objective == LW_OBJECTIVE_JUDGE;
    if (c->norm_type == LW_ENCODER_BATCH_NORM && (mae || judge))
        return lw_fail(LW_EUSAGE,
                       "--norm-type batch: --objective %s shows the network pictures that no data "
                       "has, whose statistics "
                       "would be of no use later; classify, distill and contrastive have it",
                       mae ? "mae" : "judge");
    bool distill = c->objective == LW_OBJECTIVE_DISTILL;
    if (c->pictures.crop_padding && (judge || distill || c->objective == LW_OBJECTIVE_CONTRASTIVE))
        return lw_fail(LW_EUSAGE, "--crop-padding: --objective %s has none; mae and classify do",
                       judge     ? "judge"
                       : distill ? "distill"
                                 : "contrastive");
    if (c->pictures.latents && judge)
        return lw_fail(LW_EUSAGE, "--latents: --objective judge tells pictures from junk that is "
                                  "made of pictures; the others have it");
    return 0;
}

static int init(encoder_run *r)
{
    const lw_train_encoder_config *c = r->c;
    lw_picture_run *p = &r->p;
    bool judge = c->objective == LW_OBJECTIVE_JUDGE;
    LW_TRY(check(c));
    LW_TRY(lw_encoder_mae_check(c));
    LW_TRY(lw_train_leaves(&c->train, c->train.batch_size, 1, "--batch-size", &p->leaves));
    if (c->norm_type == LW_ENCODER_BATCH_NORM && p->leaves.size < LEAST_BATCH)
        return lw_fail(LW_EUSAGE,
                       "--norm-type batch: statistics of %d pictures are noise; take --batch-size "
                       "(and --leaf-size) of %d at least",
                       (int)p->leaves.size, LEAST_BATCH);
    LW_TRY(lw_contrast_check(c, p->leaves.size));
    LW_TRY(lw_picture_run_open(p));
    bool labels = c->objective == LW_OBJECTIVE_CLASSIFY || judge;
    if (labels && !p->data->labelled)
        return lw_fail(LW_EUSAGE, "--objective %s: %s has no labels", judge ? "judge" : "classify",
                       p->data->spec);
    if (judge)
        LW_TRY(lw_junk_new(p->data, (uint64_t)c->train.seed, &r->junk));
    r->mae.c = c;
    r->mae.net = &r->net;
    if (c->arch == LW_ENCODER_RESNET34_UNET) {
        LW_TRY(lw_encoder_mae_declare(&r->mae, p));
        lw_store_init(p->store, (uint64_t)c->train.seed);
        return 0;
    }
    r->net = lw_encoder_default(p->data->h);
    r->net.channels = p->data->channels;
    r->net.width = c->width;
    r->net.stages = c->stages;
    r->net.blocks = c->blocks;
    r->net.norm_groups = c->norm_groups;
    r->net.batch_norm = c->norm_type == LW_ENCODER_BATCH_NORM;
    r->net.decoder = c->objective == LW_OBJECTIVE_MAE;
    r->net.classes = labels ? p->data->classes + judge : 0;
    r->net.judged = judge ? p->data->classes : 0;
    LW_TRY(lw_encoder_check(&r->net));
    if (c->objective == LW_OBJECTIVE_DISTILL)
        LW_TRY(lw_distill_open(c, p, &r->net, &r->distill));
    if (c->objective == LW_OBJECTIVE_CONTRASTIVE)
        LW_TRY(lw_contrast_open(c, p, &r->net, &r->contrast));
    LW_TRY(lw_encoder_declare(&r->net, p->store));
    lw_store_init(p->store, (uint64_t)c->train.seed);
    p->model = lw_encoder_to_json(&r->net);
    return p->model ? 0 : lw_fail(LW_ENOMEM, "out of memory for config.json");
}

static int restore(void *self, const json_t *extra)
{
    const encoder_run *r = self;
    return lw_picture_run_restore(&r->p, extra);
}

static int settle(void *self)
{
    encoder_run *r = self;
    if (!r->settle)
        LW_TRY(lw_settle_new(&r->net, &r->p, &r->settle));
    return lw_settle_run(r->settle);
}

static int set_up(void *self, lw_train_job *job)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    encoder_run *r = self;
    LW_TRY(init(r));
    if (r->p.latents)
        LW_TRY(lw_latents_note(r->p.model, lw_latents_json(r->p.latents)));
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build_step(r, g));
    LW_TRY(lw_picture_run_job(&r->p, g, job));
    if (r->net.batch_norm)
        job->settle = settle;
    return r->distill ? lw_distill_job(r->distill, job) : 0;
}

static void close_run(void *self)
{
    encoder_run *r = self;
    lw_junk_free(&r->junk);
    lw_settle_free(&r->settle);
    lw_distill_free(&r->distill);
    lw_contrast_free(&r->contrast);
    lw_forward_free(&r->test);
    lw_picture_held_clear(&r->held);
    lw_picture_run_clear(&r->p);
}

static const lw_train_curve distill_curves[] = {
    {.column = "loss", .title = "loss"},
    {.column = "heldout_loss", .title = "loss of held-out pictures", .sparse = true},
    {.column = "heldout_neighbours",
     .title = "share of the ten nearest training pictures that the teacher has too",
     .from_zero = true,
     .sparse = true},
    {.column = "heldout_knn",
     .title = "accuracy of the ten nearest training pictures' vote, and the teacher's",
     .from_zero = true,
     .sparse = true,
     .beside = "teacher_knn"},
    {.column = NULL}};

static const lw_train_curve contrast_curves[] = {
    {.column = "loss", .title = "loss"},
    {.column = "heldout_loss", .title = "loss of held-out pictures", .sparse = true},
    {.column = "heldout_knn",
     .title = "accuracy of the ten nearest training pictures' vote",
     .from_zero = true,
     .sparse = true},
    {.column = NULL}};

int lw_train_encoder(const lw_train_encoder_config *c, const lw_observer *obs, lw_train_result *out)
{
    encoder_run r = {.c = c, .p = {.c = &c->train, .pictures = &c->pictures, .obs = obs}};
    bool distills = c->objective == LW_OBJECTIVE_DISTILL,
         contrasts = c->objective == LW_OBJECTIVE_CONTRASTIVE;
    const lw_train_job job = {
        .name = c->objective == LW_OBJECTIVE_JUDGE ? "train judge" : "train encoder",
        .self = &r,
        .set_up = set_up,
        .restore = restore,
        .prepare = prepare,
        .close = close_run,
        .feed = feed,
        .evaluate = distills || contrasts || c->objective == LW_OBJECTIVE_CLASSIFY ? evaluate
                                                                                   : NULL,
        .tell = distills    ? lw_distill_tell
                : contrasts ? lw_contrast_tell
                            : NULL,
        .curves = distills    ? distill_curves
                  : contrasts ? contrast_curves
                              : NULL,
        .unit = "pictures",
        .weights = LW_WEIGHTS_HF};
    if (!distills && (c->teacher || c->teacher_keys))
        return lw_fail(LW_EUSAGE, "--teacher: only --objective distill has one");
    LW_TRY(lw_train_run(&job, &c->train, obs, out));
    return c->export_dir && !c->train.dry_run && c->train.profile == 0
               ? lw_encoder_export(c->train.output_dir, c->export_dir)
               : 0;
}
