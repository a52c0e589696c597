/* SPDX-License-Identifier: Apache-2.0 */
/* The common half of the generators' trainers. */
#include "train/pictures/train_generator.h"

#include <stdio.h>
#include <string.h>

#include "report/report.h"
#include "train/train_curves.h"

int lw_generator_config_check(const lw_picture_config *p, const lw_heldout_config *h,
                              int64_t eval_every)
{
    LW_TRY(lw_clip_check(p));
    if (p->clip.condition && (h->keep_best || h->eval_encoder))
        return lw_fail(LW_EUSAGE,
                       "--condition: --eval-every measures PSNR, no Frechet distance: leave "
                       "out --keep-best and --eval-encoder");
    return lw_heldout_check(h, eval_every);
}

/* A network that adds to its frame begins blind to the noise, which is far louder than the detail that
 * it looks for in the frame: cancelling it first would take hundreds of steps. */
static void quieten_noise(lw_generator *g)
{
    int32_t i = lw_store_find(g->p.store, "conv_in.weight");
    LW_ASSERT(i >= 0, "a U-Net begins with conv_in");
    const int32_t seen = g->net.in_channels, noise = g->net.out_channels;
    float *w = lw_store_edit(g->p.store, i, LW_SLAB_PARAM); /* [channels][3][3][in] */
    for (int64_t k = 0; k < (int64_t)g->net.channels[0] * 9; k++)
        memset(w + k * seen, 0, (size_t)noise * sizeof *w);
    lw_store_touch(g->p.store, LW_SLAB_PARAM);
    lw_store_start_ema(g->p.store);
}

/* What published U-Nets have in other ways and no option says is that of the weights it begins with. */
static int take_variants(lw_generator *g)
{
    LW_CLEANUP(lw_model_place_clear) lw_model_place p = {0};
    lw_unet_config from, *u = &g->net;
    if (!g->p.c->init_from)
        return 0;
    LW_TRY(lw_train_begins_with(g->p.c, &p));
    if (!p.config)
        return 0;
    LW_TRY(lw_unet_from_json(p.config, lw_str_c(&p.config_path), &from));
    if (lw_unet_heads(&from) != lw_unet_heads(u))
        return lw_fail(LW_EUSAGE,
                       "--init-from %s: its attention has %d heads over %d channels, here %d: say "
                       "--heads or --attention-head-dim",
                       g->p.c->init_from, (int)lw_unet_heads(&from),
                       (int)from.channels[from.levels - 1], (int)lw_unet_heads(u));
    u->norm_eps = from.norm_eps;
    u->mid_attn = from.mid_attn;
    u->shift_only = from.shift_only;
    u->sin_first = from.sin_first;
    u->freq_shift = from.freq_shift;
    u->pad_end = from.pad_end;
    u->mid_scale = from.mid_scale;
    return 0;
}

/* Of pictures of `seen`. */
static int choose_unet(lw_generator *g, const lw_net_config *n, const lw_dataset *seen)
{
    LW_TRY(lw_net_unet(n, seen, &g->net));
    LW_TRY(take_variants(g));
    g->network = lw_network_of(&lw_network_def_unet, &g->net, g->p.store);
    if (!lw_unet_is_diffusers(&g->net)) /* it would open this, and compute something else */
        g->p.weights = LW_WEIGHTS_HF;
    g->p.model = lw_net_json(lw_unet_to_json(&g->net), g->net.classes > 0, g->method, g->p.data);
    return 0;
}

static int choose_dit(lw_generator *g, const lw_net_config *n, const lw_dataset *seen)
{
    if (g->p.pictures->clip.condition)
        return lw_fail(LW_EUSAGE, "--condition: of the generators only unet takes frames");
    LW_TRY(lw_net_dit(n, seen, &g->dit));
    g->network = lw_network_of(&lw_network_def_dit, &g->dit, g->p.store);
    g->p.weights = LW_WEIGHTS_HF;
    g->p.model = lw_net_json(lw_dit_to_json(&g->dit), g->dit.classes > 0, g->method, g->p.data);
    return 0;
}

/* Where it says so, samplers decode. */
static int note_latents(lw_generator *g)
{
    lw_picture_run *p = &g->p;
    if (p->latents)
        LW_TRY(lw_latents_note(p->model, lw_latents_json(p->latents)));
    g->network.config = p->model;
    return 0;
}

int lw_generator_init(lw_generator *g, lw_method m, const lw_net_config *n)
{
    lw_picture_run *p = &g->p;
    g->method = m;
    /* Before all pictures are decoded, where their size is said. */
    if (n->generator == LW_GENERATOR_UNET && p->pictures->image_size && !p->pictures->latents)
        LW_TRY(lw_net_check_side(n, p->pictures->image_size));
    LW_TRY(lw_picture_run_open(p));
    lw_net_config net = *n;
    lw_dataset seen = *p->data;
    if (p->pictures->clip.condition) {
        seen.h = seen.w = p->clip.side;
        net.frame = p->clip.frame;
        net.previous = p->clip.previous;
        net.residual = p->clip.frame && g->noise.prediction == LW_PREDICT_SAMPLE;
    }
    LW_TRY((n->generator == LW_GENERATOR_UNET ? choose_unet : choose_dit)(g, &net, &seen));
    LW_TRY(lw_network_declare(&g->network, p->store));
    lw_store_init(p->store, (uint64_t)p->c->seed);
    if (g->net.residual) /* of the U-Net alone */
        quieten_noise(g);
    p->namings = g->network.def->namings;
    return p->model ? note_latents(g) : lw_fail(LW_ENOMEM, "out of memory for config.json");
}

void lw_generator_clear(lw_generator *g)
{
    lw_sampler_free(&g->grid);
    lw_heldout_free(&g->heldout);
    lw_restored_free(&g->restored);
    lw_free(&g->diffusion);
    lw_picture_run_clear(&g->p);
}

/* A sampler of the averaged weights, kept. */
static int open_sampler(lw_generator *g, lw_sampler **out)
{
    lw_sampler_opts o = {.method = g->method,
                         .steps = g->grid_steps,
                         .timesteps = g->noise.timesteps,
                         .diffusion = g->diffusion,
                         .batch = g->restored ? lw_restored_crops(g->restored) : 64,
                         .conditioned = g->restored != NULL,
                         .seed = (uint64_t)g->p.c->seed,
                         .precision = g->p.c->precision,
                         .weights = LW_SLAB_EMA};
    if (!g->grid)
        LW_TRY(lw_sampler_new(g->p.dev, &g->network, &o, &g->grid));
    *out = g->grid;
    return 0;
}

/* The schedule that a folder with this config.json would have (lw_diffusion_find). */
static int choose_diffusion(lw_generator *g)
{
    bool usual = g->method == LW_METHOD_DDPM && g->noise.prediction == LW_PREDICT_EPSILON &&
                 g->noise.beta == LW_BETA_LINEAR && !g->p.pictures->clip.condition && !g->p.latents;
    if (g->method == LW_METHOD_DRIFT || usual)
        return 0;
    g->diffusion = lw_calloc(1, sizeof *g->diffusion);
    if (!g->diffusion)
        return LW_ENOMEM;
    LW_TRY(lw_diffusion_choose(g->diffusion, &g->noise));
    if (g->p.pictures->clip.condition)
        lw_diffusion_condition(g->diffusion);
    if (g->p.latents)
        lw_diffusion_unbound(g->diffusion);
    return 0;
}

static int plot_restored(const char *run, lw_str svg[LW_TRAIN_PLOTS])
{
    const lw_plot p = {.title = "Held-out PSNR, and that of the best filter",
                       .x_label = "step",
                       .y_label = "dB"},
                  q = {.title = "Held-out PSNR, and that of answers to mirrored frames",
                       .x_label = "step",
                       .y_label = "dB"},
                  w = {.title = "Held-out PSNR, and that of the damaged frames",
                       .x_label = "step",
                       .y_label = "dB"};
    LW_TRY(lw_curves_points(run, "psnr", "psnr_best", &p, &svg[0]));
    LW_TRY(lw_curves_points(run, "psnr", "psnr_swapped", &q, &svg[1]));
    return lw_curves_points(run, "psnr", "psnr_input", &w, &svg[2]);
}

static int measure_restored(lw_generator *g, lw_train_job *job)
{
    job->plot = plot_restored;
    job->film_caption = LW_FILM_RESTORED;
    if (g->p.c->eval_every == 0 && g->p.c->sample_every == 0)
        return 0;
    LW_TRY(lw_restored_new(g->p.data, &g->p.clip, g->p.obs, &g->restored));
    job->film_lines = lw_restored_lines(g->restored);
    lw_observe_say(g->p.obs, "held-out frames: %s", lw_restored_filters(g->restored));
    return 0;
}

int lw_generator_measure(lw_generator *g, const char *encoder, const lw_heldout_config *c,
                         lw_train_job *job)
{
    LW_TRY(choose_diffusion(g));
    LW_TRY(lw_picture_run_prepare(&g->p));
    if (g->p.pictures->clip.condition)
        return measure_restored(g, job);
    if (g->p.c->eval_every > 0)
        LW_TRY(lw_heldout_new(g->p.dev, lw_picture_run_pictures(&g->p), encoder, c, g->p.obs,
                              &g->heldout));
    if (g->heldout)
        lw_observe_say(g->p.obs, "%s", lw_heldout_names(g->heldout));
    job->best = lw_heldout_metric(c);
    job->best_measure = g->heldout ? lw_heldout_measure(g->heldout) : NULL;
    return 0;
}

/* Of the observer only the wish to stop: the bar is the trainer's. */
static lw_observer only_stops(const lw_generator *g)
{
    return (lw_observer){.self = g->p.obs ? g->p.obs->self : NULL,
                         .should_stop = g->p.obs ? g->p.obs->should_stop : NULL};
}

static int evaluate(void *self, int64_t step, json_t *row)
{
    lw_generator *g = self;
    lw_sampler *s;
    const lw_observer obs = only_stops(g);
    LW_TRY(open_sampler(g, &s));
    return g->restored ? lw_restored_run(g->restored, s, &obs, row)
                       : lw_heldout_run(g->heldout, s, step, &obs, row);
}

static void tell(const json_t *row, lw_str *out)
{
    static const char *const names[] = {"fd", "eval_fd"};
    char floor[32];
    if (json_object_get(row, "psnr"))
        lw_str_addf(out, "psnr %.2f dB (input %.2f, best filter %.2f, condition mirrored %.2f)",
                    json_number_value(json_object_get(row, "psnr")),
                    json_number_value(json_object_get(row, "psnr_input")),
                    json_number_value(json_object_get(row, "psnr_best")),
                    json_number_value(json_object_get(row, "psnr_swapped")));
    for (size_t i = 0; i < LW_COUNT(names); i++) {
        snprintf(floor, sizeof floor, "%s_floor", names[i]);
        if (json_object_get(row, names[i]))
            lw_str_addf(out, "%s%s %.4g (real pictures %.4g)", out->len ? "  " : "", names[i],
                        json_number_value(json_object_get(row, names[i])),
                        json_number_value(json_object_get(row, floor)));
    }
}

static int plot(const char *run, lw_str svg[LW_TRAIN_PLOTS])
{
    LW_TRY(lw_curves_heldout(run, "eval_fd", &svg[2]));
    return lw_curves_drift(run, &svg[0], &svg[1]);
}

static int save_grid(const lw_generator *g, int64_t step, const lw_image *im, const char *path)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)step);
    LW_CLEANUP(lw_json_drop)
    json_t *notes = json_pack("{s:s, s:s, s:s}", "Software", "leeway", "step", text, "method",
                              lw_method_name(g->method));
    return lw_png_save(path, im, notes);
}

static int grid_restored(lw_generator *g, int64_t step, const char *path)
{
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    lw_sampler *s;
    const lw_observer obs = only_stops(g);
    LW_TRY(open_sampler(g, &s));
    LW_TRY(lw_restored_grid(g->restored, s, &obs, &im));
    return save_grid(g, step, &im, path);
}

static int grid(void *self, int64_t step, const char *path)
{
    enum { N = 64, COLUMNS = 8 };
    lw_generator *g = self;
    const lw_network *n = &g->network;
    int32_t side = lw_picture_side(n), channels = lw_picture_channels(n), classes[N];
    lw_sampler *s;
    const lw_observer obs = only_stops(g);
    if (g->restored)
        return grid_restored(g, step, path);
    LW_TRY(open_sampler(g, &s));
    /* One class a column keeps the eye on one digit; with ten classes the columns hold the first
     * eight. */
    for (int i = 0; i < N; i++)
        classes[i] = n->classes ? (i % COLUMNS + i / COLUMNS) % n->classes : 0;
    float *x = lw_calloc((size_t)N * (size_t)(side * side * channels), sizeof *x);
    if (!x)
        return LW_ENOMEM;
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    const lw_grid grid = {.columns = COLUMNS,
                          .padding = 1,
                          .channels = channels,
                          .scale = side <= 16   ? 4
                                   : side < 128 ? 2
                                                : 1};
    int rc = lw_sampler_run(s, 0, N, classes, &obs, x);
    if (rc == 0)
        rc = lw_grid_f32(&grid, x, N, side, side, &im);
    if (rc == 0)
        rc = save_grid(g, step, &im, path);
    lw_free(&x);
    return rc;
}

static int restore(void *self, const json_t *extra)
{
    const lw_generator *g = self;
    return lw_picture_run_restore(&g->p, extra);
}

lw_train_job lw_generator_job(const char *name, lw_generator *g, const lw_train_config *c,
                              const lw_picture_config *pictures, const lw_observer *obs)
{
    g->p.c = c;
    g->p.pictures = pictures;
    g->p.obs = obs;
    return (lw_train_job){.name = name,
                          .self = g,
                          .restore = restore,
                          .grid = grid,
                          .evaluate = evaluate,
                          .tell = tell,
                          .plot = plot,
                          .unit = "pictures"};
}
