/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another engine for frames that go on being computed by the one there is. A thread opens the networks,
 * compiles, packs the weights (one black frame) and ends; another thread frees what was replaced. One
 * thing at a time; the functions are the network's thread's.
 *
 *   lw_stream_builder_begin ─► lw_stream_builder_poll .. 0 ─► lw_stream_network_swap
 *                                                        ─► lw_stream_builder_drop (the one before)
 */
#ifndef LW_STREAM_BUILDER_H
#define LW_STREAM_BUILDER_H

#include "jobs/stream/stream_network.h"

typedef struct lw_stream_builder {
    const lw_stream_config *c;
    lw_pixels in;
    lw_translator_opts o;
    lw_mailbox *work;        /* whose thread works; NULL: nothing is done */
    lw_stream_engine engine; /* the thread's */
    bool done;               /* the thread's */
} lw_stream_builder;

static inline bool lw_stream_builder_busy(const lw_stream_builder *b)
{
    return b->work != NULL;
}
/* o's texts outlive the building. */
int lw_stream_builder_begin(lw_stream_builder *b, const lw_stream_config *c,
                            const lw_translator_opts *o, const lw_pixels *in);
/* 0: *out is there, the caller's; LW_MAILBOX_NOT_YET; LW_E*: it cannot be built, and why. */
int lw_stream_builder_poll(lw_stream_builder *b, lw_stream_engine *out);
void lw_stream_builder_drop(lw_stream_builder *b, lw_stream_engine *e); /* *e is zeros then */
void lw_stream_builder_close(lw_stream_builder *b); /* waits; accepts a zeroed struct */

#endif
