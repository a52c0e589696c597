/* SPDX-License-Identifier: Apache-2.0 */
/* Timing the steps of one plan, and other ways to compute the same network as wholes. */
#include "bench/profile/bench_profile.h"

#include <math.h>

#include "bench/bench_case.h"
#include "bench/bench_workload.h"
#include "session/session_device.h"
#include "session/session_forward.h"

enum { MOST_RUNS = 1000 };

/* What is profiled: a preset, or the network of a folder. */
typedef struct subject {
    lw_network *net; /* NULL: a preset */
    lw_workload_unet preset;
    int32_t batch, side;
    lw_workload_spec spec;
} subject;

static int build_network(lw_builder *b, const void *what)
{
    const subject *s = what;
    return lw_network_build(s->net, b->g, s->batch, s->side, s->side, NULL);
}

static int open_subject(const lw_profile_config *c, subject *s)
{
    bool large = lw_str_eq(c->source, "unet-large");
    s->batch = c->batch;
    if (large || lw_str_eq(c->source, "unet")) {
        s->preset = (lw_workload_unet){lw_workload_unet_config(large), c->batch};
        if (c->image_size > 0)
            s->preset.config.image_size = c->image_size;
        s->side = s->preset.config.image_size;
        s->spec = (lw_workload_spec){.build = c->train ? lw_workload_build_ddpm
                                                       : lw_workload_build_unet,
                                     .what = &s->preset,
                                     .train = c->train};
        return 0;
    }
    if (c->train)
        return lw_fail(LW_EUSAGE, "--train profiles the presets unet and unet-large only");
    LW_TRY(lw_network_open(c->source, true, &s->net));
    s->side = lw_network_side(s->net, c->image_size);
    s->spec = (lw_workload_spec){.build = build_network, .what = s, .store = s->net->store};
    return 0;
}

static const lw_bench_method *find_method(const char *name)
{
    for (size_t i = 0; i < lw_bench_n_methods; i++)
        if (lw_str_eq(lw_bench_methods[i].name, name))
            return &lw_bench_methods[i];
    return NULL;
}

/* ---- the steps ------------------------------------------------------------------------------- */

static int copy_phases(const lw_workload *l, lw_arena *arena, int i, lw_profile_step *s)
{
    int n = lw_exec_phase_count(l->exec, i);
    lw_profile_phase *phase = lw_arena_alloc(arena, (size_t)LW_MAX(n, 1) * sizeof *phase);
    if (!phase)
        return LW_ENOMEM;
    for (int k = 0; k < n; k++) {
        lw_phase_time t = lw_exec_phase_time(l->exec, i, k);
        phase[k] = (lw_profile_phase){.ms = 1e3 * t.seconds, .tasks = t.tasks};
    }
    s->phase = phase;
    s->n_phase = n;
    return 0;
}

static int copy_steps(const lw_workload *l, lw_profile *p)
{
    int n = lw_exec_step_count(l->exec);
    p->step = lw_arena_alloc(p->arena, (size_t)(n + 1) * sizeof *p->step);
    if (!p->step)
        return LW_ENOMEM;
    for (int i = n - l->info.n_steps; i < n; i++) { /* prepared data is made once */
        lw_step_time t = lw_exec_step_time(l->exec, i);
        LW_CLEANUP(lw_str_clear) lw_str type = {0};
        lw_type_print(&type, t.type);
        p->step[p->n_step] = (lw_profile_step){.op = lw_arena_strdup(p->arena, t.op),
                                               .scope = lw_arena_strdup(p->arena, t.scope),
                                               .type = lw_arena_strdup(p->arena, lw_str_c(&type)),
                                               .ms = 1e3 * t.seconds,
                                               .flops = t.flops,
                                               .bytes = t.bytes,
                                               .live = lw_plan_live_bytes(l->plan, i),
                                               .tasks = t.tasks};
        LW_TRY(copy_phases(l, p->arena, i, &p->step[p->n_step]));
        p->ms += p->step[p->n_step].ms;
        p->peak_live = LW_MAX(p->peak_live, p->step[p->n_step].live);
        p->n_step++;
    }
    return 0;
}

static int profile_steps(lw_workload *l, const lw_profile_config *c, const lw_observer *obs,
                         lw_profile *p)
{
    lw_exec_profile(l->exec, true);
    for (int32_t i = 0; i < c->runs; i++) {
        LW_TRY(lw_workload_run(l));
        lw_observe_progress(obs, "profile", i + 1, c->runs, NULL);
        if (lw_observe_stop(obs))
            return lw_fail(LW_ESTOPPED, "interrupted");
    }
    LW_TRY(copy_steps(l, p));
    lw_exec_profile(l->exec, false);
    p->weights = lw_store_bytes(l->store);
    return 0;
}

/* ---- as wholes ------------------------------------------------------------------------------- */

static int time_method(lw_workload *l, int32_t runs, lw_profile_method *m)
{
    double ms[MOST_RUNS];
    runs = LW_MIN(runs, MOST_RUNS);
    for (int32_t i = 0; i < runs; i++) {
        double t;
        LW_TRY(lw_device_time(l->dev, 1, lw_workload_run, l, &t));
        ms[i] = 1e3 * t;
    }
    m->ms = lw_summarize(ms, runs).p50;
    m->frame = l->info.frame_bytes;
    m->derived = l->info.derived_bytes;
    return 0;
}

static double error_between(const lw_workload *a, const lw_workload *b, bool train)
{
    int64_t n;
    if (!train)
        return lw_workload_error(a, b, NULL);
    lw_store_slab(a->store, LW_SLAB_GRAD, &n);
    return lw_workload_error_of(lw_store_data(a->store, 0, LW_SLAB_GRAD),
                                lw_store_data(b->store, 0, LW_SLAB_GRAD), n, NULL);
}

/* One method: its time, its memory, and (when shown) its steps. */
static int run_method(const subject *s, lw_device *dev, const lw_profile_config *c,
                      const lw_bench_method *m, bool shown, lw_workload *plain,
                      const lw_observer *obs, lw_profile *p)
{
    lw_workload workload;
    lw_workload_spec spec = s->spec;
    lw_profile_method *out = &p->method[p->n_method];
    spec.opts = m->opts;
    spec.limit = lw_memory_total();
    *out = (lw_profile_method){.name = m->name, .error = (double)NAN};
    LW_TRY(lw_workload_open(dev, &spec, &workload));
    int rc = lw_workload_run(&workload);
    if (rc == 0 && plain->exec)
        out->error = error_between(&workload, plain, c->train);
    if (rc == 0)
        rc = time_method(&workload, c->runs, out);
    if (rc == 0 && shown)
        rc = profile_steps(&workload, c, obs, p);
    lw_workload_close(&workload);
    p->n_method += rc == 0;
    return rc;
}

/* The shown method first, then the others that can do this at all. */
static int run_methods(const subject *s, lw_device *dev, const lw_profile_config *c,
                       const lw_bench_method *shown, lw_workload *plain, const lw_observer *obs,
                       lw_profile *p)
{
    LW_TRY(run_method(s, dev, c, shown, true, plain, obs, p));
    for (size_t i = 0; c->compare && i < lw_bench_n_methods; i++) {
        const lw_bench_method *m = &lw_bench_methods[i];
        if (m == shown || (c->train && !m->trains) || (!c->train && m->train_only))
            continue;
        int rc = run_method(s, dev, c, m, false, plain, obs, p);
        bool lacks = rc == LW_EDEVICE && lw_backend_working();
        if (rc == LW_ENOMEM || rc == LW_EUNSUPPORTED || lacks)
            lw_observe_say(obs, "%s: %s", m->name, lw_errmsg());
        else
            LW_TRY(rc);
    }
    return 0;
}

static int describe(const subject *s, const lw_profile_config *c, const lw_bench_method *m,
                    lw_device *dev, lw_isa isa, const lw_machine_peak *peak, lw_profile *p)
{
    int threads = lw_pool_size(dev->pool);
    p->threads = threads;
    p->at_once = LW_MIN(threads, lw_core_count());
    p->n_model = c->n_model;
    for (int32_t i = 0; i < c->n_model; i++)
        p->model[i] = c->model[i];
    p->machine = lw_machine_json(threads, isa);
    p->gflops = dev->mark ? (double)NAN : lw_machine_rate(peak, m->num); /* of the host alone */
    p->gbytes = dev->mark ? (double)NAN : peak->read[LW_DRAM].all;
    p->title = lw_arena_printf(p->arena, "%s%s, batch %d, %d x %d pixels, %s%s%s", c->source,
                               c->train ? ", training step" : "", (int)c->batch, (int)s->side,
                               (int)s->side, m->name, dev->mark ? ", on " : "",
                               dev->mark ? dev->name : "");
    p->method = lw_arena_alloc(p->arena, lw_bench_n_methods * sizeof *p->method);
    return p->machine && p->title && p->method ? 0
                                               : lw_fail(LW_ENOMEM, "no memory for the profile");
}

static int profile(subject *s, lw_device *dev, const lw_profile_config *c, const lw_observer *obs,
                   lw_profile *p)
{
    const lw_bench_method *m = find_method(c->method ? c->method : "f32");
    lw_workload plain = {0};
    lw_machine_peak peak = {0};
    lw_isa isa;
    if (!m)
        return lw_fail(LW_EUSAGE, "there is no precision '%s'", c->method);
    if (c->train ? !m->trains : m->train_only)
        return lw_fail(LW_EUSAGE, "--precision %s is %s", m->name,
                       c->train ? "not for training: leave out --train"
                                : "for training: add --train");
    if (c->n_model > 0 && dev->mark) {
        lw_backend_refuse();
        return lw_fail(LW_EDEVICE, "--threads-model is of the CPU's threads; use --device cpu");
    }
    LW_TRY(open_subject(c, s));
    LW_TRY(lw_arena_new(&p->arena));
    LW_TRY(lw_isa_chosen(&isa));
    if (!dev->mark)
        LW_TRY(lw_machine_measure(lw_pool_size(dev->pool), isa, obs, &peak));
    LW_TRY(describe(s, c, m, dev, isa, &peak, p));
    if (c->compare) {
        lw_workload_spec spec = s->spec;
        LW_TRY(lw_workload_open(dev, &spec, &plain)); /* opts zero: f32, nothing fused */
    }
    int rc = c->compare ? lw_workload_run(&plain) : 0;
    if (rc == 0)
        rc = run_methods(s, dev, c, m, &plain, obs, p);
    lw_workload_close(&plain);
    return rc == 0 && c->n_model > 0 ? lw_profile_measure_threads(p, m->num, isa, &peak, obs) : rc;
}

int lw_job_profile(const lw_profile_config *c, const lw_observer *obs, lw_profile *out)
{
    LW_CLEANUP(lw_backend_close) lw_device *dev = NULL;
    lw_profile p = {0};
    subject s = {0};
    LW_TRY(lw_session_device_with(c->threads, c->conv, &dev));
    lw_pool_watch(dev->pool, obs);
    int rc = profile(&s, dev, c, obs, &p);
    lw_network_close(&s.net);
    if (rc < 0)
        lw_profile_clear(&p);
    else
        *out = p;
    return rc;
}

void lw_profile_clear(lw_profile *p)
{
    lw_json_drop(&p->machine);
    lw_arena_free(&p->arena);
    *p = (lw_profile){0};
}
