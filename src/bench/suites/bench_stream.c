/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks of live video, frame by frame: bytes of a frame in, bytes of a frame out, the frame before
 * fed back inside the plan. A sample is a whole frame: one evaluation of the network, or five at
 * falling times as mirage-hello counts them.
 */
#include <math.h>

#include "bench/bench_case.h"
#include "bench/bench_workload.h"
#include "bench/suites/bench_stream_live.h"

enum { TIMES = 5 };

/* Of one frame; of one evaluation the first. */
static const float times[TIMES] = {40, 30, 20, 10, 0};

typedef struct stream_net {
    const lw_network *net;
    int32_t batch;
} stream_net;

typedef struct frames {
    lw_workload w;
    stream_net what;
    int32_t evaluations;
    uint8_t *in, *out; /* [batch][side][side][3] */
    int64_t n;         /* numbers of a batch */
    bool fed;          /* y goes back in */
    int64_t calls;
    double outside; /* seconds of all calls that were no run of the plan */
} frames;

/* Inputs x, t and, of networks with a condition, what it is: the frame, where it takes two, and
 * `before`, which y becomes. */
static int build(lw_builder *b, const void *what)
{
    const stream_net *s = what;
    lw_graph *g = b->g;
    int32_t side = s->net->image_size;
    lw_type picture = lw_type_of(LW_F32, 4, s->batch, side, side, 3);
    lw_taps taps;
    lw_network_in in = {.x = lw_input(g, "x", picture),
                        .t = lw_input(g, "t", lw_type_of(LW_F32, 1, s->batch))};
    lw_val before = s->net->condition ? lw_input(g, "before", picture) : LW_NOVAL;
    in.condition = before;
    if (s->net->condition > 3)
        in.condition = lw_concat(g, lw_input(g, "frame", picture), before, 3);
    lw_network_append(s->net, g, in, &taps);
    lw_graph_output_add(g, "y", lw_tap_find(&taps, "y"), before);
    return 0;
}

/* Where the frame goes: networks that begin from noise have it beside that. */
static const char *input_of(const frames *f)
{
    return f->what.net->condition > 3 ? "frame" : "x";
}

static int call(void *self)
{
    frames *f = self;
    lw_exec *e = f->w.exec;
    double began = lw_now(), inside = 0;
    float *x = lw_exec_write(e, input_of(f));
    for (int64_t i = 0; i < f->n; i++)
        x[i] = (float)f->in[i] * (1.0f / 127.5f) - 1.0f;
    for (int k = 0; k < f->evaluations; k++) {
        float *t = lw_exec_write(e, "t");
        for (int32_t i = 0; i < f->what.batch; i++)
            t[i] = times[k];
        if (f->fed && (k > 0 || f->calls > 0))
            lw_exec_advance(e);
        double run = lw_now();
        LW_TRY(lw_workload_run(&f->w));
        inside += lw_now() - run;
    }
    const float *y = lw_exec_read(e, "y");
    for (int64_t i = 0; i < f->n; i++)
        f->out[i] = (uint8_t)lrintf(fminf(fmaxf(y[i] * 127.5f + 127.5f, 0.0f), 255.0f));
    f->calls++;
    f->outside += lw_now() - began - inside;
    return 0;
}

static void close_frames(frames *f)
{
    lw_workload_close(&f->w);
    lw_free(&f->in);
    lw_free(&f->out);
}

/* Values for the parameters, once there is known to be room: the largest are 3.5 GB of them. */
static int fill(lw_bench_run *r, lw_network *net, bool *filled, size_t *need)
{
    *need = lw_store_bytes(net->store);
    LW_TRY(lw_workload_fits(*need, lw_bench_memory_limit(r)));
    if (!*filled)
        lw_store_init(net->store, 1);
    *filled = true;
    return 0;
}

static int open_frames(lw_bench_run *r, lw_network *net, int32_t batch, const lw_bench_method *m,
                       frames *f)
{
    const lw_workload_spec spec = {.build = build,
                                   .what = &f->what,
                                   .opts = m->opts,
                                   .store = net->store,
                                   .limit = lw_bench_memory_limit(r)};
    *f = (frames){.what = {net, batch}, .fed = net->condition > 0};
    f->n = (int64_t)batch * net->image_size * net->image_size * 3;
    f->in = lw_calloc((size_t)f->n, 1);
    f->out = lw_calloc((size_t)f->n, 1);
    if (!f->in || !f->out)
        return LW_ENOMEM;
    for (int64_t i = 0; i < f->n; i++)
        f->in[i] = (uint8_t)(i * 7 % 251);
    return lw_workload_open(r->dev, &spec, &f->w);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void name_of(const char *spec, const lw_bench_method *m, int32_t batch, int32_t evaluations,
                    char name[64])
{
    char rows[16] = "";
    if (batch > 1)
        snprintf(rows, sizeof rows, "_b%d", (int)batch);
    snprintf(name, 64, "%s%s%s_%dx", spec, m->tag, rows, (int)evaluations);
}

/* How far y is from that of attention over all places, of the same inputs; NAN without windows. */
static int window_error(lw_bench_run *r, frames *f, const lw_bench_method *m, double *error)
{
    LW_CLEANUP(close_frames) frames full = {0};
    lw_network whole = *f->what.net;
    const int32_t evaluations = f->evaluations;
    *error = (double)NAN;
    if (whole.window <= 0 || !r->config->reference)
        return 0;
    whole.window = 0;
    LW_TRY(open_frames(r, &whole, f->what.batch, m, &full));
    f->evaluations = full.evaluations = 1;
    LW_TRY(call(&full));
    LW_TRY(call(f));
    f->evaluations = evaluations;
    *error = lw_workload_error(&f->w, &full.w, NULL);
    return 0;
}

static int measure(lw_bench_run *r, frames *f, const lw_bench_method *m, const char *name)
{
    lw_bench_case *c;
    double error;
    f->calls = 0;
    LW_TRY(window_error(r, f, m, &error));
    const lw_bench_work work = {.name = name,
                                .method = m->name,
                                .batch = f->what.batch,
                                .call = call,
                                .self = f,
                                .flops = f->w.info.flops * f->evaluations,
                                .bytes = f->w.info.bytes * f->evaluations,
                                .num = m->num,
                                .memory = f->w.bytes,
                                .error = error,
                                .against = isnan(error) ? NULL : "full attention",
                                .exec = f->w.exec};
    f->calls = 0;
    f->outside = 0;
    LW_TRY(lw_bench_measure(r, &work, &c));
    c->evaluations = f->evaluations;
    c->parameters = f->what.net->parameters;
    c->side = f->what.net->image_size;
    /* with a clock of its own a device is still at work when a run returns */
    c->outside_ms = r->dev->mark ? (double)NAN : 1e3 * f->outside / (double)f->calls;
    return 0;
}

/* A network by one method, with one evaluation and with five. */
static int run_method(lw_bench_run *r, lw_network *net, const char *spec, int32_t batch,
                      const lw_bench_method *m, const bool wanted[2], bool *filled)
{
    static const int32_t evaluations[] = {1, TIMES};
    LW_CLEANUP(close_frames) frames f = {0};
    int rc = fill(r, net, filled, &f.w.bytes);
    if (rc == 0)
        rc = open_frames(r, net, batch, m, &f);
    for (int i = 0; i < 2; i++) {
        char name[64];
        name_of(spec, m, batch, evaluations[i], name);
        if (!wanted[i])
            continue;
        if (rc == LW_ENOMEM)
            LW_TRY(lw_bench_skip(r, name, m->name, batch, f.w.bytes, lw_errmsg()));
        else if (rc == 0) {
            f.evaluations = evaluations[i];
            LW_TRY(measure(r, &f, m, name));
        }
    }
    if (rc == LW_ENOMEM)
        lw_errclear();
    return rc == LW_ENOMEM ? 0 : rc;
}

static int run_network(lw_bench_run *r, const char *spec, int32_t batch)
{
    LW_CLEANUP(lw_network_close) lw_network *net = NULL;
    bool filled = false;
    for (size_t i = 0; i < lw_bench_n_methods; i++) {
        const lw_bench_method *m = &lw_bench_methods[i];
        char name[64];
        bool wanted[2] = {false, false};
        if (!lw_bench_asked_for(r, m))
            continue;
        name_of(spec, m, batch, 1, name);
        wanted[0] = lw_bench_wants(r, name);
        name_of(spec, m, batch, TIMES, name);
        wanted[1] = lw_bench_wants(r, name);
        if (!wanted[0] && !wanted[1])
            continue;
        if (!net)
            LW_TRY(lw_rehearsal_open(spec, 0, &net));
        net->window = r->config->window;
        LW_TRY(run_method(r, net, spec, batch, m, wanted, &filled));
    }
    return 0;
}

/* What mirage-hello calls them. */
static const struct {
    const char *name, *spec;
    int32_t batch;
} sizes[] = {{"lightweight", "gpu-stress:96", 1},
             {"medium", "gpu-stress:128", 2},
             {"heavy", "gpu-stress:192", 2}};

static int run_named(lw_bench_run *r, const char *model)
{
    for (size_t i = 0; i < LW_COUNT(sizes); i++)
        if (lw_str_eq(model, sizes[i].name))
            return run_network(r, sizes[i].spec, sizes[i].batch);
    if (lw_rehearsal_is(model))
        return run_network(r, model, 1);
    if (lw_str_eq(model, "identity") || lw_autoencoder_named(model) || lw_path_exists(model))
        return lw_bench_stream_live(r);
    return lw_fail(LW_EUSAGE,
                   "--model %s: of the suite stream it is lightweight, medium, heavy, one of "
                   "gpu-stress:B, gpu-intensive-lsd:B and simple-optimized-unet:B, or what `leeway "
                   "stream --model` takes",
                   model);
}

/* Widths that only one of the two takes are measured of that one. */
static int run_scale(lw_bench_run *r, int32_t width)
{
    static const char *const names[] = {"gpu-stress", "gpu-intensive-lsd"};
    int found = 0;
    for (size_t i = 0; i < LW_COUNT(names); i++) {
        char spec[40];
        snprintf(spec, sizeof spec, "%s:%d", names[i], (int)width);
        if (lw_rehearsal_check(spec, 0) < 0)
            continue;
        found++;
        LW_TRY(run_network(r, spec, 1));
    }
    return found ? 0 : LW_EUSAGE; /* the last one's message stands */
}

int lw_bench_suite_stream(lw_bench_run *r)
{
    const lw_bench_config *c = r->config;
    bool alone = c->suite && lw_str_eq(c->suite, r->suite); /* --model is startup's, too */
    if (alone && c->model)
        return run_named(r, c->model);
    for (int32_t i = 0; i < c->n_scale; i++)
        LW_TRY(run_scale(r, c->scale[i]));
    if (c->n_scale > 0)
        return 0;
    LW_TRY(run_network(r, "simple-optimized-unet:96", 1));
    return run_network(r, sizes[0].spec, sizes[0].batch);
}
