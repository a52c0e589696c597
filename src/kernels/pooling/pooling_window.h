/* SPDX-License-Identifier: Apache-2.0 */
/* Which part of the image a pooling window covers. Private to pooling. */
#ifndef LW_KERNELS_POOLING_WINDOW_H
#define LW_KERNELS_POOLING_WINDOW_H

#include "kernels/pooling/pooling.h"

/* Input rows or columns of window o, clipped to [0, n). */
static inline void window(const lw_pooling_shape *s, ptrdiff_t o, ptrdiff_t n, ptrdiff_t *lo,
                          ptrdiff_t *hi)
{
    ptrdiff_t from = o * s->stride - s->pad, to = from + s->k;
    *lo = from < 0 ? 0 : from;
    *hi = to > n ? n : to;
}

/* What the average of a window of rows [box[0], box[1]) and columns [box[2], box[3]) divides by. */
static inline ptrdiff_t window_count(const lw_pooling_shape *s, const ptrdiff_t box[4])
{
    return s->inside ? (box[1] - box[0]) * (box[3] - box[2]) : s->k * s->k;
}

/* The same of the window at output row i, column j. */
static inline ptrdiff_t window_count_at(const lw_pooling_shape *s, ptrdiff_t i, ptrdiff_t j)
{
    ptrdiff_t box[4];
    window(s, i, s->h, &box[0], &box[1]);
    window(s, j, s->w, &box[2], &box[3]);
    return window_count(s, box);
}

#endif
