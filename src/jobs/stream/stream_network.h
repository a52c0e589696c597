/* SPDX-License-Identifier: Apache-2.0 */
/* The network between the two slots: what a frame becomes, and where. The caller's thread only. */
#ifndef LW_STREAM_NETWORK_H
#define LW_STREAM_NETWORK_H

#include "frames/frames.h"
#include "jobs/stream/stream_job.h"
#include "jobs/stream/stream_similar.h"
#include "session/session.h"

/* What computes: replaced as a whole while frames go through (stream_builder.h). */
typedef struct lw_stream_engine {
    lw_device *dev, *beside; /* beside: of the decoder, with --pipeline */
    lw_translator *translator;
} lw_stream_engine;

/* The verdict on the frames is to compare with those before --degrade: what the network is given has noise
 * or blur of its own, and loses them by design. */
static inline bool lw_stream_undamaged(const lw_stream_config *c)
{
    return c->drift_metrics && c->degrade;
}

/* A device of its own, as c says, so that any thread may have one. As lw_translator_new. */
int lw_stream_engine_open(lw_stream_engine *e, const lw_stream_config *c,
                          const lw_translator_opts *o, const lw_pixels *in);
void lw_stream_engine_close(lw_stream_engine *e); /* accepts a zeroed struct */

/* Whose a picture is: goes through the network with its frame. */
typedef struct lw_stream_tag {
    int64_t number;
    double captured, read, taken; /* lw_now() */
    uint8_t mark[LW_FRAME_MARK];  /* what its page wrote on it */
} lw_stream_tag;

enum { LW_STREAM_BATCH = 16 }; /* the most frames in flight */

typedef struct lw_stream_network {
    lw_stream_engine now;
    lw_stream_tag flight[LW_STREAM_BATCH]; /* a ring: of frames that are not out */
    int64_t in_flight, runs;
    lw_pixels in;
    lw_similar similar;
    int64_t reset_every, frames; /* frames computed or skipped */
    int32_t w, h;                /* of its RGB pictures */
    size_t result; /* bytes of what a run gives: a picture, or with --pipeline a latent */
} lw_stream_network;

/* in: the source's frames. As lw_translator_new. */
int lw_stream_network_open(lw_stream_network *n, const lw_stream_config *c, const lw_pixels *in);
/* One frame, or where it is skipped the last one's picture. *tag: that of the frame, and then of the
 * picture, which is an earlier frame's with --stream-batch. LW_STREAM_NOT_YET: of none. */
enum { LW_STREAM_NOT_YET = 1 };
int lw_stream_network_run(lw_stream_network *n, const uint8_t *frame, lw_stream_tag *tag,
                          uint8_t *out);
/* With --pipeline, of another thread: the picture of what a run gave. */
int lw_stream_network_decode(lw_stream_network *n, const uint8_t *latent, uint8_t *rgb);
/* The next frame is as the first one was. */
void lw_stream_network_reset(lw_stream_network *n);
/* Another engine, of results of the same size, from the next frame on: *e gets the one before it. */
void lw_stream_network_swap(lw_stream_network *n, lw_stream_engine *e);
void lw_stream_network_close(lw_stream_network *n); /* accepts a zeroed struct */

#endif
