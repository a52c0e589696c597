/* SPDX-License-Identifier: Apache-2.0 */
/* Knobs of a stream. */
#include "jobs/stream/stream_settings.h"

#include <string.h>

/* Of identity the first one only. */
enum { SIMILARITY, STRENGTH, SEED, STEPS, WIDTH, HEIGHT };

void lw_stream_settings_init(lw_stream_settings *s, const lw_stream_config *c)
{
    const lw_translator_opts *o = &c->network;
    const lw_serve_knob knobs[LW_STREAM_KNOBS] = {
        [SIMILARITY] = {"similarity", "similarity", 0, 0.999, 0.001, c->similarity, LW_SERVE_LIVE},
        [STRENGTH] = {"strength", "strength", 0, 1, 0.01, o->strength, LW_SERVE_LIVE},
        [SEED] = {"seed", "seed", 0, 1e9, 1, (double)o->seed, LW_SERVE_LIVE},
        [STEPS] = {"steps", "steps", 1, 16, 1, LW_MAX(o->steps, 1), LW_SERVE_RESET},
        [WIDTH] = {"width", "width (0: as at first)", 0, 2048, 8, o->w, LW_SERVE_REBUILD},
        [HEIGHT] = {"height", "height (0: as at first)", 0, 2048, 8, o->h, LW_SERVE_REBUILD}};
    *s = (lw_stream_settings){.n = strcmp(o->model, "identity") == 0 ? 1 : LW_STREAM_KNOBS};
    memcpy(s->knob, knobs, sizeof knobs);
    for (int i = 0; i < s->n; i++)
        s->applied[i] = s->knob[i].value;
}

static bool turned(lw_stream_settings *s, const double *value, int i)
{
    const bool is = i < s->n && value[i] != s->applied[i];
    if (is)
        s->applied[i] = value[i];
    return is;
}

static int32_t side(double asked, int32_t own)
{
    return asked >= 1 ? (int32_t)asked : own;
}

static int change_plan(lw_stream_settings *s, lw_stream_network *n)
{
    if (s->w == 0)
        lw_translator_network_size(n->translator, &s->w, &s->h);
    return lw_translator_change(n->translator, (int32_t)s->applied[STEPS],
                                side(s->applied[WIDTH], s->w), side(s->applied[HEIGHT], s->h));
}

void lw_stream_settings_apply(lw_stream_settings *s, const double *value, lw_stream_network *n,
                              const lw_observer *obs)
{
    int rc = 0;
    if (turned(s, value, SIMILARITY))
        rc = lw_similar_set(&n->similar, s->applied[SIMILARITY]);
    if (turned(s, value, STRENGTH))
        lw_translator_set_strength(n->translator, s->applied[STRENGTH]);
    if (turned(s, value, SEED))
        lw_translator_set_seed(n->translator, (uint64_t)s->applied[SEED]);
    const bool steps = turned(s, value, STEPS), w = turned(s, value, WIDTH),
               h = turned(s, value, HEIGHT);
    if (rc == 0 && (steps || w || h))
        rc = change_plan(s, n);
    if (rc < 0)
        lw_observe_say(obs, "it stays as it was: %s", lw_errmsg());
}
