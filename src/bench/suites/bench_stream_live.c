/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `leeway stream --model` computes of a frame, timed without its threads: bytes of the picture in,
 * bytes out, through an autoencoder or a U-Net in pixels or latents, or `identity`, which is what
 * everything around a network costs. Of networks that take several, with one evaluation and with five.
 */
#include <math.h>
#include <string.h>

#include "bench/suites/bench_stream_live.h"
#include "session/session.h"

typedef struct live {
    lw_translator *translator;
    uint8_t *in, *out;
} live;

static int call(void *self)
{
    live *l = self;
    return lw_translator_run(l->translator, l->in, l->out);
}

static void close_live(live *l)
{
    lw_translator_free(&l->translator);
    lw_free(&l->in);
    lw_free(&l->out);
}

static int open_live(lw_bench_run *r, int32_t side, int32_t evaluations, live *l)
{
    const lw_bench_config *c = r->config;
    const lw_translator_opts o = {.model = c->model,
                                  .latents = c->latents,
                                  .w = side,
                                  .h = side,
                                  .steps = evaluations,
                                  .precision = c->precision,
                                  .window = c->window};
    const lw_pixels in = {.form = LW_PIXELS_RGB, .w = side, .h = side};
    const size_t bytes = lw_pixels_bytes(&in);
    l->in = lw_calloc(bytes, 1);
    l->out = lw_calloc(bytes, 1);
    if (!l->in || !l->out)
        return LW_ENOMEM;
    for (size_t i = 0; i < bytes; i++)
        l->in[i] = (uint8_t)(i * 7 % 251);
    return lw_translator_new(r->dev, &o, &in, &l->translator);
}

static int measure(lw_bench_run *r, int32_t side, int32_t evaluations, const char *name,
                   const char *method)
{
    LW_CLEANUP(close_live) live l = {0};
    lw_bench_case *c;
    int rc = open_live(r, side, evaluations, &l);
    if (rc == LW_ENOMEM) {
        rc = lw_bench_skip(r, name, method, 1, 0, lw_errmsg());
        lw_errclear();
        return rc;
    }
    LW_TRY(rc);
    const lw_plan_info info = lw_translator_info(l.translator);
    const lw_bench_work work = {.name = name,
                                .method = method,
                                .batch = 1,
                                .call = call,
                                .self = &l,
                                .flops = info.flops,
                                .bytes = info.bytes,
                                .num = (lw_num)r->config->precision,
                                .memory = info.frame_bytes + info.derived_bytes,
                                .error = (double)NAN};
    LW_TRY(lw_bench_measure(r, &work, &c));
    c->evaluations = evaluations;
    c->parameters = lw_translator_parameters(l.translator);
    c->side = side;
    return 0;
}

/* Does the model make a picture in as many evaluations as it is asked for? */
static int takes_steps(const char *model, bool *out)
{
    LW_CLEANUP(lw_network_close) lw_network *net = NULL;
    LW_CLEANUP(lw_free) lw_diffusion *schedule = NULL;
    lw_method method;
    *out = false;
    if (lw_str_eq(model, "identity") || lw_autoencoder_named(model))
        return 0;
    LW_TRY(lw_network_open(model, true, &net));
    if (!net->generator)
        return 0;
    LW_TRY(lw_network_method(net, &method, &schedule));
    *out = method == LW_METHOD_DDPM;
    return 0;
}

int lw_bench_stream_live(lw_bench_run *r)
{
    static const char *const tags[] = {
        [LW_NUM_F32] = "", [LW_NUM_BF16] = "_bf16", [LW_NUM_S8] = "_int8"};
    static const int32_t usual[] = {64, 128, 256}, evaluations[] = {1, 5};
    const lw_bench_config *c = r->config;
    const int32_t *size = c->n_size > 0 ? c->size : usual;
    const int32_t n = c->n_size > 0 ? c->n_size : (int32_t)LW_COUNT(usual);
    const char *tag = tags[c->precision];
    bool steps;
    LW_TRY(takes_steps(c->model, &steps));
    for (int32_t i = 0; i < n * (steps ? 2 : 1); i++) {
        const int32_t side = size[i % n], k = evaluations[i / n];
        char name[64];
        snprintf(name, sizeof name, "live_pixels%d%s%s", (int)side, tag, k > 1 ? "_5x" : "");
        if (lw_bench_wants(r, name))
            LW_TRY(measure(r, side, k, name, *tag ? tag + 1 : "f32"));
    }
    return 0;
}
