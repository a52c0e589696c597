/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures made worse on purpose, as decoded, before they are prepared: does a score notice?
 *
 *   blur   Pillow's GaussianBlur of so many pixels, whatever the picture's size
 *   down   both sides divided by so much (rounded down, at least 1 pixel) and back up again, both with
 *          Pillow's bilinear resize
 */
#ifndef LW_DATA_DEGRADE_H
#define LW_DATA_DEGRADE_H

#include "data/data_pixels.h"

typedef struct lw_degradation {
    const char *name; /* "blur_r5", "down_4x" */
    int32_t blur, down;
} lw_degradation;

enum { LW_DEGRADATIONS = 4 };
/* blur_r5, blur_r15, down_4x, down_8x. */
extern const lw_degradation lw_degradations[LW_DEGRADATIONS];

/* im is replaced. */
int lw_degrade(const lw_degradation *d, lw_raster *im);

#endif
