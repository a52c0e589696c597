/* SPDX-License-Identifier: Apache-2.0 */
/* Knobs of a stream. */
#include "jobs/stream/stream_settings.h"

#include <stdio.h>
#include <string.h>

#include "jobs/stream/stream_verbose.h"

/* Of identity the first one only, and the last one where there are other models. */
enum { SIMILARITY, STRENGTH, SEED, STEPS, WIDTH, HEIGHT, MODEL };

void lw_stream_settings_init(lw_stream_settings *s, const lw_stream_config *c)
{
    const lw_translator_opts *o = &c->network;
    const lw_serve_knob knobs[LW_STREAM_KNOBS] = {
        [SIMILARITY] = {"similarity", "similarity", 0, 0.999, 0.001, c->similarity, LW_SERVE_LIVE,
                        NULL},
        [STRENGTH] = {"strength", "strength (0: the network's own)", 0, 1, 0.01, o->strength,
                      LW_SERVE_LIVE, NULL},
        [SEED] = {"seed", "seed", 0, 1e9, 1, (double)o->seed, LW_SERVE_LIVE, NULL},
        [STEPS] = {"steps", "steps", 1, LW_STREAM_BATCH, 1,
                   LW_MAX(LW_MAX(o->steps, o->stream_batch), 1), LW_SERVE_RESET, NULL},
        [WIDTH] = {"width", "width (0: as at first)", 0, 2048, 8, o->w, LW_SERVE_REBUILD, NULL},
        [HEIGHT] = {"height", "height (0: as at first)", 0, 2048, 8, o->h, LW_SERVE_REBUILD, NULL},
        [MODEL] = {"model", "model", 0, c->n_models, 1, 0, LW_SERVE_REBUILD, s->model}};
    *s = (lw_stream_settings){.c = c, .model = {o->model}};
    s->n = c->n_models > 0 ? LW_STREAM_KNOBS : strcmp(o->model, "identity") == 0 ? 1 : MODEL;
    if (c->pipeline) /* another engine would have to wait for the latents of this one */
        s->n = LW_MIN(s->n, STEPS);
    for (int32_t i = 0; i < c->n_models; i++)
        s->model[1 + i] = c->models[i];
    memcpy(s->knob, knobs, sizeof knobs);
    for (int i = 0; i < s->n; i++)
        s->applied[i] = s->knob[i].value;
}

void lw_stream_settings_close(lw_stream_settings *s)
{
    lw_stream_builder_close(&s->builder);
}

static void note(lw_stream_settings *s, const lw_observer *obs, const char *what, const char *more)
{
    snprintf(s->note, sizeof s->note, "%s%s", what, more);
    s->noted = true;
    if (s->note[0])
        lw_observe_say(obs, "%s", s->note);
}

static bool turned(lw_stream_settings *s, const double *value, int i)
{
    const bool is = i < s->n && value[i] != s->applied[i];
    if (is)
        s->applied[i] = value[i];
    return is;
}

/* Numbers of the engine that computes. A seed of the command line is longer than a knob's number. */
static void set_live(const lw_stream_settings *s, lw_stream_network *n, bool strength, bool seed)
{
    const bool own = s->applied[SEED] == s->knob[SEED].value;
    if (strength)
        lw_translator_set_strength(n->now.translator, s->applied[STRENGTH]);
    if (seed)
        lw_translator_set_seed(n->now.translator,
                               own ? s->c->network.seed : (uint64_t)s->applied[SEED]);
}

/* ---- another engine ---------------------------------------------------------------------------- */

static int32_t side(double asked, int32_t own)
{
    return asked >= 1 ? (int32_t)asked : own;
}

/* As the knobs are. */
static lw_translator_opts engine_opts(const lw_stream_settings *s)
{
    lw_translator_opts o = s->c->network;
    const int32_t model = s->n > MODEL ? (int32_t)s->applied[MODEL] : 0;
    const bool sized = s->applied[WIDTH] >= 1 || s->applied[HEIGHT] >= 1;
    o.model = s->model[model];
    o.steps = (int32_t)s->applied[STEPS];
    o.w = side(s->applied[WIDTH], model == 0 || sized ? s->w : 0);
    o.h = side(s->applied[HEIGHT], model == 0 || sized ? s->h : 0);
    if (o.stream_batch > 1)
        o.stream_batch = o.steps;
    o.out_w = s->out_w;
    o.out_h = s->out_h;
    if (lw_str_eq(o.model, "identity") || lw_autoencoder_named(o.model))
        o.latents = NULL;
    return o;
}

static void begin(lw_stream_settings *s, lw_stream_network *n, const lw_observer *obs)
{
    if (s->w == 0)
        lw_translator_network_size(n->now.translator, &s->w, &s->h);
    s->out_w = s->c->network.beside ? n->w / 2 : n->w;
    s->out_h = n->h;
    const lw_translator_opts o = engine_opts(s);
    note(s, obs, "is being built, the one before it goes on: ", o.model);
    if (lw_stream_builder_begin(&s->builder, s->c, &o, &n->in) < 0)
        note(s, obs, "it stays as it was: ", lw_errmsg());
}

static void look(lw_stream_settings *s, lw_stream_network *n, const lw_observer *obs)
{
    lw_stream_engine e;
    const int rc = lw_stream_builder_poll(&s->builder, &e);
    if (rc == LW_MAILBOX_NOT_YET)
        return;
    if (rc < 0) {
        note(s, obs, "it stays as it was: ", lw_errmsg());
        return;
    }
    lw_stream_network_swap(n, &e);
    lw_stream_builder_drop(&s->builder, &e);
    set_live(s, n, s->applied[STRENGTH] != s->knob[STRENGTH].value,
             s->applied[SEED] != s->knob[SEED].value);
    note(s, obs, "", "");
    lw_stream_log_network(s->builder.o.model, n);
}

void lw_stream_settings_apply(lw_stream_settings *s, const double *value, lw_stream_network *n,
                              const lw_observer *obs)
{
    if (turned(s, value, SIMILARITY) && lw_similar_set(&n->similar, s->applied[SIMILARITY]) < 0)
        note(s, obs, "it stays as it was: ", lw_errmsg());
    const bool strength = turned(s, value, STRENGTH), seed = turned(s, value, SEED);
    set_live(s, n, strength, seed);
    look(s, n, obs);
    if (lw_stream_builder_busy(&s->builder))
        return; /* what was turned meanwhile is seen then */
    const bool steps = turned(s, value, STEPS), w = turned(s, value, WIDTH),
               h = turned(s, value, HEIGHT), model = turned(s, value, MODEL);
    if (steps || w || h || model)
        begin(s, n, obs);
}
