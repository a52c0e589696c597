/* SPDX-License-Identifier: Apache-2.0 */
/* Training an autoencoder: pictures, or crops of them, there and back. */
#include "jobs/autoencoder/autoencoder_job.h"

#include <math.h>
#include <stdio.h>

#include "eval/eval.h"
#include "report/report.h"
#include "session/session_forward.h"

enum { MEASURED = 64, SHOWN = 8, COUNTED_SIDE = 256 };

typedef struct autoencoder_run {
    const lw_autoencoder_config *c;
    lw_picture_run p;
    int32_t side;     /* of what a step sees; 0: whole pictures */
    lw_dataset *held; /* as what follows: where something is measured or shown */
    int64_t *drawn;   /* its rows, lw_data_drawn */
    lw_forward *test;
    uint8_t *rgb; /* two pictures */
} autoencoder_run;

/* ---- the step's graph ------------------------------------------------------------------------ */

/* mean |x differences| along an axis */
static lw_val edges(lw_graph *g, lw_val x, int axis)
{
    const int n = lw_val_type(g, x).dim[axis];
    lw_val d = lw_sub(g, lw_slice(g, x, axis, 1, n), lw_slice(g, x, axis, 0, n - 1));
    return lw_mean(g, lw_ew1(g, LW_EW_abs, d), LW_OVER_ALL);
}

static lw_val build_loss(const autoencoder_run *r, lw_graph *g, lw_val error, lw_val latent)
{
    const lw_autoencoder_config *c = r->c;
    const bool l1 = c->loss == LW_AUTOENCODER_L1;
    lw_val loss = lw_mean(g, l1 ? lw_ew1(g, LW_EW_abs, error) : lw_sqr(g, error), LW_OVER_ALL);
    lw_val power = lw_mean(g, lw_sqr(g, latent), LW_OVER_ALL);
    lw_graph_output_add(g, "error", loss, LW_NOVAL);
    lw_graph_output_add(g, "latent_power", power, LW_NOVAL);
    if (c->gradient_weight > 0)
        loss = lw_add(g, loss,
                      lw_scale(g, lw_add(g, edges(g, error, 1), edges(g, error, 2)),
                               (float)c->gradient_weight));
    if (c->latent_weight > 0)
        loss = lw_add(g, loss,
                      lw_scale(g, lw_sqr(g, lw_add_f32(g, power, -1.0f)), (float)c->latent_weight));
    return loss;
}

static int build_step(const autoencoder_run *r, lw_graph *g)
{
    const lw_dataset *d = r->p.data;
    const int32_t batch = (int32_t)r->p.leaves.size;
    lw_val x = lw_input(g, "images",
                        lw_type_of(LW_F32, 4, batch, r->side ? r->side : d->h,
                                   r->side ? r->side : d->w, d->channels)),
           rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch));
    lw_builder b = {.g = g, .params = lw_store_params(r->p.store), .training = true, .rows = rows};
    lw_scope_part(g, "encoder");
    lw_val latent = lw_tiny_encode(&b, &r->c->net, x);
    lw_scope_part(g, "decoder");
    lw_val y = lw_tiny_decode(&b, &r->c->net, latent);
    lw_scope_set(g, "");
    lw_val loss = build_loss(r, g, lw_sub(g, y, x), latent);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    return lw_grad_params(g, loss, LW_NOVAL);
}

static int feed(void *self, int64_t leaf)
{
    autoencoder_run *r = self;
    return lw_picture_run_feed(&r->p, leaf, false);
}

static int report(void *self, json_t *row)
{
    autoencoder_run *r = self;
    const float *power = lw_exec_read(r->p.exec, "latent_power"),
                *error = lw_exec_read(r->p.exec, "error");
    json_object_set_new(row, "error", lw_json_real((double)*error));
    json_object_set_new(row, "latent_rms", lw_json_real(sqrt((double)*power)));
    return 0;
}

/* ---- held-out pictures ----------------------------------------------------------------------- */

/* One picture there and back, averaged weights. */
static int build_test(const autoencoder_run *r, int32_t h, int32_t w, lw_graph **out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g, .params = lw_store_params(r->p.store)};
    lw_val x = lw_input(g, "images", lw_type_of(LW_F32, 4, 1, h, w, 3));
    lw_val y = lw_tiny_decode(&b, &r->c->net, lw_tiny_encode(&b, &r->c->net, x));
    lw_graph_output_add(g, "y", y, LW_NOVAL);
    *out = lw_steal(&g);
    return 0;
}

/* Of grids: pairs. */
static int32_t columns_of(const autoencoder_run *r)
{
    return r->held->h > 64 ? 4 : 8;
}

static int prepare(void *self, lw_train_job *job)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    autoencoder_run *r = self;
    const lw_picture_config *p = &r->c->pictures;
    const lw_data_opts o = {.image_size = p->image_size,
                            .channels = 3,
                            .split = LW_SPLIT_HELDOUT,
                            .on_error = (lw_on_error)p->on_error,
                            .pool = r->p.dev->pool,
                            .obs = r->p.obs};
    const lw_compile_opts compile = {.opt = 1, .precision = r->c->train.precision};
    if (r->c->train.eval_every == 0 && r->c->train.sample_every == 0)
        return 0;
    LW_TRY(lw_data_open(r->c->train.data, &o, &r->held));
    if (r->held->n == 0)
        return lw_fail(LW_EUSAGE,
                       "data '%s': no picture is held out to measure: leave out --eval-every and "
                       "--sample-every",
                       r->held->spec);
    LW_TRY(lw_data_drawn(r->held, &r->drawn));
    r->rgb = lw_calloc(2, (size_t)lw_data_row_size(r->held));
    if (!r->rgb)
        return LW_ENOMEM;
    job->film_lines = (int32_t)LW_CEIL_DIV(2 * LW_MIN(r->held->n, SHOWN), columns_of(r));
    LW_TRY(build_test(r, r->held->h, r->held->w, &g));
    return lw_forward_of(r->p.dev, &g, &compile, LW_SLAB_EMA, "the autoencoder", &r->test);
}

/* Held-out picture i and what comes back, [2][h][w][3]. */
static int there_and_back(autoencoder_run *r, int64_t i, uint8_t *rgb)
{
    const lw_tick tick = {0};
    const int64_t size = lw_data_row_size(r->held);
    lw_data_get(r->held, r->drawn[i], false, lw_forward_input(r->test, "images"));
    lw_data_to_u8(lw_forward_input(r->test, "images"), size, rgb);
    LW_TRY(lw_forward_run(r->test, &tick));
    lw_data_to_u8(lw_forward_output(r->test, "y"), size, rgb + size);
    return 0;
}

static int evaluate(void *self, int64_t step, json_t *row)
{
    autoencoder_run *r = self;
    const int64_t n = LW_MIN(r->held->n, MEASURED), size = lw_data_row_size(r->held);
    double sum = 0, least = 99;
    (void)step;
    for (int64_t i = 0; i < n; i++) {
        LW_TRY(there_and_back(r, i, r->rgb));
        double psnr = lw_psnr_u8(r->rgb, r->rgb + size, size);
        sum += psnr / (double)n;
        least = fmin(least, psnr);
        if (lw_observe_stop(r->p.obs))
            return lw_fail(LW_ESTOPPED, "measuring stopped after picture %lld", (long long)i);
    }
    json_object_set_new(row, "psnr", lw_json_real(sum));
    json_object_set_new(row, "psnr_least", lw_json_real(least));
    return 0;
}

static void tell(const json_t *row, lw_str *out)
{
    if (json_object_get(row, "psnr"))
        lw_str_addf(out, "psnr %.2f dB (least of a picture %.2f)",
                    json_number_value(json_object_get(row, "psnr")),
                    json_number_value(json_object_get(row, "psnr_least")));
}

/* Pictures beside what comes back. */
static int grid(void *self, int64_t step, const char *path)
{
    autoencoder_run *r = self;
    const int64_t n = LW_MIN(r->held->n, SHOWN), size = lw_data_row_size(r->held);
    const lw_grid how = {.columns = columns_of(r), .padding = 1, .channels = 3};
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    LW_CLEANUP(lw_free) uint8_t *x = lw_calloc((size_t)n * 2, (size_t)size);
    char text[32];
    if (!x)
        return LW_ENOMEM;
    for (int64_t i = 0; i < n; i++)
        LW_TRY(there_and_back(r, i, x + 2 * i * size));
    LW_TRY(lw_grid_u8(&how, x, (int32_t)(2 * n), r->held->h, r->held->w, &im));
    snprintf(text, sizeof text, "%lld", (long long)step);
    LW_CLEANUP(lw_json_drop)
    json_t *notes = json_pack("{s:s, s:s, s:s}", "Software", "leeway", "step", text, "method",
                              "autoencoder");
    return lw_png_save(path, &im, notes);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static int check_side(const char *option, int32_t side, int32_t multiple)
{
    return side % multiple == 0
               ? 0
               : lw_fail(LW_EUSAGE,
                         "%s %d: no multiple of %d, by which the network divides sides (--blocks)",
                         option, (int)side, (int)multiple);
}

static int open_crops(autoencoder_run *r)
{
    lw_picture_run *p = &r->p;
    const int32_t multiple = lw_tiny_shrink(&r->c->net);
    LW_TRY(check_side("--image-size", p->data->h, multiple));
    LW_TRY(check_side("--image-size", p->data->w, multiple));
    LW_TRY(check_side("--crop", r->c->crop, multiple));
    if (r->c->crop > LW_MIN(p->data->h, p->data->w))
        return lw_fail(LW_EUSAGE, "--crop %d: pictures of %dx%d hold none", (int)r->c->crop,
                       (int)p->data->w, (int)p->data->h);
    if (r->c->crop == 0)
        return 0;
    r->side = r->c->crop;
    p->clip = (lw_clip_opts){.side = r->side,
                             .flip = r->c->pictures.flip && p->data->flip,
                             .seed = (uint64_t)r->c->train.seed,
                             .pool = p->dev->pool};
    return lw_picture_run_clips(p, 1);
}

/* What it costs where it is used. */
static int say_cost(const autoencoder_run *r)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_CLEANUP(lw_plan_free) lw_plan *plan = NULL;
    const int32_t latent = COUNTED_SIDE / lw_tiny_shrink(&r->c->net);
    LW_TRY(build_test(r, COUNTED_SIDE, COUNTED_SIDE, &g));
    LW_TRY(lw_compile(g, r->p.dev, &(lw_compile_opts){.opt = 1}, &plan));
    lw_observe_say(r->p.obs, "%dx%d there and back: %.2f GFLOP, latents of %dx%dx%d", COUNTED_SIDE,
                   COUNTED_SIDE, 1e-9 * lw_plan_get_info(plan).flops, (int)latent, (int)latent,
                   (int)r->c->net.latent);
    return 0;
}

static int init(autoencoder_run *r)
{
    const lw_autoencoder_config *c = r->c;
    lw_picture_run *p = &r->p;
    LW_TRY(lw_tiny_check(&c->net));
    if (c->pictures.channels && c->pictures.channels != 3)
        return lw_fail(LW_EUSAGE, "--channels %d: an autoencoder of RGB pictures wants 3",
                       (int)c->pictures.channels);
    LW_TRY(lw_train_leaves(&c->train, c->train.batch_size, 1, "--batch-size", &p->leaves));
    LW_TRY(lw_picture_run_open(p));
    LW_TRY(open_crops(r));
    LW_TRY(lw_tiny_declare(&c->net, p->store));
    lw_tiny_init(p->store, (uint64_t)c->train.seed);
    p->model = lw_tiny_json(&c->net);
    return p->model ? say_cost(r) : lw_fail(LW_ENOMEM, "out of memory for config.json");
}

static int set_up(void *self, lw_train_job *job)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    autoencoder_run *r = self;
    LW_TRY(init(r));
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build_step(r, g));
    return lw_picture_run_job(&r->p, g, job);
}

static void close_run(void *self)
{
    autoencoder_run *r = self;
    lw_forward_free(&r->test);
    lw_data_close(&r->held);
    lw_free(&r->drawn);
    lw_free(&r->rgb);
    lw_picture_run_clear(&r->p);
}

static const lw_train_curve curves[] = {
    {.column = "loss", .title = "loss"},
    {.column = "psnr", .title = "PSNR of held-out pictures, dB", .sparse = true},
    {.column = "latent_rms", .title = "root of the mean square of latents"},
    {.column = NULL}};

int lw_train_autoencoder(const lw_autoencoder_config *c, const lw_observer *obs,
                         lw_train_result *out)
{
    autoencoder_run r = {.c = c, .p = {.c = &c->train, .pictures = &c->pictures, .obs = obs}};
    const lw_train_job job = {.name = "train autoencoder",
                              .self = &r,
                              .set_up = set_up,
                              .prepare = prepare,
                              .close = close_run,
                              .feed = feed,
                              .report = report,
                              .grid = grid,
                              .evaluate = evaluate,
                              .tell = tell,
                              .curves = curves,
                              .film_caption = LW_FILM_RETURNED,
                              .unit = "pictures"};
    return lw_train_run(&job, &c->train, obs, out);
}
