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

#endif
