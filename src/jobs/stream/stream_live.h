/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline's side of the page (serve/serve.h); without --serve every call does nothing. */
#ifndef LW_STREAM_LIVE_H
#define LW_STREAM_LIVE_H

#include "jobs/stream/stream_intake.h"
#include "jobs/stream/stream_job.h"
#include "jobs/stream/stream_settings.h"
#include "serve/serve.h"

typedef struct lw_stream_live {
    lw_serve *serve;
    const lw_kernels *kernels;
    const lw_pixels *pixels; /* of frames before the network */
    lw_serve_asked asked;
    lw_stream_settings settings;
    int32_t w, h; /* of those behind it, as the page shows them */
    bool beside;  /* they come with the input on their left, which the page shows by itself */
    char title[128];
} lw_stream_live;

/* What a frame says of itself when it is shown. */
typedef struct lw_stream_stamps {
    int64_t number;
    double captured, taken, computed;
    bool watched;        /* somebody looks, as lw_stream_live_obey heard */
    const uint8_t *mark; /* LW_FRAME_MARK bytes: what its page wrote on it */
} lw_stream_stamps;

int lw_stream_live_open(lw_stream_live *l, const lw_stream_config *c);
/* From here on the page answers; w, h: of the frames that go out. */
int lw_stream_live_start(lw_stream_live *l, const lw_stream_intake *in, bool beside, int32_t w,
                         int32_t h, const lw_observer *obs);
void lw_stream_live_close(lw_stream_live *l);
/* Does what the page asks for, but for a pause: l->asked. */
void lw_stream_live_obey(lw_stream_live *l, lw_stream_network *n, const lw_observer *obs);
/* Of one thread, perhaps another one. */
void lw_stream_live_show(lw_stream_live *l, const uint8_t *in, const uint8_t *out,
                         const lw_stream_stamps *f);
/* A line for who looks; of lw_stream_live_obey's thread. */
void lw_stream_live_note(lw_stream_live *l, const char *line);
/* As lw_frame_options.camera. */
int lw_stream_live_camera(lw_stream_live *l, double seconds, lw_frame_picture *out);
void lw_stream_live_second(lw_stream_live *l, const lw_stream_report *r);

#endif
