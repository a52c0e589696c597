/* SPDX-License-Identifier: Apache-2.0 */
/* The two source samples of an output coordinate. Private to resample. */
#ifndef LW_KERNELS_RESAMPLE_TAP_H
#define LW_KERNELS_RESAMPLE_TAP_H

#include "kernels/resample/resample.h"

typedef struct tap {
    ptrdiff_t i0, i1;
    double t; /* weight of i1 */
} tap;

/* Coordinates are float, as PyTorch computes them. */
static inline tap tap_of(ptrdiff_t o, ptrdiff_t from, ptrdiff_t to)
{
    float source = (float)from / (float)to * ((float)o + 0.5f) - 0.5f;
    source = source < 0.0f ? 0.0f : source;
    ptrdiff_t i = (ptrdiff_t)source;
    i = i < from - 1 ? i : from - 1;
    float t = source - (float)i;
    return (tap){i, i + 1 < from ? i + 1 : i, (double)(t < 1.0f ? t : 1.0f)};
}

#endif
