/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pipeline's parts, private to it. Which thread owns what is written at the fields.
 *
 *   source ─► in ─► network (the caller) ─────────────────► out ─► sinks
 *                   with --pipeline:     ─► mid ─► decoder ─┘
 */
#ifndef LW_STREAM_PIPE_H
#define LW_STREAM_PIPE_H

#include "frames/frames.h"
#include "jobs/stream/stream_drift.h"
#include "jobs/stream/stream_intake.h"
#include "jobs/stream/stream_live.h"
#include "jobs/stream/stream_network.h"
#include "jobs/stream/stream_times.h"

#define LW_STREAM_WAIT 0.05 /* seconds between two questions whether to stop */

/* A frame on its way: before the network as its source has it, behind it as RGB. */
typedef struct stream_frame {
    uint8_t *bytes;
    /* For the verdict. Behind the network: what it was given, at its picture's size; before it, with
     * --degrade: `bytes` before they were made worse. */
    uint8_t *given;
    bool has_given;
    uint8_t *shown; /* between the network and the decoder: what came in, for the page */
    bool watched;   /* by whom looks at the page */
    lw_stream_tag tag;
    double begun, computed; /* lw_now(): the network with it, not with the frame of its picture */
} stream_frame;

typedef struct stream_pipe {
    const lw_stream_config *c;
    const lw_observer *obs;
    lw_kernels kernels;
    lw_stream_network network;
    lw_frame_options options;
    lw_stream_intake intake;
    lw_frame_sink *sink[LW_STREAM_OUTPUTS];
    lw_stream_live live;
    lw_mailbox *in, *out, *troubles; /* troubles: of the source, for the caller's thread */
    char trouble[LW_MAILBOX_BUFFERS][256];
    stream_frame before[LW_MAILBOX_BUFFERS], between[LW_MAILBOX_BUFFERS],
        behind[LW_MAILBOX_BUFFERS];
    bool running, paced, told_window;
    double start;
    lw_mailbox *mid; /* with --pipeline: latents on their way to the decoder */
    /* the decoder's thread, until it has ended */
    struct {
        double began[LW_MAILBOX_BUFFERS], ended[LW_MAILBOX_BUFFERS]; /* of the last pictures: one in
                                         the slot and one taken may be before that of the network */
        double spent, beside;
        int64_t n, frames; /* frames: those that the network had meanwhile */
    } decoding;
    /* the source's thread */
    int64_t number;
    /* the sinks' thread, until it has ended */
    uint8_t *held; /* the last frame written */
    lw_stream_drift *drift;
    int64_t last, repeated, written; /* written: every sink has them */
    lw_times all[LW_STREAM_PARTS], second[LW_STREAM_PARTS];
    double said;
    lw_stream_report then; /* counts when a second was told last */
} stream_pipe;

static inline size_t lw_stream_rgb_bytes(const stream_pipe *p)
{
    return (size_t)p->network.w * (size_t)p->network.h * 3;
}

/* stream_compute.c, of the caller's thread. A frame through the network and into the next slot. */
int lw_stream_hand_on(stream_pipe *p, const stream_frame *from);
/* The last frame once more for each that is still in flight; from may be NULL. */
int lw_stream_land(stream_pipe *p, const stream_frame *from);
/* The decoder's thread: a lw_mailbox_fn of p->mid. */
int lw_stream_decode(void *arg, int buffer);

#endif
