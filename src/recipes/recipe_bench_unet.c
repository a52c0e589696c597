/* SPDX-License-Identifier: Apache-2.0 */
/* The shared U-Net: forward, and one whole DDPM training step (noise, forward, backward, clip,
 * AdamW, EMA). */
#include <string.h>

#include "backend/cpu/cpu_optim.h"
#include "models/models.h"
#include "recipes/recipe_bench_case.h"
#include "recipes/recipe_diffusion.h"

/* One prepared network at one batch size. */
typedef struct unet_case {
    lw_device *dev;
    lw_store *store;
    lw_graph *graph;
    lw_plan *plan;
    lw_exec *exec;
    lw_cpu_adamw_args adamw; /* p NULL: forward only */
    double optim_seconds;
    lw_tick tick;
} unet_case;

static void close_case(unet_case *u)
{
    lw_exec_free(&u->exec);
    lw_plan_free(&u->plan);
    lw_graph_free(&u->graph);
    lw_store_free(&u->store);
    lw_free(&u->adamw.work);
}

/* eps_theta(x_t, t) of noised pictures; the mean squared error is the loss. */
static void build_train(lw_builder *b, const lw_unet_config *c, int32_t batch)
{
    static lw_diffusion d;
    float alpha_bar[1000];
    lw_graph *g = b->g;
    lw_diffusion_init(&d, 1000);
    for (int i = 0; i < 1000; i++)
        alpha_bar[i] = (float)d.alpha_bar[i];
    lw_type image = lw_type_of(LW_F32, 4, batch, c->image_size, c->image_size, c->in_channels);
    lw_val x0 = lw_input(g, "x", image);
    lw_val t = lw_random(g, "t", LW_RANDOM_BELOW, 1000, lw_type_of(LW_I32, 1, batch), b->rows);
    lw_val eps = lw_random(g, "noise", LW_RANDOM_NORMAL, 0, image, b->rows);
    lw_val a = lw_embedding(g, lw_const(g, lw_type_of(LW_F32, 2, 1000, 1), alpha_bar), t);
    lw_val steps = lw_embedding(g, lw_const(g, lw_type_of(LW_F32, 2, 1000, 1), (float[1000]){0}),
                                t);
    a = lw_reshape(g, a, lw_type_of(LW_F32, 4, batch, 1, 1, 1));
    lw_val s = lw_ew1(g, LW_EW_sqrt, lw_add_f32(g, lw_scale(g, a, -1), 1));
    lw_val xt = lw_add(g, lw_mul(g, x0, lw_ew1(g, LW_EW_sqrt, a)), lw_mul(g, eps, s));
    lw_val y = lw_unet(
        b, c, (lw_unet_in){.x = xt, .t = lw_reshape(g, steps, lw_type_of(LW_F32, 1, batch))});
    lw_val loss = lw_mean(g, lw_sqr(g, lw_sub(g, y, eps)), LW_OVER_ALL);
    lw_graph_output_add(g, "loss", loss, LW_NOVAL);
    lw_grad_params(g, loss, LW_NOVAL);
}

static void build(lw_builder *b, const lw_unet_config *c, int32_t batch)
{
    lw_val x = lw_input(b->g, "x",
                        lw_type_of(LW_F32, 4, batch, c->image_size, c->image_size, c->in_channels));
    lw_val t = lw_input(b->g, "t", lw_type_of(LW_F32, 1, batch));
    lw_graph_output_add(b->g, "y", lw_unet(b, c, (lw_unet_in){.x = x, .t = t}), LW_NOVAL);
}

static int prepare_adamw(unet_case *u)
{
    lw_cpu_adamw_args *a = &u->adamw;
    a->p = lw_store_slab(u->store, LW_SLAB_PARAM, &a->n);
    a->m = lw_store_slab(u->store, LW_SLAB_M, NULL);
    a->v = lw_store_slab(u->store, LW_SLAB_V, NULL);
    a->ema = lw_store_slab(u->store, LW_SLAB_EMA, NULL);
    a->g = lw_store_slab(u->store, LW_SLAB_GRAD, NULL);
    a->lr = 2e-4;
    a->beta1 = 0.9;
    a->beta2 = 0.999;
    a->eps = 1e-8;
    a->grad_scale = a->max_norm = 1;
    a->ema_decay = 0.9999;
    a->work = lw_calloc((size_t)lw_cpu_adamw_work(a->n), sizeof *a->work);
    return a->work ? 0 : LW_ENOMEM;
}

static void fill(lw_exec *e, const char *name, uint64_t seed)
{
    float *v = lw_exec_data(e, name);
    int64_t n = lw_type_count(lw_exec_type(e, name));
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)((double)((lw_hash64(&i, sizeof i) ^ seed) % 2001) / 1000.0 - 1.0);
}

static int open_case(unet_case *u, const lw_bench_run *r, bool train, int32_t batch)
{
    lw_unet_config c = r->config->large ? lw_unet_large() : lw_unet_small();
    c.dropout = (float)r->config->dropout;
    u->dev = r->dev;
    LW_TRY(lw_store_new(!train, &u->store));
    LW_TRY(lw_unet_declare(&c, u->store));
    LW_TRY(lw_graph_new(&u->graph));
    lw_builder b = {.g = u->graph, .params = lw_store_params(u->store), .training = train};
    if (train) {
        b.rows = lw_input(u->graph, "rows", lw_type_of(LW_I64, 1, batch));
        build_train(&b, &c, batch);
    } else {
        build(&b, &c, batch);
    }
    LW_TRY(lw_compile(u->graph, u->dev, &(lw_compile_opts){.opt = 1}, &u->plan));
    lw_store_init(u->store, 1);
    LW_TRY(lw_exec_new(u->plan, LW_SLAB_PARAM, &u->exec));
    fill(u->exec, "x", 1);
    if (!train) {
        fill(u->exec, "t", 2);
        return 0;
    }
    for (int64_t i = 0; i < batch; i++)
        ((int64_t *)lw_exec_data(u->exec, "rows"))[i] = i;
    return prepare_adamw(u);
}

static int call(void *self)
{
    unet_case *u = self;
    LW_TRY(lw_exec_run(u->exec, &u->tick));
    u->tick.step++;
    if (!u->adamw.p)
        return 0;
    double norm, t = lw_now();
    u->adamw.t = u->tick.step;
    LW_TRY(lw_cpu_adamw(u->dev, &u->adamw, &norm));
    lw_store_touch(u->store, LW_SLAB_PARAM);
    u->optim_seconds = lw_now() - t;
    return 0;
}

static int measure(lw_bench_run *r, bool train, int32_t batch)
{
    char name[64];
    unet_case u = {0};
    snprintf(name, sizeof name, "%s%s_b%d", r->config->large ? "large_" : "",
             train ? "train" : "forward", (int)batch);
    if (!lw_bench_wants(r, name))
        return 0;
    int rc = open_case(&u, r, train, batch);
    if (rc == 0) {
        lw_plan_info i = lw_plan_get_info(u.plan);
        rc = lw_bench_measure(
            r, &(lw_bench_work){.name = name,
                                .call = call,
                                .self = &u,
                                .flops = i.flops,
                                .exec = u.exec,
                                .memory = lw_store_bytes(u.store) + i.frame_bytes + i.derived_bytes,
                                .extra = train ? "clip, adamw, ema" : NULL,
                                .extra_seconds = &u.optim_seconds,
                                .extra_bytes = 10.0 * (double)sizeof(float) * (double)u.adamw.n});
    }
    close_case(&u);
    return rc;
}

int lw_bench_suite_unet(lw_bench_run *r)
{
    const lw_bench_config *c = r->config;
    bool train = c->train || c->suite == LW_BENCH_TRAIN;
    for (int32_t i = 0; i < c->n_batch; i++)
        LW_TRY(measure(r, train, c->batch[i]));
    if (c->n_batch > 0)
        return 0;
    if (!train) {
        LW_TRY(measure(r, false, 1));
        LW_TRY(measure(r, false, 8));
    }
    return measure(r, true, 16);
}
