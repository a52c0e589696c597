/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What may be turned while frames go through, typed by what a change costs:
 *
 *   live      strength, seed, similarity   numbers of the next frame
 *   reset     steps                        another plan of the same networks, former answers are forgotten
 *   rebuild   width, height                the same; frames that go out keep their size
 *
 * A knob that was not turned leaves what the command line said. The page asks from another thread
 * (lw_serve_control hands over); these are the network's thread's.
 */
#ifndef LW_STREAM_SETTINGS_H
#define LW_STREAM_SETTINGS_H

#include "jobs/stream/stream_network.h"
#include "serve/serve.h"

enum { LW_STREAM_KNOBS = 6 };

typedef struct lw_stream_settings {
    lw_serve_knob knob[LW_STREAM_KNOBS];
    int32_t n;
    double applied[LW_STREAM_KNOBS]; /* values that the network has, or refused */
    int32_t w, h;                    /* of the network's pictures at first; 0: not asked yet */
} lw_stream_settings;

void lw_stream_settings_init(lw_stream_settings *s, const lw_stream_config *c);
/* value[n], as asked. What the network refuses is said and stays as it was. */
void lw_stream_settings_apply(lw_stream_settings *s, const double *value, lw_stream_network *n,
                              const lw_observer *obs);

#endif
