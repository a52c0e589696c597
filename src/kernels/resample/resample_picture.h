/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A picture at another size: both passes, and what they need.
 *
 *   lw_resample r = {0};
 *   lw_resample_init(&r, &(lw_resample_spec){.filter = LW_FILTER_BICUBIC, .c = 3,
 *                    .h = 375, .w = 500, .to_h = 224, .to_w = 299,   whole result ...
 *                    .x = 37, .out_h = 224, .out_w = 224});          ... of which this window
 *   lw_resample_u8(&kernels.resample, &r, y, x, scratch);            lw_resample_scratch(&r) bytes
 *
 * Only what the window needs is computed; its pixels are those of the whole result. A size that
 * does not change skips its pass. Read-only once made: any number of threads may share it.
 *
 * Which pass is the first matters to the bits, because the u8 forms clip between them. It is across,
 * but in pillow-13 where h - to_h > max(0, 2 (w - to_w)): there Pillow saves work.
 */
#ifndef LW_KERNELS_RESAMPLE_PICTURE_H
#define LW_KERNELS_RESAMPLE_PICTURE_H

#include "kernels/resample/resample.h"

typedef struct lw_resample_spec {
    lw_resample_form form;
    lw_filter filter;
    ptrdiff_t h, w, c;            /* x [h][w][c] */
    ptrdiff_t to_h, to_w;         /* size of the whole result */
    ptrdiff_t y, x, out_h, out_w; /* y [out_h][out_w][c]: the window; 0 x 0: all */
} lw_resample_spec;

typedef struct lw_resample {
    bool u8, down_first;
    ptrdiff_t w, c;
    lw_resample_axis across, down;
} lw_resample;

/* LW_EUSAGE: a size below 1 or a window outside; LW_EUNSUPPORTED: the form has no such filter. */
int lw_resample_init(lw_resample *r, const lw_resample_spec *s);
void lw_resample_clear(lw_resample *r); /* fits LW_CLEANUP */
/* Bytes; 64-byte aligned is best. */
size_t lw_resample_scratch(const lw_resample *r);
/* Channels are independent: alpha is one of them, not premultiplied. */
void lw_resample_u8(const struct lw_resample_kernels *k, const lw_resample *r, uint8_t *y,
                    const uint8_t *x, void *scratch); /* forms of u8 */
void lw_resample_f32(const struct lw_resample_kernels *k, const lw_resample *r, float *y,
                     const float *x, void *scratch); /* the others */

#endif
