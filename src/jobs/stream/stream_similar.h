/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that hardly differ from the last computed one are not computed, most of the time: its picture
 * stands for theirs (the stochastic similarity filter of Kodaira et al. 2023).
 *
 *   skipped with probability max(0, 1 - (1 - cosine) / (1 - threshold)), at most 10 in a row
 *
 * The cosine is that of all bytes of the frames, less 127.5. Draws are those of the seed.
 */
#ifndef LW_STREAM_SIMILAR_H
#define LW_STREAM_SIMILAR_H

#include "base/base.h"

enum { LW_SIMILAR_IN_A_ROW = 10 };

typedef struct lw_similar {
    double threshold; /* below 1; 0: nothing is skipped */
    uint64_t seed;
    size_t frame, picture;              /* bytes */
    uint8_t *last_frame, *last_picture; /* of the last frame computed */
    int64_t frames, skipped;
    int32_t in_a_row;
    bool any; /* one was computed */
} lw_similar;

void lw_similar_open(lw_similar *s, uint64_t seed, size_t frame, size_t picture);
/* 0: nothing is skipped, and what is needed for it is allocated when it first is another. */
int lw_similar_set(lw_similar *s, double threshold);
void lw_similar_close(lw_similar *s);
/* Is this frame skipped? Then picture is the last one. */
bool lw_similar_skip(lw_similar *s, const uint8_t *frame, uint8_t *picture);
/* What came of a frame that was not. */
void lw_similar_keep(lw_similar *s, const uint8_t *frame, const uint8_t *picture);
/* The next frame is computed. */
void lw_similar_reset(lw_similar *s);

#endif
