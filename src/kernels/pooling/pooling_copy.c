/* SPDX-License-Identifier: Apache-2.0 */
/* Movement without arithmetic worth vectorising by hand: padding, subsampling, row copies,
 * embedding rows. */
#include "kernels/pooling/pooling.h"

#include <string.h>

static void copy(float *y, const float *x, ptrdiff_t n)
{
    memcpy(y, x, (size_t)n * sizeof *y);
}

static void zero(float *y, ptrdiff_t n)
{
    memset(y, 0, (size_t)n * sizeof *y);
}

void lw_pad_ref(float *y, const float *x, const lw_pad_shape *s, ptrdiff_t begin, ptrdiff_t end)
{
    ptrdiff_t oh = s->h + s->lo[0] + s->hi[0], ow = s->w + s->lo[1] + s->hi[1];
    ptrdiff_t oc = s->c + s->lo[2] + s->hi[2];
    ptrdiff_t c_to = s->lo[2] > 0 ? s->lo[2] : 0, c_from = s->lo[2] < 0 ? -s->lo[2] : 0;
    ptrdiff_t n = s->c - c_from < oc - c_to ? s->c - c_from : oc - c_to; /* channels kept */
    for (ptrdiff_t r = begin; r < end; r++) {
        ptrdiff_t i = r % oh - s->lo[0];
        for (ptrdiff_t o = 0; o < ow; o++) {
            float *to = y + (r * ow + o) * oc;
            ptrdiff_t j = o - s->lo[1];
            if (i < 0 || i >= s->h || j < 0 || j >= s->w || n <= 0) {
                zero(to, oc);
                continue;
            }
            zero(to, c_to);
            copy(to + c_to, x + ((r / oh * s->h + i) * s->w + j) * s->c + c_from, n);
            zero(to + c_to + n, oc - c_to - n);
        }
    }
}

void lw_subsample_ref(float *y, const float *x, ptrdiff_t h, ptrdiff_t w, ptrdiff_t c,
                      ptrdiff_t stride, ptrdiff_t begin, ptrdiff_t end)
{
    ptrdiff_t oh = (h + stride - 1) / stride, ow = (w + stride - 1) / stride;
    for (ptrdiff_t r = begin; r < end; r++)
        for (ptrdiff_t j = 0; j < ow; j++)
            copy(y + (r * ow + j) * c, x + ((r / oh * h + r % oh * stride) * w + j * stride) * c,
                 c);
}

void lw_subsample_grad_ref(float *dx, const float *dy, ptrdiff_t h, ptrdiff_t w, ptrdiff_t c,
                           ptrdiff_t stride, ptrdiff_t begin, ptrdiff_t end)
{
    ptrdiff_t oh = (h + stride - 1) / stride, ow = (w + stride - 1) / stride;
    for (ptrdiff_t r = begin; r < end; r++) {
        ptrdiff_t i = r % h;
        zero(dx + r * w * c, w * c);
        if (i % stride)
            continue;
        for (ptrdiff_t j = 0; j < ow; j++)
            copy(dx + (r * w + j * stride) * c, dy + ((r / h * oh + i / stride) * ow + j) * c, c);
    }
}

void lw_copy_rows_ref(float *y, ptrdiff_t y_pitch, const float *x, ptrdiff_t x_pitch, ptrdiff_t n,
                      ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t r = begin; r < end; r++)
        copy(y + r * y_pitch, x + r * x_pitch, n);
}

void lw_add_rows_ref(float *y, ptrdiff_t y_pitch, const float *x, ptrdiff_t x_pitch, ptrdiff_t n,
                     ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t r = begin; r < end; r++)
        for (ptrdiff_t i = 0; i < n; i++)
            y[r * y_pitch + i] += x[r * x_pitch + i];
}

void lw_gather_ref(float *y, const float *table, const int32_t *ids, ptrdiff_t v, ptrdiff_t c,
                   ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t b = begin; b < end; b++) {
        if (ids[b] >= 0 && ids[b] < v)
            copy(y + b * c, table + ids[b] * c, c);
        else
            zero(y + b * c, c);
    }
}

void lw_scatter_ref(float *dtable, const float *dy, const int32_t *ids, ptrdiff_t b, ptrdiff_t v,
                    ptrdiff_t c, int accumulate, ptrdiff_t begin, ptrdiff_t end)
{
    if (!accumulate)
        for (ptrdiff_t r = 0; r < v; r++)
            zero(dtable + r * c + begin, end - begin);
    for (ptrdiff_t i = 0; i < b; i++) {
        if (ids[i] < 0 || ids[i] >= v)
            continue;
        for (ptrdiff_t j = begin; j < end; j++)
            dtable[ids[i] * c + j] += dy[i * c + j];
    }
}
