/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared U-Net in latents: a picture of noise in one evaluation and one plan, down to its bytes.
 *
 *   noise [B,h,w,C] ─► U-Net ─► decoder ─► bytes [B,H,W,3]
 *            ▲           │
 *            └─ answer ──┘  `previous`: that of the frame before, concatenated and kept as a state
 *
 * Beside it stand its two halves by themselves, what seeing the frame before costs, and several frames in
 * flight: one run makes as many at once, each later by that.
 */
#include <math.h>

#include "bench/bench_case.h"
#include "bench/bench_workload.h"

typedef enum part { WHOLE, NETWORK, DECODER } part;

typedef struct variant {
    const char *tag;
    part part;
    int32_t previous, batch;
} variant;

static const variant variants[] = {{"", WHOLE, 0, 1},           {"_network", NETWORK, 0, 1},
                                   {"_decoder", DECODER, 0, 1}, {"_previous", WHOLE, 1, 1},
                                   {"_flight2", WHOLE, 0, 2},   {"_flight4", WHOLE, 0, 4}};

typedef struct latents {
    lw_bench_run *r;
    lw_autoencoder coder;
    lw_network *net[2]; /* without and with an answer to look at */
    int32_t side;       /* of a latent */
} latents;

typedef struct built {
    const latents *l;
    const variant *v;
} built;

static void close_latents(latents *l)
{
    lw_network_close(&l->net[0]);
    lw_network_close(&l->net[1]);
    lw_autoencoder_close(&l->coder);
}

/* *before: the answer to the frame before, an input; none where it is not looked at. */
static lw_val generate(const built *p, lw_graph *g, lw_type type, lw_val *before)
{
    const lw_network *net = p->l->net[p->v->previous];
    lw_taps taps;
    lw_val rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, p->v->batch));
    lw_network_in in = {.x = lw_random(g, "bench.noise", LW_RANDOM_NORMAL, 0, type, rows)};
    *before = in.condition = p->v->previous > 0 ? lw_input(g, "before", type) : LW_NOVAL;
    const char *up = lw_scope_part(g, "network");
    lw_network_append(net, g, in, &taps);
    lw_scope_set(g, up);
    return lw_tap_find(&taps, "y");
}

static lw_val decode(const built *p, lw_graph *g, lw_val z)
{
    lw_taps taps;
    const int32_t side = p->l->side * p->l->coder.shrink;
    const char *up = lw_scope_part(g, "decoder");
    lw_network_append(p->l->coder.decoder, g, (lw_network_in){.x = z}, &taps);
    lw_scope_set(g, up);
    return lw_rgb_to_frame(g, lw_tap_find(&taps, "y"),
                           (lw_attr_pixels){.form = LW_PIXELS_RGB, .w = side, .h = side});
}

static int build(lw_builder *b, const void *what)
{
    const built *p = what;
    lw_graph *g = b->g;
    const lw_type type = lw_type_of(LW_F32, 4, p->v->batch, p->l->side, p->l->side,
                                    p->l->coder.channels);
    lw_val before = LW_NOVAL,
           z = p->v->part == DECODER ? lw_input(g, "z", type) : generate(p, g, type, &before);
    if (p->v->previous > 0)
        lw_graph_output_add(g, "answer", z, before);
    if (p->v->part == NETWORK)
        lw_graph_output_add(g, "y", z, LW_NOVAL);
    else
        lw_graph_output_add(g, "rgb", decode(p, g, z), LW_NOVAL);
    return 0;
}

/* ---- cases ------------------------------------------------------------------------------------- */

typedef struct running {
    lw_workload w;
    bool fed, ran;
} running;

static int call(void *self)
{
    running *c = self;
    if (c->fed && c->ran)
        lw_exec_advance(c->w.exec);
    c->ran = true;
    return lw_workload_run(&c->w);
}

static int open_networks(latents *l)
{
    for (int32_t previous = 0; previous < 2; previous++) {
        lw_unet_config c = lw_workload_unet_config(l->r->config->large);
        c.image_size = l->side;
        c.out_channels = l->coder.channels;
        c.in_channels = l->coder.channels * (1 + previous);
        c.previous = previous;
        LW_TRY(lw_network_blank(&lw_network_def_unet, &c, &l->net[previous]));
        lw_store_init(l->net[previous]->store, 1);
    }
    return 0;
}

static int measure(const latents *l, const variant *v, const lw_bench_method *m, const char *name)
{
    const built what = {l, v};
    const lw_network *net = v->part == DECODER ? l->coder.decoder : l->net[v->previous];
    const lw_workload_spec spec = {.build = build,
                                   .what = &what,
                                   .opts = m->opts,
                                   .store = net->store,
                                   .limit = lw_bench_memory_limit(l->r)};
    running c = {.fed = v->previous > 0};
    int rc = lw_workload_open(l->r->dev, &spec, &c.w);
    if (rc == LW_ENOMEM)
        return lw_bench_skip(l->r, name, m->name, v->batch, c.w.bytes, lw_errmsg());
    LW_TRY(rc);
    const lw_bench_work work = {
        .name = name,
        .method = m->name,
        .batch = v->batch,
        .call = call,
        .self = &c,
        .flops = c.w.info.flops,
        .bytes = c.w.info.bytes,
        .num = m->num,
        .memory = c.w.bytes + (v->part == WHOLE ? lw_store_bytes(l->coder.decoder->store) : 0),
        .error = (double)NAN,
        .exec = c.w.exec};
    rc = lw_bench_measure(l->r, &work, NULL);
    lw_workload_close(&c.w);
    return rc;
}

/* All variants at one size, as asked for; the networks are made for the first that is. */
static int run_size(latents *l, int32_t pixels, const lw_bench_method *m)
{
    int rc = 0;
    l->side = pixels / l->coder.shrink;
    for (size_t i = 0; rc == 0 && i < LW_COUNT(variants); i++) {
        char name[64];
        snprintf(name, sizeof name, "latents%d_pixels%d%s%s", (int)l->side, (int)pixels, m->tag,
                 variants[i].tag);
        if (!lw_bench_wants(l->r, name))
            continue;
        if (!l->net[0])
            rc = open_networks(l);
        if (rc == 0)
            rc = measure(l, &variants[i], m, name);
    }
    lw_network_close(&l->net[0]);
    lw_network_close(&l->net[1]);
    return rc;
}

int lw_bench_latents(lw_bench_run *r)
{
    static const int32_t usual[] = {256, 512};
    const lw_bench_config *c = r->config;
    const int32_t *size = c->n_size > 0 ? c->size : usual;
    const int32_t n = c->n_size > 0 ? c->n_size : (int32_t)LW_COUNT(usual);
    LW_CLEANUP(close_latents) latents l = {.r = r};
    LW_TRY(lw_autoencoder_open(c->latents, &l.coder));
    for (size_t k = 0; k < lw_bench_n_methods; k++)
        for (int32_t i = 0; i < n && lw_bench_asked_for(r, &lw_bench_methods[k]); i++) {
            if (size[i] % (8 * l.coder.shrink))
                return lw_fail(LW_EUSAGE,
                               "--image-size %d: with latents of 1/%d and three halvings it is a "
                               "multiple of %d",
                               (int)size[i], (int)l.coder.shrink, 8 * (int)l.coder.shrink);
            LW_TRY(run_size(&l, size[i], &lw_bench_methods[k]));
        }
    return 0;
}
