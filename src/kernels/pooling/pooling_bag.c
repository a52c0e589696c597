/* SPDX-License-Identifier: Apache-2.0 */
/* Signed sums of rows of a table: the reference. */
#include "kernels/pooling/pooling.h"

#include <string.h>

/* +1, -1, or 0 for an id that adds nothing. */
static float sign_of(const lw_bag_shape *s, int32_t id, ptrdiff_t j)
{
    if (id <= 0 || id >= s->v)
        return 0.0f;
    return s->minus >> j % s->period & 1 ? -1.0f : 1.0f;
}

void lw_bag_ref(float *y, const float *base, const float *table, const int32_t *ids,
                const lw_bag_shape *s, ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t r = begin; r < end; r++) {
        const int32_t *row = ids + r * s->k;
        for (ptrdiff_t c = 0; c < s->c; c++) {
            double sum = base ? (double)base[r * s->c + c] : 0.0;
            for (ptrdiff_t j = 0; j < s->k; j++) {
                float sign = sign_of(s, row[j], j);
                if (sign != 0.0f)
                    sum += (double)(sign * table[row[j] * s->c + c]);
            }
            y[r * s->c + c] = (float)sum;
        }
    }
}

void lw_bag_grad_ref(float *dtable, const float *dy, const int32_t *ids, ptrdiff_t rows,
                     const lw_bag_shape *s, ptrdiff_t begin, ptrdiff_t end)
{
    for (ptrdiff_t v = 0; v < s->v; v++)
        memset(dtable + v * s->c + begin, 0, (size_t)(end - begin) * sizeof *dtable);
    for (ptrdiff_t i = 0; i < rows * s->k; i++) {
        float sign = sign_of(s, ids[i], i % s->k);
        for (ptrdiff_t c = begin; c < end && sign != 0.0f; c++)
            dtable[ids[i] * s->c + c] += sign * dy[i / s->k * s->c + c];
    }
}
