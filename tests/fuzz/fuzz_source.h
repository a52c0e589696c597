/* SPDX-License-Identifier: Apache-2.0 */
/* For targets whose bytes are frames of video. */
#ifndef LW_FUZZ_SOURCE_H
#define LW_FUZZ_SOURCE_H

#include "frames/frames.h"
#include "fuzz/fuzz.h"

/* Eight frames, and eight more from the start where there is one. */
static inline void fuzz_source(const char *spec, const char *raw)
{
    const lw_frame_options options = {.raw = raw};
    LW_CLEANUP(lw_frame_source_close) lw_frame_source *s = NULL;
    if (lw_frame_source_open(spec, &options, &s) < 0 ||
        (int64_t)s->format.w * s->format.h > 1 << 20)
        return;
    const size_t n = lw_pixels_bytes(&s->pixels);
    uint8_t *bytes = malloc(n);
    double captured;
    if (!bytes)
        abort();
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 8 && lw_frame_source_next(s, bytes, &captured) == 0; i++)
            fuzz_touch(bytes, n);
        if (lw_frame_source_rewind(s) < 0)
            break;
    }
    free(bytes);
}

#endif
