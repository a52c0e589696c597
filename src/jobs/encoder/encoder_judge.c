/* SPDX-License-Identifier: Apache-2.0 */
/* Training a judge. */
#include "jobs/encoder/encoder_job.h"

#include <string.h>

#include "data/data.h"
#include "models/models.h"
#include "session/session_device.h"

typedef struct judge_run {
    const lw_train_encoder_config *c;
    lw_device *dev;
    lw_dataset *data;
    lw_junk *junk;
    lw_loader *loader;
    lw_leaves leaves;
    int64_t next;   /* leaf the loader gives next */
    int32_t n_junk; /* of a leaf */
    lw_encoder_config net;
    lw_store *store;
    lw_plan *plan;
    lw_exec *exec;
    json_t *model;
} judge_run;

/* loss = cross-entropy of x + s e, s uniform in [0, input_noise] per picture. */
static int build_step(const judge_run *r, lw_graph *g)
{
    int32_t batch = (int32_t)r->leaves.size;
    lw_type image = lw_type_of(LW_F32, 4, batch, r->data->h, r->data->w, 3);
    lw_val x = lw_input(g, "images", image),
           rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch));
    lw_val labels = lw_input(g, "labels", lw_type_of(LW_I32, 1, batch));
    lw_builder b = {.g = g, .params = lw_store_params(r->store), .training = true, .rows = rows};
    lw_taps taps = {0};
    lw_val e = lw_random(g, "judge.noise", LW_RANDOM_NORMAL, 0, image, rows);
    lw_val s = lw_random(g, "judge.noise_scale", LW_RANDOM_UNIFORM, 0,
                         lw_type_of(LW_F32, 2, batch, 1), rows);
    s = lw_scale(g, lw_reshape(g, s, lw_type_of(LW_F32, 4, batch, 1, 1, 1)),
                 (float)r->c->input_noise);
    lw_encoder_net(&b, &r->net, lw_add(g, x, lw_mul(g, e, s)), &taps);
    lw_val loss = lw_mean(g, lw_cross_entropy(g, lw_tap_find(&taps, "logits"), labels),
                          LW_OVER_ALL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    return lw_grad_params(g, loss, LW_NOVAL);
}

static int next_batch(judge_run *r, int64_t want, const lw_batch **out)
{
    const lw_train_config *c = &r->c->train;
    if (!r->loader || r->next != want) {
        const lw_loader_opts o = {.batch_size = (int32_t)r->leaves.size - r->n_junk,
                                  .seed = (uint64_t)c->seed,
                                  .flip = c->flip && r->data->flip,
                                  .start_step = want};
        lw_loader_free(&r->loader);
        LW_TRY(lw_loader_new(r->data, &o, &r->loader));
        r->next = want;
    }
    LW_TRY(lw_loader_next(r->loader, out));
    r->next++;
    return 0;
}

/* Junk picture `index`. Every twentieth blends two pictures of one class that are in the batch:
 * without those, an average over a whole class, which differs from a picture by nothing but its
 * softness, would pass for one. */
static void make_junk(judge_run *r, const lw_batch *b, int64_t index, float *dst)
{
    int64_t floats = (int64_t)b->h * b->w * 3, first = index % b->size;
    for (int32_t k = 1; index % 20 == 0 && k < b->size; k++) {
        int64_t other = (first + k) % b->size;
        if (b->labels[other] == b->labels[first]) {
            lw_junk_average(b->images + first * floats, b->images + other * floats, b->h, b->w,
                            dst);
            return;
        }
    }
    lw_junk_any(r->junk, index, dst);
}

static int feed(void *self, int64_t leaf)
{
    judge_run *r = self;
    int64_t batch = r->leaves.size;
    int64_t floats = (int64_t)r->data->h * r->data->w * 3;
    float *x = lw_exec_data(r->exec, "images");
    int32_t *labels = lw_exec_data(r->exec, "labels");
    int64_t *rows = lw_exec_data(r->exec, "rows");
    const lw_batch *b;
    LW_TRY(next_batch(r, leaf, &b));
    memcpy(x, b->images, (size_t)(b->size * floats) * sizeof *x);
    memcpy(labels, b->labels, (size_t)b->size * sizeof *labels);
    for (int64_t i = b->size; i < batch; i++) {
        make_junk(r, b, leaf * r->n_junk + i - b->size, x + i * floats);
        labels[i] = r->data->classes;
    }
    for (int64_t i = 0; i < batch; i++)
        rows[i] = leaf * batch + i;
    return 0;
}

static int init(judge_run *r, const lw_observer *obs)
{
    const lw_train_encoder_config *c = r->c;
    const lw_data_opts data = {
        .image_size = c->train.image_size, .count = c->train.limit, .obs = obs};
    LW_TRY(lw_train_leaves(&c->train, c->train.batch_size, 1, "--batch-size", &r->leaves));
    LW_TRY(lw_session_device_with(c->train.threads, c->train.conv, &r->dev));
    LW_TRY(lw_data_open(c->train.data, &data, &r->data));
    if (!r->data->labelled)
        return lw_fail(LW_EUSAGE, "a judge needs labels, %s has none", r->data->spec);
    LW_TRY(lw_junk_new(r->data, (uint64_t)c->train.seed, &r->junk));
    r->n_junk = (int32_t)r->leaves.size / 4;
    r->net = lw_encoder_default(r->data->h);
    r->net.width = c->width;
    r->net.stages = c->stages;
    r->net.blocks = c->blocks;
    r->net.norm_groups = c->norm_groups;
    r->net.classes = r->data->classes + 1;
    LW_TRY(lw_encoder_check(&r->net));
    LW_TRY(lw_store_new(false, &r->store));
    LW_TRY(lw_encoder_declare(&r->net, r->store));
    lw_store_init(r->store, (uint64_t)c->train.seed);
    r->model = lw_encoder_to_json(&r->net);
    if (!r->model ||
        json_object_set_new(r->model, "leeway_judged_classes", json_integer(r->data->classes)) < 0)
        return lw_fail(LW_ENOMEM, "out of memory for config.json");
    return 0;
}

static const char recipe[] = "train judge";

static int run(judge_run *r, lw_train_encoder_config *c, const lw_observer *obs,
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
    const lw_train_job job = {.name = recipe,
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
    LW_TRY(lw_train_resume(&c->train, &job, &step));
    return lw_train_run(&job, &c->train, step, obs, out);
}

int lw_train_judge(lw_train_encoder_config c, const lw_observer *obs, lw_train_result *out)
{
    judge_run r = {.c = &c};
    int rc = run(&r, &c, obs, out);
    lw_loader_free(&r.loader);
    lw_junk_free(&r.junk);
    lw_exec_free(&r.exec);
    lw_plan_free(&r.plan);
    lw_store_free(&r.store);
    lw_data_close(&r.data);
    lw_backend_close(&r.dev);
    json_decref(r.model);
    return rc;
}
