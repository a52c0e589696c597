/* SPDX-License-Identifier: Apache-2.0 */
/* What a case's result is compared with. */
#include "bench/bench_reference.h"

#include <math.h>

#include "session/session_device.h"

/* The reference kernels do about one of these a second. */
static const double reference_flops = 15e9;

int lw_bench_reference_device(lw_bench_run *r, double flops, lw_bench_reference *out,
                              lw_device **dev)
{
    lw_isa level = r->isa > LW_ISA_AVX2 ? LW_ISA_AVX2 : r->isa;
    *dev = r->ref;
    out->against = lw_isa_name(LW_ISA_REF);
    if (flops <= reference_flops)
        return 0;
    const lw_backend_options o = {.threads = lw_pool_size(r->dev->pool), .isa = level};
    LW_TRY(lw_backend_open("cpu", &o, &out->lower));
    lw_pool_watch(out->lower->pool, r->obs);
    out->against = lw_isa_name(level);
    *dev = out->lower;
    return 0;
}

int lw_bench_reference_open(lw_bench_run *r, const lw_workload_spec *spec, double flops,
                            lw_bench_reference *out)
{
    lw_bench_reference f = {0};
    lw_workload_spec s = *spec;
    lw_device *dev;
    if (!r->config->reference)
        return 0;
    LW_TRY(lw_bench_reference_device(r, flops, &f, &dev));
    s.opts = (lw_compile_opts){.opt = 0};
    if (flops > reference_flops)
        s.opts.opt = 1; /* without reuse of memory large ones would not fit */
    lw_observe_progress(r->obs, "bench", LW_MAX(r->out->n - 1, 0), r->total, "reference");
    int rc = lw_workload_open(dev, &s, &f.workload);
    if (rc == 0)
        rc = lw_workload_run(&f.workload);
    if (rc < 0)
        lw_bench_reference_close(&f);
    else
        *out = f;
    return rc == LW_ENOMEM ? 0 : rc; /* then there is no error beside the speed */
}

void lw_bench_reference_close(lw_bench_reference *f)
{
    lw_workload_close(&f->workload);
    lw_backend_close(&f->lower);
    f->against = NULL;
}

int lw_bench_reference_error(const lw_bench_reference *f, lw_workload *l, double *error)
{
    *error = (double)NAN;
    if (!f->against)
        return 0;
    l->tick = (lw_tick){0};
    LW_TRY(lw_workload_run(l));
    *error = lw_workload_error(l, &f->workload, NULL);
    return 0;
}

static int measure(lw_bench_run *r, const lw_bench_method *m, const lw_workload_spec *spec,
                   lw_workload *workload, const char *name, int32_t batch)
{
    lw_bench_reference f = {0};
    double error;
    LW_TRY(lw_bench_reference_open(r, spec, workload->info.flops, &f));
    lw_bench_work w = lw_bench_lab_work(workload, m);
    int rc = lw_bench_reference_error(&f, workload, &error);
    w.name = name;
    w.batch = batch;
    w.error = error;
    w.against = f.against;
    lw_bench_reference_close(&f);
    return rc < 0 ? rc : lw_bench_measure(r, &w, NULL);
}

int lw_bench_workload(lw_bench_run *r, const lw_bench_method *m, const lw_workload_spec *spec,
                      const char *name, int32_t batch)
{
    lw_workload workload;
    int rc = lw_workload_open(r->dev, spec, &workload);
    if (rc == LW_ENOMEM || (rc == LW_EDEVICE && lw_backend_working()))
        return lw_bench_skip(r, name, m ? m->name : "f32", batch, workload.bytes, lw_errmsg());
    LW_TRY(rc);
    rc = measure(r, m, spec, &workload, name, batch);
    lw_workload_close(&workload);
    return rc;
}

lw_bench_work lw_bench_lab_work(lw_workload *l, const lw_bench_method *m)
{
    return (lw_bench_work){.method = m ? m->name : "f32",
                           .call = lw_workload_run,
                           .self = l,
                           .flops = l->info.flops,
                           .bytes = l->info.bytes,
                           .num = m ? m->num : LW_NUM_F32,
                           .memory = l->bytes,
                           .error = (double)NAN,
                           .exec = l->exec};
}
