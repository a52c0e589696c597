/* SPDX-License-Identifier: Apache-2.0 */
/* One whole DDPM training step of the shared U-Net: noise, forward, backward, clip, AdamW, EMA. */
#include <math.h>

#include "bench/bench_reference.h"

typedef struct train_case {
    lw_workload workload;
    lw_update update;
    double optim_seconds;
} train_case;

static void prepare_update(train_case *t)
{
    t->update = (lw_update){.lr = 2e-4,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .eps = 1e-8,
                            .grad_scale = 1,
                            .max_norm = 1,
                            .ema_decay = 0.9999};
    t->update.n = lw_store_slabs(t->workload.store, t->update.slab);
}

static int step(void *self)
{
    train_case *t = self;
    double norm;
    LW_TRY(lw_workload_run(&t->workload));
    double began = lw_now();
    t->update.t = t->workload.tick.step;
    LW_TRY(t->workload.dev->update(t->workload.dev->self, &t->update, &norm));
    lw_store_touch(t->workload.store, LW_SLAB_PARAM);
    t->optim_seconds = lw_now() - began;
    return 0;
}

/* The gradients of the first step, before the optimiser moves anything. */
static int gradient_error(lw_bench_run *r, const lw_workload_spec *spec, lw_workload *workload,
                          double *error, const char **against)
{
    lw_bench_reference f = {0};
    int64_t n;
    *error = (double)NAN;
    int rc = lw_bench_reference_open(r, spec, workload->info.flops, &f);
    LW_TRY(rc);
    *against = f.against; /* names of levels are static */
    if (f.against) {
        rc = lw_workload_run(workload);
        lw_store_slab(workload->store, LW_SLAB_GRAD, &n);
        *error = lw_workload_error_of(lw_store_data(workload->store, 0, LW_SLAB_GRAD),
                                      lw_store_data(f.workload.store, 0, LW_SLAB_GRAD), n, NULL);
        workload->tick = (lw_tick){0};
    }
    lw_bench_reference_close(&f);
    return rc;
}

static int measure_case(lw_bench_run *r, const lw_bench_method *m, const lw_workload_spec *spec,
                        train_case *t, const char *name, int32_t batch)
{
    double error;
    const char *against = NULL;
    LW_TRY(gradient_error(r, spec, &t->workload, &error, &against));
    prepare_update(t);
    lw_bench_work w = lw_bench_lab_work(&t->workload, m);
    w.name = name;
    w.batch = batch;
    w.call = step;
    w.self = t;
    w.error = error;
    w.against = against;
    w.extra = "clip, adamw, ema";
    w.extra_seconds = &t->optim_seconds;
    w.extra_bytes = 10.0 * (double)sizeof(float) * (double)t->update.n;
    w.bytes += w.extra_bytes;
    return lw_bench_measure(r, &w, NULL);
}

int lw_bench_train_step(lw_bench_run *r, const lw_bench_method *m, const lw_workload_spec *spec,
                        const char *name, int32_t batch)
{
    train_case t = {0};
    int rc = lw_workload_open(r->dev, spec, &t.workload);
    if (rc == LW_ENOMEM)
        return lw_bench_skip(r, name, m->name, batch, t.workload.bytes, lw_errmsg());
    LW_TRY(rc);
    rc = measure_case(r, m, spec, &t, name, batch);
    lw_workload_close(&t.workload);
    return rc;
}

static int measure(lw_bench_run *r, const lw_bench_method *m, int32_t batch)
{
    char name[64];
    lw_workload_unet u = {lw_workload_unet_config(r->config->large), batch};
    u.config.dropout = (float)r->config->dropout;
    const lw_workload_spec spec = {.build = lw_workload_build_ddpm,
                                   .what = &u,
                                   .opts = m->opts,
                                   .train = true,
                                   .limit = lw_bench_memory_limit(r)};
    snprintf(name, sizeof name, "%strain%s_b%d", r->config->large ? "large_" : "", m->tag,
             (int)batch);
    return m->trains && lw_bench_wants(r, name) ? lw_bench_train_step(r, m, &spec, name, batch) : 0;
}

int lw_bench_suite_train(lw_bench_run *r)
{
    static const int32_t usual[] = {1, 16, 64};
    const lw_bench_config *c = r->config;
    const int32_t *batch = c->n_batch > 0 ? c->batch : usual;
    int32_t n = c->n_batch > 0 ? c->n_batch : (int32_t)LW_COUNT(usual);
    for (size_t m = 0; m < lw_bench_n_methods; m++)
        for (int32_t i = 0; i < n; i++)
            LW_TRY(measure(r, &lw_bench_methods[m], batch[i]));
    return 0;
}
