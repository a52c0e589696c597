/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step against DDIM with 50, between samplers of one network that are compiled and whose
 * weights are prepared. The two take turns, so that a machine that changes its pace changes both.
 * If nothing but the network costs time, the ratio is the number of evaluations.
 */
#include <math.h>

#include "bench/bench_reference.h"
#include "session/session_quantization.h"
#include "session/session_sampler_turns.h"

enum { WAYS = 2, DDIM_STEPS = 50, ONE_STEPS_A_TURN = 5, LEAST_TURNS = 3 };

typedef struct sampling_way {
    char name[32];
    bool wanted;
    lw_sampler_opts opts;
    lw_sampler *sampler;
    float *picture;    /* [batch][pixels], of the last run */
    int32_t at;        /* its case, once there is one */
    double cpu, outer; /* seconds of all timed runs: processor time, outside the network */
} sampling_way;

typedef struct sampling {
    lw_bench_run *r;
    lw_unet_config net;
    lw_network network; /* net on store */
    lw_store *store;
    int32_t batch;
    size_t pixels; /* floats of a batch */
    sampling_way way[WAYS];
} sampling;

static sampling_way way_of(const sampling *s, bool ddim)
{
    sampling_way w = {.opts = {.method = ddim ? LW_METHOD_DDPM : LW_METHOD_DRIFT,
                               .kind = ddim ? LW_SAMPLER_DDIM : LW_SAMPLER_ONE_STEP,
                               .steps = ddim ? DDIM_STEPS : 1,
                               .batch = s->batch,
                               .precision = s->r->config->precision,
                               .seed = 1,
                               .weights = LW_SLAB_PARAM}};
    snprintf(w.name, sizeof w.name, "%s%s%s_b%d", s->r->config->large ? "large_" : "",
             ddim ? "ddim50" : "one_step", w.opts.precision == LW_NUM_BF16 ? "_bf16" : "",
             (int)s->batch);
    return w;
}

/* Weights. The last layer's are made small: 50 evaluations of a random network of full strength are
 * chaos, in which the last bit of the first step ends as another picture, and no error could be
 * told. */
static int prepare(sampling *s)
{
    if (s->store)
        return 0;
    LW_TRY(lw_store_new(true, &s->store));
    LW_TRY(lw_unet_declare(&s->net, s->store));
    lw_store_init(s->store, 1);
    s->network = lw_network_of(&lw_network_def_unet, &s->net, s->store);
    int32_t last = lw_store_find(s->store, "conv_out.weight");
    float *w = lw_store_edit(s->store, last, LW_SLAB_PARAM);
    for (int64_t i = 0; i < lw_type_count(lw_store_at(s->store, last)->type); i++)
        w[i] *= 0.01f;
    lw_store_touch(s->store, LW_SLAB_PARAM);
    return 0;
}

/* The same pictures in f32 by other kernels: largest difference over the largest value. */
static int error_of(sampling *s, sampling_way *w, lw_bench_case *c)
{
    lw_bench_reference f = {0};
    LW_CLEANUP(lw_sampler_free) lw_sampler *other = NULL;
    LW_CLEANUP(lw_free) float *want = lw_calloc(s->pixels, sizeof *want);
    lw_sampler_opts f32 = w->opts;
    lw_device *dev;
    if (!s->r->config->reference)
        return 0;
    f32.precision = LW_NUM_F32;
    if (!want)
        return LW_ENOMEM;
    LW_TRY(lw_bench_reference_device(s->r, c->flops, &f, &dev));
    int rc = lw_sampler_new(dev, &s->network, &f32, &other);
    if (rc == 0)
        rc = lw_sampler_run(other, 0, s->batch, NULL, NULL, want);
    lw_sampler_free(&other);
    lw_bench_reference_close(&f);
    LW_TRY(rc);
    LW_TRY(lw_sampler_run(w->sampler, 0, s->batch, NULL, NULL, w->picture));
    c->error = lw_workload_error_of(w->picture, want, (int64_t)s->pixels, NULL);
    snprintf(c->against, sizeof c->against, "%s",
             lw_isa_name(dev == s->r->ref ? LW_ISA_REF : LW_MIN(s->r->isa, LW_ISA_AVX2)));
    return 0;
}

/* Its sampler; LW_ENOMEM and *memory: more than the limit. */
static int open_sampler(sampling *s, sampling_way *w, size_t *memory)
{
    LW_TRY(lw_sampler_new(s->r->dev, &s->network, &w->opts, &w->sampler));
    *memory = lw_sampler_bytes(w->sampler) + lw_store_bytes(s->store);
    return lw_workload_fits(*memory, lw_bench_memory_limit(s->r));
}

/* Sampler, case and what is known before anything is timed; too little memory is a row of its own. */
static int open_way(sampling *s, sampling_way *w)
{
    lw_bench_case *c;
    size_t memory = 0;
    LW_TRY(prepare(s));
    int rc = open_sampler(s, w, &memory);
    if (rc == LW_ENOMEM) {
        w->wanted = false;
        lw_sampler_free(&w->sampler);
        return lw_bench_skip(s->r, w->name, lw_precision_name(w->opts.precision), s->batch, memory,
                             lw_errmsg());
    }
    LW_TRY(rc);
    w->picture = lw_calloc(s->pixels, sizeof *w->picture);
    if (!w->picture)
        return LW_ENOMEM;
    lw_plan_info net = lw_sampler_network(w->sampler);
    w->at = s->r->out->n;
    LW_TRY(lw_bench_new_case(s->r, w->name, lw_precision_name(w->opts.precision), s->batch, &c));
    c->evaluations = lw_sampler_evaluations(w->sampler);
    c->flops = net.flops * c->evaluations;
    c->bytes = net.bytes * c->evaluations;
    c->memory = memory;
    return error_of(s, w, c);
}

static int keep_run(void *self, int which, int32_t turn, const lw_sampler_time *t)
{
    sampling *s = self;
    sampling_way *w = &s->way[which];
    lw_bench_case *c = &s->r->out->cases[w->at];
    char note[96];
    (void)turn;
    w->cpu += t->cpu;
    w->outer += t->wall - t->network;
    snprintf(note, sizeof note, "%s.%s %d", c->suite, c->name, (int)c->n + 1);
    lw_observe_progress(s->r->obs, "bench", s->r->out->n - 1, s->r->total, note);
    return lw_bench_add_sample(c, 1e3 * t->wall);
}

static int take_turns(sampling *s)
{
    const lw_bench_config *c = s->r->config;
    int32_t turns = LW_MAX((c->samples + ONE_STEPS_A_TURN - 1) / ONE_STEPS_A_TURN, 1);
    const lw_turn_limits limits = {LW_MIN(turns, LEAST_TURNS), turns, c->seconds};
    lw_timed_sampler timed[WAYS];
    for (int i = 0; i < WAYS; i++)
        timed[i] = (lw_timed_sampler){.sampler = s->way[i].sampler,
                                      .pictures = s->way[i].picture,
                                      .batch = s->batch,
                                      .times = i == 0 ? ONE_STEPS_A_TURN : 1};
    return lw_sampler_take_turns(timed, WAYS, &limits, s->r->obs, keep_run, s);
}

static void conclude(sampling *s)
{
    lw_bench_case *all = s->r->out->cases;
    for (int i = 0; i < WAYS; i++) {
        if (!s->way[i].wanted)
            continue;
        lw_bench_case *c = &all[s->way[i].at];
        c->cpu_ms = 1e3 * s->way[i].cpu / c->n;
        c->outside_ms = 1e3 * s->way[i].outer / c->n;
        lw_bench_set_share(s->r, (lw_num)s->way[i].opts.precision, c);
        if (i > 0 && s->way[0].wanted) {
            const lw_bench_case *one = &all[s->way[0].at];
            c->base_ms = lw_summarize(one->ms, one->n).p50;
            c->base_cpu_ms = one->cpu_ms;
            snprintf(c->base, sizeof c->base, "%s", s->way[0].name);
        }
    }
}

static int measure(sampling *s)
{
    for (int i = 0; i < WAYS; i++)
        if (s->way[i].wanted)
            LW_TRY(open_way(s, &s->way[i]));
    if (s->way[0].wanted || s->way[1].wanted)
        LW_TRY(take_turns(s));
    conclude(s);
    return 0;
}

static int measure_batch(sampling *s, int32_t batch)
{
    int rc = 0;
    s->batch = batch;
    s->pixels = (size_t)batch * (size_t)(s->net.image_size * s->net.image_size * 3);
    for (int i = 0; i < WAYS; i++) {
        s->way[i] = way_of(s, i > 0);
        s->way[i].wanted = lw_bench_wants(s->r, s->way[i].name);
    }
    rc = s->way[0].wanted || s->way[1].wanted ? measure(s) : 0;
    for (int i = 0; i < WAYS; i++) {
        lw_sampler_free(&s->way[i].sampler);
        lw_free(&s->way[i].picture);
    }
    return rc;
}

int lw_bench_suite_sampling(lw_bench_run *r)
{
    const lw_bench_config *c = r->config;
    sampling s = {.r = r, .net = lw_workload_unet_config(c->large)};
    int rc = 0;
    if (c->precision == LW_NUM_S8) /* its ranges are a model folder's */
        return 0;
    for (int32_t i = 0; rc == 0 && i < LW_MAX(c->n_batch, 1); i++)
        rc = measure_batch(&s, c->n_batch > 0 ? c->batch[i] : 1);
    lw_store_free(&s.store);
    return rc;
}
