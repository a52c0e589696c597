/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be turned while frames go through, typed by what a change costs:
 *
 *   live      strength, seed, similarity   numbers of the next frame
 *   reset     steps                        another plan: former answers are forgotten
 *   rebuild   width, height, model         another plan; frames that go out keep their size
 *
 * Another plan is built by a thread while the one there is goes on (stream_builder.h), and is there
 * between two frames; one that cannot be built changes nothing, and the note says why. A knob that was
 * not turned leaves what the command line said. The page asks from another thread (lw_serve_control
 * hands over); these are the network's thread's.
 */
#ifndef LW_STREAM_SETTINGS_H
#define LW_STREAM_SETTINGS_H

#include "jobs/stream/stream_builder.h"
#include "serve/serve.h"

enum { LW_STREAM_KNOBS = 7 };

typedef struct lw_stream_settings {
    const lw_stream_config *c;
    lw_serve_knob knob[LW_STREAM_KNOBS];
    const char *model[1 + LW_STREAM_MODELS];
    int32_t n;
    double applied[LW_STREAM_KNOBS]; /* values that the network has, gets, or refused */
    int32_t w, h, out_w, out_h;      /* of the first network's pictures and results; 0: not asked */
    lw_stream_builder builder;
    char note[512]; /* for who looks */
    bool noted;     /* it is new */
} lw_stream_settings;

/* c outlives it. */
void lw_stream_settings_init(lw_stream_settings *s, const lw_stream_config *c);
/* value[n], as asked. */
void lw_stream_settings_apply(lw_stream_settings *s, const double *value, lw_stream_network *n,
                              const lw_observer *obs);
void lw_stream_settings_close(lw_stream_settings *s); /* accepts a zeroed struct */

#endif
