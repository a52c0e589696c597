/* SPDX-License-Identifier: Apache-2.0 */
/* Frames as the network is given them: the source's own bytes, or with --degrade RGB that was made worse
 * (data_degrade.h), of frame n with the noise of row n. The source's thread only. */
#ifndef LW_STREAM_INTAKE_H
#define LW_STREAM_INTAKE_H

#include "data/data.h"
#include "frames/frames.h"
#include "jobs/stream/stream_job.h"

typedef struct lw_stream_intake {
    lw_frame_source *source;
    lw_pixels pixels; /* of the frames given */
    const lw_kernels *kernels;
    lw_degradation worse; /* n 0: as they are */
    uint64_t seed;
    uint8_t *own; /* a frame of the source, where they are made worse */
} lw_stream_intake;

/* o and kernels outlive it. */
int lw_stream_intake_open(lw_stream_intake *i, const lw_stream_config *c, const lw_frame_options *o,
                          const lw_kernels *kernels);
void lw_stream_intake_close(lw_stream_intake *i); /* accepts a zeroed struct */
/* As lw_frame_source_next; number: of the frame, since the first one. undamaged: of frames that are made
 * worse what they were before, of the same layout; NULL: not wanted. */
int lw_stream_intake_next(lw_stream_intake *i, int64_t number, uint8_t *bytes, uint8_t *undamaged,
                          double *captured);

#endif
