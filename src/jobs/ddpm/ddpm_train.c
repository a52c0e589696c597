/* SPDX-License-Identifier: Apache-2.0 */
/* Training a DDPM (Ho et al. 2020): predict the noise of a noised picture, or the picture, or what of both (Salimans
 * and Ho 2022), mean squared error; on frames of a clip where there is a condition. Or a rectified flow (Liu et al.
 * 2022): another mixture of picture and noise, and their difference is predicted. */
#include "train/pictures/train_generator.h"

#include <math.h>

#include "session/session_flow.h"
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

/* Columns of the schedule's table, each of one number for each time. */
enum { SIGNAL, NOISE, TIME, WEIGHT, COLUMNS };

static void fill_time(const ddpm_run *r, const lw_diffusion *d, int32_t i, double row[COLUMNS])
{
    if (r->c.flow) {
        double s = lw_flow_time(d, i, r->c.flow_mean, r->c.flow_times ? r->c.flow_std : 0.0);
        row[SIGNAL] = 1.0 - s;
        row[NOISE] = s;
        row[TIME] = s * d->timesteps;
        row[WEIGHT] = 1.0;
        return;
    }
    row[SIGNAL] = sqrt(d->alpha_bar[i]);
    row[NOISE] = sqrt(1.0 - d->alpha_bar[i]);
    row[TIME] = i;
    row[WEIGHT] = lw_diffusion_weight(d, i, r->c.snr_gamma);
}

static int make_table(const ddpm_run *r, float **out)
{
    LW_CLEANUP(lw_free) lw_diffusion *d = lw_calloc(1, sizeof *d);
    const int32_t T = r->c.timesteps;
    if (!d)
        return LW_ENOMEM;
    LW_TRY(lw_diffusion_choose(d, &r->g.noise));
    float *table = lw_calloc((size_t)T * COLUMNS, sizeof *table);
    if (!table)
        return LW_ENOMEM;
    for (int32_t i = 0; i < T; i++) {
        double row[COLUMNS];
        fill_time(r, d, i, row);
        for (int c = 0; c < COLUMNS; c++)
            table[c * T + i] = (float)row[c];
    }
    *out = table;
    return 0;
}

/* The network's right answer. */
static lw_val wanted(const ddpm_run *r, lw_graph *g, lw_val x, lw_val eps, lw_val signal,
                     lw_val noise)
{
    switch (r->g.noise.prediction) {
    case LW_PREDICT_EPSILON:
        break;
    case LW_PREDICT_SAMPLE:
        return x;
    case LW_PREDICT_VELOCITY:
        return lw_sub(g, lw_mul(g, eps, signal), lw_mul(g, x, noise));
    case LW_PREDICT_FLOW:
        return lw_sub(g, eps, x);
    }
    return eps;
}

/* loss = mean w(t) (wanted - unet(a(t) x + s(t) eps, t))^2, with t, eps drawn per row; a, s are sqrt(ab), sqrt(1 - ab),
 * of a flow 1 - s, s; wanted is eps, x, a eps - s x, of a flow eps - x. */
static int build_step(ddpm_run *r, lw_graph *g)
{
    const lw_unet_config *u = &r->g.net;
    int32_t batch = (int32_t)r->g.p.leaves.size, T = r->c.timesteps;
    LW_CLEANUP(lw_free) float *table = NULL;
    LW_TRY(make_table(r, &table));
    lw_type image = lw_type_of(LW_F32, 4, batch, u->image_size, u->image_size, u->out_channels);
    lw_val x = lw_input(g, "images", image),
           rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch));
    lw_val t = lw_random(g, "ddpm.t", LW_RANDOM_BELOW, T, lw_type_of(LW_I32, 1, batch), rows);
    lw_val eps = lw_random(g, "ddpm.noise", LW_RANDOM_NORMAL, 0, image, rows);
    lw_val signal = look_up(g, table + SIGNAL * T, T, t, batch),
           noise = look_up(g, table + NOISE * T, T, t, batch);
    lw_val noised = lw_add(g, lw_mul(g, x, signal), lw_mul(g, eps, noise));
    lw_builder b = {
        .g = g, .params = lw_store_params(r->g.p.store), .training = true, .rows = rows};
    lw_network_in in = {.x = noised,
                        .t = lw_reshape(g, look_up(g, table + TIME * T, T, t, batch),
                                        lw_type_of(LW_F32, 1, batch))};
    if (u->classes)
        in.classes = lw_input(g, "labels", lw_type_of(LW_I32, 1, batch));
    if (lw_unet_condition_channels(u))
        in.condition = lw_input(g, "condition",
                                lw_type_of(LW_F32, 4, batch, u->image_size, u->image_size,
                                           lw_unet_condition_channels(u)));
    lw_val error = lw_sqr(g, lw_sub(g, lw_unet(&b, u, in), wanted(r, g, x, eps, signal, noise)));
    if (r->c.snr_gamma > 0.0)
        error = lw_mul(g, error, look_up(g, table + WEIGHT * T, T, t, batch));
    lw_val loss = lw_mean(g, error, LW_OVER_ALL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    return lw_grad_params(g, loss, LW_NOVAL);
}

bool lw_ddpm_drops_class(const lw_ddpm_config *c, int64_t row)
{
    const lw_rng_key key = lw_rng_key_of((uint64_t)c->train.seed, lw_hash_name("ddpm.class"));
    return lw_rng_uniform(key, 0, (uint64_t)row, 0) < c->class_dropout_prob;
}

/* Some of a leaf's labels become the null class (Ho and Salimans 2022, algorithm 1). */
static int drop_classes(ddpm_run *r)
{
    lw_exec *e = r->g.p.exec;
    const int64_t *rows = lw_exec_read(e, "rows");
    const int32_t *labels = lw_exec_read(e, "labels"); /* the loader's */
    LW_TRY(lw_exec_bind(e, "labels", NULL));
    int32_t *kept = lw_exec_write(e, "labels");
    for (int64_t i = 0; i < r->g.p.leaves.size; i++)
        kept[i] = lw_ddpm_drops_class(&r->c, rows[i]) ? r->g.net.classes : labels[i];
    return 0;
}

static int feed(void *self, int64_t leaf)
{
    ddpm_run *r = self;
    LW_TRY(lw_picture_run_feed(&r->g.p, leaf, r->g.net.classes > 0));
    return r->g.net.null_class ? drop_classes(r) : 0;
}

static void close_run(void *self)
{
    ddpm_run *r = self;
    lw_generator_clear(&r->g);
    lw_free(&r);
}

static lw_noise_schedule schedule_of(const lw_ddpm_config *c)
{
    lw_prediction usual = c->pictures.clip.condition ? LW_PREDICT_SAMPLE : LW_PREDICT_EPSILON;
    if (c->flow)
        return (lw_noise_schedule){
            .timesteps = c->timesteps, .prediction = LW_PREDICT_FLOW, .shift = c->flow_shift};
    return (lw_noise_schedule){.timesteps = c->timesteps,
                               .beta = c->beta_schedule ? LW_BETA_SQUAREDCOS : LW_BETA_LINEAR,
                               .prediction = c->prediction ? (lw_prediction)(c->prediction - 1)
                                                           : usual};
}

static int set_up(void *self, lw_train_job *job)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    ddpm_run *r = self;
    const lw_ddpm_config *c = &r->c;
    LW_TRY(lw_train_leaves(&c->train, c->train.batch_size, 1, "--batch-size", &r->g.p.leaves));
    bool clips = c->pictures.clip.condition != NULL;
    r->g.noise = schedule_of(c);
    LW_TRY(lw_generator_init(&r->g, c->flow ? LW_METHOD_FLOW : LW_METHOD_DDPM, &c->net));
    if (clips)
        LW_TRY(lw_picture_run_clips(&r->g.p, 1));
    r->g.grid_steps = c->eval_steps ? c->eval_steps : c->flow ? 20 : clips ? 1 : 50;
    r->g.grid_steps = LW_MIN(r->g.grid_steps, c->timesteps);
    if (r->g.noise.prediction != LW_PREDICT_SAMPLE &&
        !r->g.p.latents) /* its pipeline decodes nothing */
        LW_TRY(lw_net_pipeline(&r->g.net, &r->g.noise, &r->g.p.files));
    LW_TRY(lw_diffusion_note(&r->g.noise, !r->g.p.files, r->g.p.model));
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
    r->c.net.null_class = c->class_dropout_prob > 0.0;
    *job = lw_generator_job(c->flow ? "train flow" : "train ddpm", &r->g, &r->c.train,
                            &r->c.pictures, obs);
    job->set_up = set_up;
    job->prepare = prepare;
    job->close = close_run;
    job->feed = feed;
    return 0;
}

/* Its noise is drawn pixel by pixel, and nothing else is random. */
static int check_net(const lw_ddpm_config *c)
{
    const lw_net_config *n = &c->net;
    const char *what = c->flow ? "rectified flow" : "DDPM";
    if (n->latent_dim > 0)
        return lw_fail(LW_EUSAGE,
                       "--latent-dim %d: a %s has no latent vector; leave it out, or train drift",
                       n->latent_dim, what);
    if (n->noise_shape && !lw_str_eq(n->noise_shape, "full"))
        return lw_fail(LW_EUSAGE,
                       "--noise-shape %s: a %s's noise is of full size; leave it out, or train "
                       "drift",
                       n->noise_shape, what);
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
    LW_TRY(check_net(c));
    LW_TRY(lw_generator_config_check(&c->pictures, &c->heldout, c->train.eval_every));
    LW_TRY(begin(c, obs, &job));
    return lw_train_run(&job, &c->train, obs, out);
}
