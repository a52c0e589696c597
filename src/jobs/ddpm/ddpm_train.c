/* SPDX-License-Identifier: Apache-2.0 */
/* Training a DDPM (Ho et al. 2020): predict the noise of a noised picture, or the picture, mean squared
 * error; on frames of a clip where there is a condition. */
#include "train/pictures/train_generator.h"

#include <math.h>

#include "session/session_diffusion.h"
#include "jobs/ddpm/ddpm_job.h"

typedef struct ddpm_run {
    lw_generator g; /* first: its callbacks take the run for it */
    lw_ddpm_config c;
} ddpm_run;

/* Column of a table of the schedule for each sample, as [B,1,1,1]. */
static lw_val look_up(lw_graph *g, const float *table, int32_t n, lw_val t, int32_t batch)
{
    lw_val v = lw_embedding(g, lw_const(g, lw_type_of(LW_F32, 2, n, 1), table), t);
    return lw_reshape(g, v, lw_type_of(LW_F32, 4, batch, 1, 1, 1));
}

/* loss = mean (eps - unet(sqrt(ab) x + sqrt(1 - ab) eps, t))^2, or of x, with t, eps drawn per row. */
static int build_step(ddpm_run *r, lw_graph *g)
{
    const lw_unet_config *u = &r->g.net;
    int32_t batch = (int32_t)r->g.p.leaves.size, T = r->c.timesteps;
    lw_diffusion d;
    LW_TRY(lw_diffusion_init(&d, T));
    float *table = lw_calloc((size_t)T * 3, sizeof *table);
    if (!table)
        return LW_ENOMEM;
    for (int32_t i = 0; i < T; i++) {
        table[i] = (float)sqrt(d.alpha_bar[i]);
        table[T + i] = (float)sqrt(1.0 - d.alpha_bar[i]);
        table[2 * T + i] = (float)i;
    }
    lw_type image = lw_type_of(LW_F32, 4, batch, u->image_size, u->image_size, u->out_channels);
    lw_val x = lw_input(g, "images", image),
           rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch));
    lw_val t = lw_random(g, "ddpm.t", LW_RANDOM_BELOW, T, lw_type_of(LW_I32, 1, batch), rows);
    lw_val eps = lw_random(g, "ddpm.noise", LW_RANDOM_NORMAL, 0, image, rows);
    lw_val noised = lw_add(g, lw_mul(g, x, look_up(g, table, T, t, batch)),
                           lw_mul(g, eps, look_up(g, table + T, T, t, batch)));
    lw_builder b = {
        .g = g, .params = lw_store_params(r->g.p.store), .training = true, .rows = rows};
    lw_network_in in = {
        .x = noised,
        .t = lw_reshape(g, look_up(g, table + 2 * T, T, t, batch), lw_type_of(LW_F32, 1, batch))};
    if (u->classes)
        in.classes = lw_input(g, "labels", lw_type_of(LW_I32, 1, batch));
    if (lw_unet_condition_channels(u))
        in.condition = lw_input(g, "condition",
                                lw_type_of(LW_F32, 4, batch, u->image_size, u->image_size,
                                           lw_unet_condition_channels(u)));
    lw_val wanted = r->g.prediction == LW_PREDICT_SAMPLE ? x : eps;
    lw_val loss = lw_mean(g, lw_sqr(g, lw_sub(g, lw_unet(&b, u, in), wanted)), LW_OVER_ALL);
    lw_free(&table);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    return lw_grad_params(g, loss, LW_NOVAL);
}

static int feed(void *self, int64_t leaf)
{
    ddpm_run *r = self;
    return lw_picture_run_feed(&r->g.p, leaf, r->g.net.classes > 0);
}

static void close_run(void *self)
{
    ddpm_run *r = self;
    lw_generator_clear(&r->g);
    lw_free(&r);
}

static int set_up(void *self, lw_train_job *job)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    ddpm_run *r = self;
    const lw_ddpm_config *c = &r->c;
    LW_TRY(lw_train_leaves(&c->train, c->train.batch_size, 1, "--batch-size", &r->g.p.leaves));
    bool clips = c->pictures.clip.condition != NULL;
    r->g.prediction = c->prediction == 2 || (c->prediction == 0 && clips) ? LW_PREDICT_SAMPLE
                                                                          : LW_PREDICT_EPSILON;
    LW_TRY(lw_generator_init(&r->g, LW_METHOD_DDPM, &c->net));
    if (clips)
        LW_TRY(lw_picture_run_clips(&r->g.p, 1));
    r->g.grid_steps = LW_MIN(c->eval_steps ? c->eval_steps : clips ? 1 : 50, c->timesteps);
    r->g.timesteps = c->timesteps;
    if (json_object_set_new(r->g.p.model, "leeway_timesteps", json_integer(c->timesteps)) != 0)
        return lw_fail(LW_ENOMEM, "out of memory for config.json");
    if (r->g.prediction == LW_PREDICT_EPSILON && !r->g.p.latents) /* its pipeline decodes nothing */
        LW_TRY(lw_net_pipeline(&r->g.net, c->timesteps, &r->g.p.files));
    else if (r->g.prediction != LW_PREDICT_EPSILON &&
             json_object_set_new(r->g.p.model, "leeway_prediction", json_string("sample")) != 0)
        return lw_fail(LW_ENOMEM, "out of memory for config.json");
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build_step(r, g));
    return lw_picture_run_job(&r->g.p, g, job);
}

static int prepare(void *self, lw_train_job *job)
{
    ddpm_run *r = self;
    return lw_generator_measure(&r->g, NULL, &r->c.heldout, job);
}

static int begin(const lw_ddpm_config *c, const lw_observer *obs, lw_train_job *job)
{
    ddpm_run *r = lw_calloc(1, sizeof *r);
    if (!r)
        return LW_ENOMEM;
    r->c = *c;
    *job = lw_generator_job("train ddpm", &r->g, &r->c.train, &r->c.pictures, obs);
    job->set_up = set_up;
    job->prepare = prepare;
    job->close = close_run;
    job->feed = feed;
    return 0;
}

/* Its noise is drawn pixel by pixel, and nothing else is random. */
static int check_net(const lw_net_config *n)
{
    if (n->latent_dim > 0)
        return lw_fail(LW_EUSAGE,
                       "--latent-dim %d: a DDPM has no latent vector; leave it out, or train drift",
                       n->latent_dim);
    if (n->noise_shape && !lw_str_eq(n->noise_shape, "full"))
        return lw_fail(LW_EUSAGE,
                       "--noise-shape %s: a DDPM's noise is of full size; leave it out, or train "
                       "drift",
                       n->noise_shape);
    return 0;
}

int lw_train_ddpm_open(const lw_ddpm_config *c, const lw_observer *obs, lw_training **out)
{
    lw_train_job job;
    LW_TRY(begin(c, obs, &job));
    return lw_training_open(&job, &((ddpm_run *)job.self)->c.train, obs, out);
}

int lw_train_ddpm(const lw_ddpm_config *c, const lw_observer *obs, lw_train_result *out)
{
    lw_train_job job;
    LW_TRY(check_net(&c->net));
    LW_TRY(lw_generator_config_check(&c->pictures, &c->heldout, c->train.eval_every));
    LW_TRY(begin(c, obs, &job));
    return lw_train_run(&job, &c->train, obs, out);
}
