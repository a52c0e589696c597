/* SPDX-License-Identifier: Apache-2.0 */
/* The shared U-Net, forward: every method at every batch size, and over picture sizes. */
#include <math.h>

#include "bench/bench_reference.h"

typedef struct unet_suite {
    lw_bench_run *r;
    lw_unet_config config;
    lw_store *store;              /* shared by all methods and batch sizes */
    lw_bench_reference reference; /* of one picture */
} unet_suite;

static void close_suite(unet_suite *s)
{
    lw_bench_reference_close(&s->reference);
    lw_store_free(&s->store);
}

static lw_workload_spec spec_of(const unet_suite *s, const lw_workload_unet *u,
                                lw_compile_opts opts)
{
    return (lw_workload_spec){.build = lw_workload_build_unet,
                              .what = u,
                              .opts = opts,
                              .store = s->store,
                              .limit = lw_bench_memory_limit(s->r)};
}

/* About what one picture takes, to choose a reference by: 12.4 GFLOP at 32 pixels, 85 the large
 * one. */
static double flops_of_one(const unet_suite *s)
{
    double scale = (double)s->config.image_size / 32;
    return (s->r->config->large ? 85e9 : 12.4e9) * scale * scale;
}

/* Weights and reference, made when the first case needs them. */
static int prepare(unet_suite *s)
{
    if (s->store)
        return 0;
    lw_workload_unet one = {s->config, 1};
    LW_TRY(lw_store_new(true, &s->store));
    LW_TRY(lw_unet_declare(&s->config, s->store));
    lw_store_init(s->store, 1);
    lw_workload_spec spec = spec_of(s, &one, (lw_compile_opts){.opt = 0});
    return lw_bench_reference_open(s->r, &spec, flops_of_one(s), &s->reference);
}

/* One method at one batch size; too little memory, or a device without one of its ops, is a row of its own.
 * launched: its steps one by one, on a device that records runs and starts them as wholes. */
static int measure(unet_suite *s, const lw_bench_method *m, int32_t batch, bool launched,
                   const char *name)
{
    lw_workload workload;
    double error;
    lw_workload_unet u = {s->config, batch};
    LW_TRY(prepare(s));
    lw_workload_spec spec = spec_of(s, &u, m->opts);
    int rc = lw_workload_open(s->r->dev, &spec, &workload);
    if (rc == LW_ENOMEM || (rc == LW_EDEVICE && lw_backend_working()))
        return lw_bench_skip(s->r, name, m->name, batch, workload.bytes, lw_errmsg());
    LW_TRY(rc);
    if (launched)
        lw_exec_launch_each(workload.exec);
    double began = lw_now();
    rc = lw_bench_reference_error(&s->reference, &workload, &error);
    if (rc == 0) {
        lw_bench_work w = lw_bench_lab_work(&workload, m);
        w.name = name;
        w.batch = batch;
        w.error = error;
        w.warm = s->reference.against ? lw_now() - began : 0;
        w.against = s->reference.against;
        rc = lw_bench_measure(s->r, &w, NULL);
    }
    lw_workload_close(&workload);
    return rc;
}

static int measure_batches(unet_suite *s)
{
    static const int32_t usual[] = {1, 2, 4, 8, 16, 32, 64, 128};
    const lw_bench_config *c = s->r->config;
    const int32_t *batch = c->n_batch > 0 ? c->batch : usual;
    int32_t n = c->n_batch > 0 ? c->n_batch : (int32_t)LW_COUNT(usual);
    char name[64];
    for (size_t m = 0; m < lw_bench_n_methods; m++)
        for (int32_t i = 0; i < n && !lw_bench_methods[m].train_only; i++) {
            const lw_bench_method *method = &lw_bench_methods[m];
            snprintf(name, sizeof name, "%sforward%s_b%d", c->large ? "large_" : "", method->tag,
                     (int)batch[i]);
            if (lw_bench_wants(s->r, name))
                LW_TRY(measure(s, method, batch[i], false, name));
            snprintf(name, sizeof name, "%sforward%s_launched_b%d", c->large ? "large_" : "",
                     method->tag, (int)batch[i]);
            if (s->r->dev->replay && lw_bench_wants(s->r, name))
                LW_TRY(measure(s, method, batch[i], true, name));
        }
    return 0;
}

int lw_bench_suite_unet(lw_bench_run *r)
{
    unet_suite s = {.r = r, .config = lw_workload_unet_config(r->config->large)};
    int rc = measure_batches(&s);
    close_suite(&s);
    return rc;
}

/* One picture of `size` pixels, the levels and the attention's level as at 32. */
static int measure_size(lw_bench_run *r, int32_t size)
{
    unet_suite s = {.r = r, .config = lw_workload_unet_config(r->config->large)};
    int rc = 0;
    char name[64];
    s.config.image_size = size;
    for (size_t m = 0; rc == 0 && m < lw_bench_n_methods; m++) {
        snprintf(name, sizeof name, "%spixels%d%s", r->config->large ? "large_" : "", (int)size,
                 lw_bench_methods[m].tag);
        if (!lw_bench_methods[m].train_only && lw_bench_methods[m].opts.opt > 0 &&
            lw_bench_wants(r, name))
            rc = measure(&s, &lw_bench_methods[m], 1, false, name);
    }
    close_suite(&s);
    return rc;
}

int lw_bench_suite_resolution(lw_bench_run *r)
{
    static const int32_t usual[] = {32, 64, 96, 128, 192, 256};
    const lw_bench_config *c = r->config;
    const int32_t *size = c->n_size > 0 ? c->size : usual;
    int32_t n = c->n_size > 0 ? c->n_size : (int32_t)LW_COUNT(usual);
    if (c->latents && c->suite && lw_str_eq(c->suite, r->suite))
        return lw_bench_latents(r);
    for (int32_t i = 0; i < n; i++)
        LW_TRY(measure_size(r, size[i]));
    return 0;
}
