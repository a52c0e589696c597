/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Do pictures of a series decay? Six numbers of each frame, and a verdict on all of them: what a
 * network that is fed its own output loses shows here (no variance, no detail, one colour, one
 * picture for ever).
 *
 * Pixels count as v = byte / 127.5 - 1. Sums are of whole numbers, so results are those of any
 * machine. Of frame t, x [h][w][3]:
 *
 *   variance    mean (v - mean v)^2 over all pixels and channels
 *   temporal    mean over these of the variance of a value within the last 10 frames (fewer at the
 *               start, 0 of one)
 *   colour      | mean colour of t - mean colour of frame 0 |, of three channels
 *   repetition  the largest cosine of v(t) with v of one of the 5 frames before; 0 without any
 *   detail      (mean |v[y][x+1] - v[y][x]| + mean |v[y+1][x] - v[y][x]|) / 2
 *   spread      mean over channels of the standard deviation within one: colours collapse to 0
 */
#ifndef LW_EVAL_SERIES_H
#define LW_EVAL_SERIES_H

#include <stdbool.h>
#include <stdint.h>

enum { LW_SERIES_WINDOW = 10, LW_SERIES_BEFORE = 5 };

typedef enum lw_series_number {
    LW_SERIES_VARIANCE,
    LW_SERIES_TEMPORAL,
    LW_SERIES_COLOUR,
    LW_SERIES_REPETITION,
    LW_SERIES_DETAIL,
    LW_SERIES_SPREAD,
    LW_SERIES_NUMBERS
} lw_series_number;
extern const char *const lw_series_names[LW_SERIES_NUMBERS];

typedef struct lw_frame_numbers {
    double v[LW_SERIES_NUMBERS];
} lw_frame_numbers;

typedef struct lw_frame_series lw_frame_series;
/* Frames of w x h, LW_ENOMEM. Keeps the last 10. */
int lw_frame_series_new(int32_t w, int32_t h, lw_frame_series **out);
void lw_frame_series_free(lw_frame_series **pp);
/* The next frame, [h][w][3]; allocates nothing. */
void lw_frame_series_add(lw_frame_series *s, const uint8_t *rgb, lw_frame_numbers *out);

/*
 * What the input did is not the network's doing: a car that enters the picture raises the variance of
 * both. So the ratio is taken over the input's, and must stay near 1 either way; the deviation may be as
 * small as the input's makes it.
 */
typedef struct lw_series_verdict {
    double ratio,
        input_ratio; /* mean variance of the last tenth of the frames over that of the first */
    double change;   /* ratio / input_ratio */
    double deviation, input_deviation; /* root of the mean variance of the last tenth */
    double least; /* of deviation: LW_SERIES_DEVIATION, or a share of the input's
                                          where that is less */
    bool stable;  /* 0.7 < change < 1 / 0.7 and deviation > least */
} lw_series_verdict;
#define LW_SERIES_RATIO 0.7
#define LW_SERIES_DEVIATION 0.1
/* Of n >= 1 frames, and the n_in >= 1 of the input; tenths are rounded up. */
lw_series_verdict lw_series_judge(const lw_frame_numbers *frames, int64_t n,
                                  const lw_frame_numbers *in, int64_t n_in);

#endif
