/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: a picture seen another way, as contrastive training wants it (Chen, Kornblith, Norouzi,
 * Hinton, "A Simple Framework for Contrastive Learning of Visual Representations", 2020, appendix A).
 *
 *   crop     a part of least_area to all of its area, of sides 3:4 to 4:3, stretched to the whole
 *   mirror   half of the time
 *   colours  8 times in 10: brightness, contrast, saturation times 1 - .8 s .. 1 + .8 s and hue
 *            turned by up to .2 s of a circle, in this order, s the strength; 2 times in 10 gray
 *            (RGB only; pictures of other channels have brightness and contrast)
 *
 * Contrast is about the mean gray of the view; hue turns about the gray axis of YIQ.
 */
#ifndef LW_DATA_VIEW_H
#define LW_DATA_VIEW_H

#include "base/base.h"

typedef struct lw_view_opts {
    double least_area; /* of a crop, above 0 to 1; 1: the whole picture */
    double colours;    /* strength s, 0 to 1; 0: colours stay, and nothing turns gray */
    bool mirror;
    uint64_t seed, stream;
} lw_view_opts;

/* View `index` of src [h][w][c] in [-1, 1] into dst: a pure function of these and the options. dst must
 * not be src. */
void lw_view_make(const float *src, int32_t h, int32_t w, int32_t c, const lw_view_opts *o,
                  int64_t index, float *dst);

#endif
