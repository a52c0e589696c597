/* SPDX-License-Identifier: Apache-2.0 */
/* One training in the plane, through the shared loop. */
#include "jobs/toy/toy_parts.h"

#include <stdio.h>
#include <string.h>

#include "session/session_device.h"
#include "session/session_forward.h"
#include "train/train.h"

/* Rows of what is measured lie beyond those of every step. */
#define HELD_OUT ((int64_t)1 << 48)

typedef struct toy_training {
    lw_toy_run *r;
    const lw_train_config *c;
    lw_store *store;
    lw_plan *plan;
    lw_exec *exec;
    lw_leaves leaves;
    json_t *model;
} toy_training;

static int feed(void *self, int64_t leaf)
{
    toy_training *t = self;
    int64_t *row = lw_exec_write(t->exec, "rows");
    for (int64_t i = 0; i < t->leaves.size; i++)
        row[i] = leaf * t->leaves.size + i;
    return 0;
}

/* Loss: mean V^2. Its gradient takes x + V for a constant: -2 V / (2 n) at x. */
static int build_step(toy_training *t, lw_graph *g)
{
    int32_t n = (int32_t)t->leaves.size;
    lw_val rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, n));
    lw_builder b = {.g = g, .params = lw_store_params(t->store), .training = true, .rows = rows};
    lw_val x = lw_toy_generate(&b, t->r->c);
    lw_val y = lw_toy_real(g, t->r->data, rows);
    lw_val v = lw_toy_field(g, x, y, (float)t->r->c->temperature, t->r->balance);
    if (!lw_val_ok(v))
        return lw_graph_error(g) ? lw_graph_error(g) : LW_ENOMEM;
    lw_graph_output_add(g, "loss", lw_mean(g, lw_sqr(g, v), LW_OVER_ALL), LW_NOVAL);
    return lw_grad_params(g, x, lw_scale(g, v, -1.0f / (float)n));
}

static int declare(const lw_toy_config *c, lw_store *store)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g,
                    .params = lw_store_params(store),
                    .rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, 1))};
    lw_toy_generate(&b, c);
    LW_TRY(lw_graph_error(g));
    return lw_store_fix(store);
}

static int set_up(void *self, lw_train_job *job)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    toy_training *t = self;
    const lw_toy_config *c = t->r->c;
    LW_TRY(lw_train_leaves(t->c, t->c->batch_size, t->c->batch_size, "--batch-size", &t->leaves));
    LW_TRY(lw_store_new(false, &t->store));
    LW_TRY(declare(c, t->store));
    lw_store_init(t->store, (uint64_t)t->c->seed);
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build_step(t, g));
    LW_TRY(lw_train_compile(t->c, t->r->dev, g, &t->plan, &t->exec));
    t->model = json_pack("{s:s, s:i, s:i, s:i, s:s, s:s}", "_class_name", "LeewayToyGenerator",
                         "hidden", (int)c->hidden, "depth", (int)c->depth, "noise", (int)c->noise,
                         "data", lw_toy_data_name[t->r->data], "ablation", t->r->balance->name);
    if (!t->model)
        return lw_fail(LW_ENOMEM, "out of memory for config.json");
    job->dev = t->r->dev;
    job->store = t->store;
    job->step = t->exec;
    job->plan = t->plan;
    job->leaves = t->leaves;
    job->model = t->model;
    return 0;
}

/* ---- points of a graph ----------------------------------------------------------------------- */

/* Rows first .. first + n - 1 of a graph whose input is `rows` and whose output is `points`. */
static int run_points(lw_device *dev, lw_graph **g, int64_t seed, int64_t first, int32_t n,
                      float *out)
{
    LW_CLEANUP(lw_forward_free) lw_forward *f = NULL;
    LW_TRY(lw_forward_of(dev, g, NULL, LW_SLAB_PARAM, "points", &f));
    int64_t *row = lw_forward_input(f, "rows");
    for (int32_t i = 0; i < n; i++)
        row[i] = first + i;
    const lw_tick tick = {(uint64_t)seed, 0};
    LW_TRY(lw_forward_run(f, &tick));
    memcpy(out, lw_forward_output(f, "points"), (size_t)n * 2 * sizeof *out);
    return 0;
}

int lw_toy_held_out(lw_device *dev, lw_toy_points data, int32_t set, int64_t seed, int32_t n,
                    float *out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(lw_graph_new(&g));
    lw_val rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, n));
    lw_graph_output_add(g, "points", lw_toy_real(g, data, rows), LW_NOVAL);
    return run_points(dev, &g, seed, HELD_OUT + (int64_t)set * n, n, out);
}

static int generate(toy_training *t, float *out)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    int32_t n = t->r->c->points;
    LW_TRY(lw_graph_new(&g));
    lw_builder b = {.g = g,
                    .params = lw_store_params(t->store),
                    .rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, n))};
    lw_graph_output_add(g, "points", lw_toy_generate(&b, t->r->c), LW_NOVAL);
    return run_points(t->r->dev, &g, t->r->seed, HELD_OUT, n, out);
}

static int measure(toy_training *t)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    const int64_t shape[] = {t->r->c->points, 2};
    int32_t n = t->r->c->points;
    LW_CLEANUP(lw_free) float *set = lw_calloc((size_t)n * 6, sizeof *set);
    if (!set)
        return LW_ENOMEM;
    float *x = set, *y = set + 2 * (size_t)n, *z = set + 4 * (size_t)n;
    LW_TRY(generate(t, x));
    LW_TRY(lw_toy_held_out(t->r->dev, t->r->data, 0, t->r->seed, n, y));
    LW_TRY(lw_toy_held_out(t->r->dev, t->r->data, 1, t->r->seed, n, z));
    if (!lw_path_join(&path, t->r->dir, "points.npy"))
        return LW_ENOMEM;
    LW_TRY(lw_npy_save(lw_str_c(&path), LW_ELEM_F32, 2, shape, x));
    return lw_toy_measure_points(t->r->dev->pool, t->r->data, x, y, z, n, &t->r->measure);
}

/* ---- run ------------------------------------------------------------------------------------- */

/* The job's close comes before what is measured: the loop owns nothing of ours. */
static void close_training(toy_training *t)
{
    lw_exec_free(&t->exec);
    lw_plan_free(&t->plan);
    lw_store_free(&t->store);
    json_decref(t->model);
}

static int train(toy_training *t, const lw_observer *obs)
{
    char name[96]; /* says which of the suite */
    snprintf(name, sizeof name, "train toy %s %s seed %lld", lw_toy_data_name[t->r->data],
             t->r->balance->name, (long long)t->r->seed);
    const lw_train_job job = {
        .name = name, .self = t, .set_up = set_up, .feed = feed, .unit = "points"};
    LW_TRY(lw_train_run(&job, t->c, obs, &t->r->trained));
    return t->c->dry_run || !t->store ? 0 : measure(t);
}

int lw_toy_train(lw_toy_run *r, const lw_observer *obs)
{
    lw_train_config c = r->c->train;
    c.output_dir = r->dir;
    c.resume = !c.dry_run && lw_path_exists(r->dir);
    c.seed = r->seed;
    toy_training t = {.r = r, .c = &c};
    int rc = train(&t, obs);
    if (rc == 0 &&
        !t.store) { /* stopped between its last step and its measures: the loop opened nothing */
        c.resume = false;
        rc = lw_remove_tree(r->dir);
        if (rc == 0)
            rc = train(&t, obs);
    }
    close_training(&t);
    return rc;
}
