/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training Leeway's own encoder: `mae` hides cells of the picture and reconstructs them (He et al.
 * 2022, as scaled down for drifting by Deng et al. 2026), `classify` predicts the label.
 */

#include <string.h>

#include "data/data.h"
#include "models/models.h"
#include "session/session_device.h"
#include "train/train.h"
#include "jobs/encoder/encoder_job.h"

typedef struct encoder_run {
    const lw_train_encoder_config *c;
    lw_device *dev;
    lw_dataset *data, *held; /* held: classify only */
    lw_encoder_config net;
    lw_store *store;
    lw_plan *plan, *test_plan;
    lw_exec *exec, *test;
    lw_leaves leaves;
    lw_loader *loader;
    int64_t next; /* leaf the loader gives next */
    json_t *model;
} encoder_run;

static lw_type image_type(const encoder_run *r)
{
    return lw_type_of(LW_F32, 4, (int32_t)r->leaves.size, r->data->h, r->data->w, 3);
}

/* x + s e with s uniform in [0, input_noise] per picture: makes a classifier look past
 * pixel noise. */
static lw_val add_noise(const encoder_run *r, lw_graph *g, lw_val x, lw_val rows)
{
    int32_t batch = (int32_t)r->leaves.size;
    if (r->c->input_noise <= 0.0)
        return x;
    lw_val e = lw_random(g, "encoder.noise", LW_RANDOM_NORMAL, 0, image_type(r), rows);
    lw_val s = lw_random(g, "encoder.noise_scale", LW_RANDOM_UNIFORM, 0,
                         lw_type_of(LW_F32, 2, batch, 1), rows);
    s = lw_scale(g, lw_reshape(g, s, lw_type_of(LW_F32, 4, batch, 1, 1, 1)),
                 (float)r->c->input_noise);
    return lw_add(g, x, lw_mul(g, e, s));
}

static int build_step(const encoder_run *r, lw_graph *g)
{
    int32_t batch = (int32_t)r->leaves.size;
    lw_val x = lw_input(g, "images", image_type(r)),
           rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch));
    lw_builder b = {.g = g, .params = lw_store_params(r->store), .training = true, .rows = rows};
    lw_taps taps = {0};
    lw_val loss;
    if (r->c->objective == LW_OBJECTIVE_MAE) {
        lw_val mask = lw_mae_mask(&b, batch, r->data->h, (float)r->c->mask_ratio);
        lw_encoder_net(&b, &r->net, lw_mae_hide(g, x, mask), &taps);
        loss = lw_mae_loss(g, lw_encoder_decode(&b, &r->net, &taps), x, mask);
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
    const lw_train_config *c = &r->c->train;
    const lw_batch *b;
    if (!r->loader || r->next != leaf) {
        const lw_loader_opts o = {.batch_size = (int32_t)r->leaves.size,
                                  .seed = (uint64_t)c->seed,
                                  .flip = c->flip && r->data->flip,
                                  .start_step = leaf};
        lw_loader_free(&r->loader);
        LW_TRY(lw_loader_new(r->data, &o, &r->loader));
        r->next = leaf;
    }
    LW_TRY(lw_loader_next(r->loader, &b));
    r->next++;
    LW_TRY(lw_exec_bind(r->exec, "images", b->images));
    LW_TRY(lw_exec_bind(r->exec, "rows", b->rows));
    return r->c->objective == LW_OBJECTIVE_MAE ? 0 : lw_exec_bind(r->exec, "labels", b->labels);
}

/* ---- held-out accuracy of a classifier ------------------------------------------------------- */

static int build_test(encoder_run *r, const lw_observer *obs)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    const lw_data_opts o = {
        .image_size = r->c->train.image_size, .split = LW_SPLIT_HELDOUT, .obs = obs};
    LW_TRY(lw_data_open(r->c->train.data, &o, &r->held));
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(r->store)};
    lw_taps taps = {0};
    lw_encoder_net(&b, &r->net, lw_input(g, "images", image_type(r)), &taps);
    lw_graph_output_add(g, "logits", lw_tap_find(&taps, "logits"), LW_NOVAL);
    LW_TRY(lw_compile(g, r->dev, NULL, &r->test_plan));
    return lw_exec_new(r->test_plan, LW_SLAB_EMA, &r->test);
}

static int evaluate(void *self, int64_t step, json_t *row)
{
    encoder_run *r = self;
    int32_t batch = (int32_t)r->leaves.size, k = r->net.classes;
    int64_t n = LW_MIN(r->held->n, 2000), right = 0, floats = (int64_t)r->held->h * r->held->w * 3;
    float *x = lw_exec_data(r->test, "images");
    const float *y = lw_exec_data(r->test, "logits");
    (void)step;
    for (int64_t at = 0; at < n; at += batch) {
        int64_t m = LW_MIN(n - at, batch);
        for (int64_t i = 0; i < m; i++)
            lw_data_get(r->held, lw_data_drawn(r->held, at + i), false, x + i * floats);
        LW_TRY(lw_exec_run(r->test, NULL));
        for (int64_t i = 0; i < m; i++) {
            int32_t best = 0;
            for (int32_t c = 1; c < k; c++)
                best = y[i * k + c] > y[i * k + best] ? c : best;
            right += best == r->held->labels[lw_data_drawn(r->held, at + i)];
        }
    }
    json_object_set_new(row, "heldout_accuracy", lw_json_real((double)right / (double)n));
    return 0;
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int init(encoder_run *r, const lw_observer *obs)
{
    const lw_train_encoder_config *c = r->c;
    const lw_data_opts data = {
        .image_size = c->train.image_size, .count = c->train.limit, .obs = obs};
    LW_TRY(lw_train_leaves(&c->train, c->train.batch_size, 1, "--batch-size", &r->leaves));
    LW_TRY(lw_session_device_with(c->train.threads, c->train.conv, &r->dev));
    LW_TRY(lw_data_open(c->train.data, &data, &r->data));
    if (c->objective != LW_OBJECTIVE_MAE && !r->data->labelled)
        return lw_fail(LW_EUSAGE, "--objective classify: %s has no labels", r->data->spec);
    r->net = lw_encoder_default(r->data->h);
    r->net.width = c->width;
    r->net.stages = c->stages;
    r->net.blocks = c->blocks;
    r->net.norm_groups = c->norm_groups;
    r->net.decoder = c->objective == LW_OBJECTIVE_MAE;
    r->net.classes = r->net.decoder ? 0 : r->data->classes;
    LW_TRY(lw_encoder_check(&r->net));
    LW_TRY(lw_store_new(false, &r->store));
    LW_TRY(lw_encoder_declare(&r->net, r->store));
    lw_store_init(r->store, (uint64_t)c->train.seed);
    r->model = lw_encoder_to_json(&r->net);
    return r->model ? 0 : lw_fail(LW_ENOMEM, "out of memory for config.json");
}

static const char recipe[] = "train encoder";

static int run(encoder_run *r, lw_train_encoder_config *c, const lw_observer *obs,
               lw_train_result *out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    int64_t step = 0;
    bool over = false;
    if (!c->train.dry_run)
        LW_TRY(lw_train_check(&c->train, recipe, obs, out, &over));
    if (over)
        return 0;
    LW_TRY(init(r, obs));
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build_step(r, g));
    LW_TRY(lw_train_compile(&c->train, r->dev, g, &r->plan, &r->exec));
    lw_train_job job = {.name = recipe,
                        .self = r,
                        .dev = r->dev,
                        .store = r->store,
                        .step = r->exec,
                        .plan = r->plan,
                        .leaves = r->leaves,
                        .model = r->model,
                        .weights = LW_WEIGHTS_HF,
                        .feed = feed};
    if (c->train.dry_run)
        return lw_train_predict(&job, &c->train, out);
    if (c->objective != LW_OBJECTIVE_MAE) {
        LW_TRY(build_test(r, obs));
        job.evaluate = evaluate;
    }
    LW_TRY(lw_train_resume(&c->train, &job, &step));
    return lw_train_run(&job, &c->train, step, obs, out);
}

int lw_train_encoder(lw_train_encoder_config c, const lw_observer *obs, lw_train_result *out)
{
    encoder_run r = {.c = &c};
    int rc = run(&r, &c, obs, out);
    lw_loader_free(&r.loader);
    lw_exec_free(&r.exec);
    lw_exec_free(&r.test);
    lw_plan_free(&r.plan);
    lw_plan_free(&r.test_plan);
    lw_store_free(&r.store);
    lw_data_close(&r.data);
    lw_data_close(&r.held);
    lw_backend_close(&r.dev);
    json_decref(r.model);
    return rc;
}
