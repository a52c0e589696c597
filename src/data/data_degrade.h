/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures made worse on purpose, as decoded, before they are prepared: does a score notice, can a
 * network undo it? One after the other, each on bytes:
 *
 *   blur:S    Pillow's GaussianBlur of S pixels (a standard deviation), whatever the picture's size
 *   down:F    both sides divided by F (rounded down, at least 1 pixel) and back up again, both with
 *             Pillow's bicubic resize, which on the way down weighs every pixel that it covers
 *   thumb:F   the same with the bilinear one
 *   gray      luma (data_pixels.h) in every channel
 *   jpeg:Q    through a JPEG of quality Q (libjpeg's; 4:2:0 below 90), of gray and RGB
 *   noise:S   + S normal numbers, of the stream "degrade.noise" by row and line (as its step),
 *             rounded, in 0..255
 */
#ifndef LW_DATA_DEGRADE_H
#define LW_DATA_DEGRADE_H

#include "data/data_pixels.h"

typedef enum lw_degrade_kind {
    LW_DEGRADE_BLUR,
    LW_DEGRADE_DOWN,
    LW_DEGRADE_THUMB,
    LW_DEGRADE_GRAY,
    LW_DEGRADE_JPEG,
    LW_DEGRADE_NOISE
} lw_degrade_kind;

typedef struct lw_degrade_step {
    lw_degrade_kind kind;
    double by;
} lw_degrade_step;

enum { LW_DEGRADATIONS = 4, LW_DEGRADE_STEPS = 8 };
typedef struct lw_degradation {
    const char *name;
    int32_t n;
    lw_degrade_step step[LW_DEGRADE_STEPS];
} lw_degradation;

/* Those of `leeway mc`: blur_r5, blur_r15, down_4x, down_8x (thumbs). */
extern const lw_degradation lw_degradations[LW_DEGRADATIONS];

#define LW_DEGRADE_HELP \
    "blur:S, down:F, thumb:F, gray, jpeg:Q, noise:S; several with commas, in that order"
/* "blur:1.5,jpeg:40"; borrows the text as its name. LW_EUSAGE. */
int lw_degradation_parse(const char *text, lw_degradation *out);
/* im is replaced, by one of its size. Noise is that of (seed, row). */
int lw_degrade(const lw_degradation *d, uint64_t seed, int64_t row, lw_raster *im);

#endif
