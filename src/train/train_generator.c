/* SPDX-License-Identifier: Apache-2.0 */
/* The common half of the generators' trainers. */
#include "train/train_generator.h"

#include <stdio.h>

#include "session/session_device.h"
#include "report/report.h"

int lw_generator_init(lw_generator *g, lw_method m, const lw_train_config *c,
                      const lw_net_config *n)
{
    const lw_data_opts data = {.image_size = c->image_size, .count = c->limit, .obs = g->obs};
    g->method = m;
    g->seed = (uint64_t)c->seed;
    g->precision = c->precision;
    LW_TRY(lw_session_device_with(c->threads, c->conv, &g->dev));
    LW_TRY(lw_data_open(c->data, &data, &g->data));
    LW_TRY(lw_net_unet(n, g->data, &g->net));
    LW_TRY(lw_store_new(false, &g->store));
    LW_TRY(lw_unet_declare(&g->net, g->store));
    lw_store_init(g->store, g->seed);
    g->model = lw_net_json(&g->net, m, g->data);
    return g->model ? 0 : lw_fail(LW_ENOMEM, "out of memory for config.json");
}

void lw_generator_clear(lw_generator *g)
{
    lw_sampler_free(&g->grid);
    lw_heldout_free(&g->heldout);
    lw_exec_free(&g->exec);
    lw_plan_free(&g->plan);
    lw_store_free(&g->store);
    lw_data_close(&g->data);
    lw_backend_close(&g->dev);
    json_decref(g->model);
    g->model = NULL;
}

int lw_generator_sampler(lw_generator *g, lw_sampler **out)
{
    lw_sampler_opts o = {.method = g->method,
                         .steps = g->grid_steps,
                         .timesteps = g->timesteps,
                         .batch = 64,
                         .seed = g->seed,
                         .precision = g->precision,
                         .weights = LW_SLAB_EMA};
    if (!g->grid)
        LW_TRY(lw_sampler_new(g->dev, &g->net, g->store, &o, &g->grid));
    *out = g->grid;
    return 0;
}

int lw_generator_measure(lw_generator *g, const lw_train_config *t, const char *encoder,
                         const lw_heldout_config *c)
{
    return t->eval_every > 0 ? lw_heldout_new(g->dev, g->data, encoder, c, g->obs, &g->heldout) : 0;
}

int lw_generator_evaluate(lw_generator *g, int64_t step, json_t *row)
{
    lw_sampler *s;
    /* of the observer only the wish to stop: the bar is the trainer's */
    const lw_observer obs = {.self = g->obs ? g->obs->self : NULL,
                             .should_stop = g->obs ? g->obs->should_stop : NULL};
    LW_TRY(lw_generator_sampler(g, &s));
    return lw_heldout_run(g->heldout, s, step, &obs, row);
}

int lw_generator_grid(lw_generator *g, int64_t step, const char *path)
{
    enum { N = 64, COLUMNS = 8 };
    int32_t side = g->net.image_size, classes[N];
    lw_sampler *s;
    LW_TRY(lw_generator_sampler(g, &s));
    /* One class a column keeps the eye on one digit; with ten classes the columns hold the first
     * eight. */
    for (int i = 0; i < N; i++)
        classes[i] = g->net.classes ? (i % COLUMNS + i / COLUMNS) % g->net.classes : 0;
    float *x = lw_calloc((size_t)N * (size_t)(side * side * 3), sizeof *x);
    if (!x)
        return LW_ENOMEM;
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    const lw_grid grid = {.columns = COLUMNS, .padding = 1, .scale = side <= 16 ? 4 : 2};
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

lw_train_job lw_generator_job(lw_generator *g, const char *name, void *self, lw_leaves leaves)
{
    return (lw_train_job){.name = name,
                          .self = self,
                          .dev = g->dev,
                          .store = g->store,
                          .step = g->exec,
                          .plan = g->plan,
                          .leaves = leaves,
                          .model = g->model};
}
