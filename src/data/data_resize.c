/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The central square of a picture at another size. Shrinking averages exactly the area an output
 * pixel covers; growing is bilinear. Both are a weighted sum along x, then along y, rounded once at
 * the end.
 */
#include <math.h>
#include <string.h>

#include "data/sources/data_source.h"

/* Weights of one axis: output o = sum over j < count[o] of weight[o * taps + j] * in[start[o]
 * + j]. */
typedef struct axis {
    int32_t taps;
    int32_t *start, *count;
    double *weight;
} axis;

static void axis_clear(axis *a)
{
    lw_free(&a->start);
    lw_free(&a->count);
    lw_free(&a->weight);
}

static void area_weights(axis *a, int32_t from, int32_t to)
{
    double scale = (double)from / to;
    for (int32_t o = 0; o < to; o++) {
        double lo = o * scale, hi = (o + 1) * scale;
        int32_t first = (int32_t)lo, last = LW_MIN(from, (int32_t)ceil(hi));
        a->start[o] = first;
        a->count[o] = last - first;
        for (int32_t j = 0; j < last - first; j++) {
            double l = LW_MAX(lo, (double)(first + j)), r = LW_MIN(hi, (double)(first + j + 1));
            a->weight[(size_t)o * (size_t)a->taps + (size_t)j] = LW_MAX(r - l, 0.0) / scale;
        }
    }
}

static void linear_weights(axis *a, int32_t from, int32_t to)
{
    for (int32_t o = 0; o < to; o++) {
        double at = (o + .5) * from / to - .5;
        at = LW_MIN(LW_MAX(at, 0.0), (double)(from - 1));
        int32_t first = LW_MIN((int32_t)at, LW_MAX(from - 2, 0));
        a->start[o] = first;
        a->count[o] = LW_MIN(2, from);
        a->weight[2 * o] = 1 - (at - first);
        a->weight[2 * o + 1] = at - first;
    }
}

static int axis_init(axis *a, int32_t from, int32_t to)
{
    *a = (axis){.taps = from > to ? from / to + 3 : 2};
    a->start = lw_calloc((size_t)to, sizeof *a->start);
    a->count = lw_calloc((size_t)to, sizeof *a->count);
    a->weight = lw_calloc((size_t)to * (size_t)a->taps, sizeof *a->weight);
    if (!a->start || !a->count || !a->weight)
        return LW_ENOMEM;
    if (from > to)
        area_weights(a, from, to);
    else
        linear_weights(a, from, to);
    return 0;
}

/* One input line [side][3] to [size][3]. */
static void shrink_line(const axis *a, const uint8_t *src, int32_t size, double *dst)
{
    for (int32_t o = 0; o < size; o++) {
        const double *wt = a->weight + (size_t)o * (size_t)a->taps;
        const uint8_t *in = src + 3 * (size_t)a->start[o];
        double sum[3] = {0, 0, 0};
        for (int32_t j = 0; j < a->count[o]; j++)
            for (int c = 0; c < 3; c++)
                sum[c] += wt[j] * in[3 * j + c];
        memcpy(dst + 3 * (size_t)o, sum, sizeof sum);
    }
}

int lw_data_fit(const uint8_t *rgb, int32_t h, int32_t w, int32_t size, uint8_t *dst)
{
    int32_t side = LW_MIN(h, w);
    size_t line = (size_t)size * 3, in_line = (size_t)w * 3;
    const uint8_t *src = rgb + (size_t)((h - side) / 2) * in_line + 3 * (size_t)((w - side) / 2);
    if (side == size) {
        for (int32_t y = 0; y < size; y++)
            memcpy(dst + (size_t)y * line, src + (size_t)y * in_line, line);
        return 0;
    }
    LW_CLEANUP(axis_clear) axis a = {0};
    LW_TRY(axis_init(&a, side, size));
    LW_CLEANUP(lw_free)
    double *rows = lw_calloc((size_t)side, line * sizeof *rows); /* [side][size][3] */
    LW_CLEANUP(lw_free) double *sum = lw_calloc(line, sizeof *sum);
    if (!rows || !sum)
        return LW_ENOMEM;
    for (int32_t y = 0; y < side; y++)
        shrink_line(&a, src + (size_t)y * in_line, size, rows + (size_t)y * line);
    for (int32_t o = 0; o < size; o++) {
        memset(sum, 0, line * sizeof *sum);
        for (int32_t j = 0; j < a.count[o]; j++) {
            const double *in = rows + (size_t)(a.start[o] + j) * line;
            double wt = a.weight[(size_t)o * (size_t)a.taps + (size_t)j];
            for (size_t x = 0; x < line; x++)
                sum[x] += wt * in[x];
        }
        for (size_t x = 0; x < line; x++)
            dst[(size_t)o * line + x] = (uint8_t)LW_MIN(255.0, floor(sum[x] + .5 + 1e-9));
    }
    return 0;
}
