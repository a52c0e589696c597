/* SPDX-License-Identifier: Apache-2.0 */
/* What a stream is made of, for the log (--verbose): formats, colours, sizes, steps of the plan. */
#ifndef LW_STREAM_VERBOSE_H
#define LW_STREAM_VERBOSE_H

#include "frames/frames.h"
#include "jobs/stream/stream_network.h"

void lw_stream_log_frames(const lw_frame_source *in, lw_frame_sink *const *out, int32_t n);
void lw_stream_log_network(const char *model, const lw_stream_network *n);
/* With --window: how far the first picture, rgb, is from that of attention over all places, for which the
 * network is opened once more. */
int lw_stream_log_window(const lw_stream_config *c, const lw_stream_network *n,
                         const uint8_t *frame, const uint8_t *rgb);

#endif
