/* SPDX-License-Identifier: Apache-2.0 */
/* The common half of the generators' trainers. */
#include "train/pictures/train_generator.h"

#include <stdio.h>

#include "report/report.h"
#include "train/train_curves.h"

int lw_generator_init(lw_generator *g, lw_method m, const lw_net_config *n)
{
    lw_picture_run *p = &g->p;
    g->method = m;
    LW_TRY(lw_picture_run_open(p));
    LW_TRY(lw_net_unet(n, p->data, &g->net));
    LW_TRY(lw_unet_declare(&g->net, p->store));
    lw_store_init(p->store, (uint64_t)p->c->seed);
    p->model = lw_net_json(&g->net, m, p->data);
    if (!lw_unet_is_diffusers(&g->net)) /* it would open this, and compute something else */
        p->weights = LW_WEIGHTS_HF;
    return p->model ? 0 : lw_fail(LW_ENOMEM, "out of memory for config.json");
}

void lw_generator_clear(lw_generator *g)
{
    lw_sampler_free(&g->grid);
    lw_heldout_free(&g->heldout);
    lw_picture_run_clear(&g->p);
}

/* A sampler of the averaged weights, kept. */
static int open_sampler(lw_generator *g, lw_sampler **out)
{
    lw_sampler_opts o = {.method = g->method,
                         .steps = g->grid_steps,
                         .timesteps = g->timesteps,
                         .batch = 64,
                         .seed = (uint64_t)g->p.c->seed,
                         .precision = g->p.c->precision,
                         .weights = LW_SLAB_EMA};
    const lw_network n = lw_network_of(&lw_network_def_unet, &g->net, g->p.store);
    if (!g->grid)
        LW_TRY(lw_sampler_new(g->p.dev, &n, &o, &g->grid));
    *out = g->grid;
    return 0;
}

int lw_generator_measure(lw_generator *g, const char *encoder, const lw_heldout_config *c,
                         lw_train_job *job)
{
    if (g->p.c->eval_every > 0)
        LW_TRY(lw_heldout_new(g->p.dev, g->p.data, encoder, c, g->p.obs, &g->heldout));
    if (g->heldout)
        lw_observe_say(g->p.obs, "%s", lw_heldout_names(g->heldout));
    job->best = lw_heldout_metric(c);
    job->best_measure = g->heldout ? lw_heldout_measure(g->heldout) : NULL;
    return 0;
}

static int evaluate(void *self, int64_t step, json_t *row)
{
    lw_generator *g = self;
    lw_sampler *s;
    /* of the observer only the wish to stop: the bar is the trainer's */
    const lw_observer obs = {.self = g->p.obs ? g->p.obs->self : NULL,
                             .should_stop = g->p.obs ? g->p.obs->should_stop : NULL};
    LW_TRY(open_sampler(g, &s));
    return lw_heldout_run(g->heldout, s, step, &obs, row);
}

static void tell(const json_t *row, lw_str *out)
{
    static const char *const names[] = {"fd", "eval_fd"};
    char floor[32];
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

static int grid(void *self, int64_t step, const char *path)
{
    enum { N = 64, COLUMNS = 8 };
    lw_generator *g = self;
    int32_t side = g->net.image_size, classes[N];
    lw_sampler *s;
    LW_TRY(open_sampler(g, &s));
    /* One class a column keeps the eye on one digit; with ten classes the columns hold the first
     * eight. */
    for (int i = 0; i < N; i++)
        classes[i] = g->net.classes ? (i % COLUMNS + i / COLUMNS) % g->net.classes : 0;
    float *x = lw_calloc((size_t)N * (size_t)(side * side * g->net.out_channels), sizeof *x);
    if (!x)
        return LW_ENOMEM;
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    const lw_grid grid = {.columns = COLUMNS,
                          .padding = 1,
                          .channels = g->net.out_channels,
                          .scale = side <= 16 ? 4 : 2};
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)step);
    int rc = lw_sampler_run(s, 0, N, classes, NULL, x);
    if (rc == 0)
        rc = lw_grid_f32(&grid, x, N, side, side, &im);
    json_t *notes = json_pack("{s:s, s:s, s:s}", "Software", "leeway", "step", text, "method",
                              lw_method_name(g->method));
    if (rc == 0)
        rc = lw_png_save(path, &im, notes);
    json_decref(notes);
    lw_free(&x);
    return rc;
}

lw_train_job lw_generator_job(const char *name, lw_generator *g, const lw_train_config *c,
                              const lw_picture_config *pictures, const lw_observer *obs)
{
    g->p.c = c;
    g->p.pictures = pictures;
    g->p.obs = obs;
    return (lw_train_job){.name = name,
                          .self = g,
                          .grid = grid,
                          .evaluate = evaluate,
                          .tell = tell,
                          .plot = plot,
                          .unit = "pictures"};
}
