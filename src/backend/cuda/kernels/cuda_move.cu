/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and pooling: a thread for each element of the result, or for four neighbours. */
#include "backend/cuda/kernels/cuda_port.h"

/* One word, or the four of a piece. */
LW_ON_DEVICE void move_word(uint32_t *y, const uint32_t *x, int64_t to, int64_t from, bool wide)
{
    if (wide)
        ((lw_quad *)y)[to] = ((const lw_quad *)x)[from];
    else
        y[to] = x[from];
}

LW_KERNEL(copy_rows, lw_cuda_copy, 256)
{
    const lw_cuda_copy_part p = a.part[LW_BY];
    int64_t step = a.tick ? (int64_t)a.tick->step : 0;
    int64_t first = (step < a.last ? step : a.last) * p.x_pitch;
    LW_EACH(e, a.rows * p.width)
    {
        int64_t row = e / p.width, at = e - row * p.width;
        move_word(p.y, p.x, row * a.y_pitch + at, first + row * p.x_pitch + at, a.wide);
    }
}

LW_KERNEL(space, lw_cuda_space, 256)
{
    LW_EACH(e, a.n)
    {
        int64_t pixel = e / a.oc, line = pixel / a.ow, b = line / a.oh;
        int32_t k = (int32_t)(e - pixel * a.oc) - a.lo[2];
        int32_t j = (int32_t)(pixel - line * a.ow) * a.mul / a.div - a.lo[1];
        int32_t i = (int32_t)(line - b * a.oh) * a.mul / a.div - a.lo[0];
        bool in = i >= 0 && i < a.h && j >= 0 && j < a.w && k >= 0 && k < a.c;
        if (in)
            move_word((uint32_t *)a.y, (const uint32_t *)a.x, e,
                      ((b * a.h + i) * a.w + j) * a.c + k, a.wide);
        else if (a.wide)
            ((lw_quad *)a.y)[e] = (lw_quad){{0, 0, 0, 0}};
        else
            a.y[e] = 0.0f;
    }
}

LW_KERNEL(patches, lw_cuda_patches, 256)
{
    const int64_t line = (int64_t)a.across * a.run, all = a.k * line;
    LW_EACH(e, a.n)
    {
        int64_t row = e / all, at = e - row * all;
        int64_t y = at / line, x = (at - y * line) / a.run, word = at - y * line - x * a.run;
        int64_t patch = row * all + (x * a.k + y) * a.run + word;
        move_word(a.y, a.x, a.back ? e : patch, a.back ? patch : e, a.wide);
    }
}

LW_KERNEL(pool, lw_cuda_pool, 256)
{
    LW_EACH(e, a.n)
    {
        int32_t c = (int32_t)(e % a.c), x0 = (int32_t)(e / a.c % a.ow) * a.stride - a.pad;
        int32_t y0 = (int32_t)(e / a.c / a.ow % a.oh) * a.stride - a.pad, inside = 0;
        const float *x = a.x + e / a.c / a.ow / a.oh * a.h * a.w * a.c + c;
        double sum = 0.0;
        float top = -INFINITY;
        for (int32_t i = y0 < 0 ? 0 : y0; i < y0 + a.k && i < a.h; i++)
            for (int32_t j = x0 < 0 ? 0 : x0; j < x0 + a.k && j < a.w; j++) {
                float v = x[((int64_t)i * a.w + j) * a.c];
                sum += (double)v;
                top = v > top || v != v ? v : top;
                inside++;
            }
        a.y[e] = a.max ? top : (float)(sum / (double)(a.inside ? inside : a.k * a.k));
    }
}

/* A row outside the table is of zeros. */
LW_KERNEL(embedding, lw_cuda_embedding, 256)
{
    LW_EACH(e, a.rows * a.c)
    {
        int64_t id = a.ids[e / a.c];
        a.y[e] = id >= 0 && id < a.v ? a.table[id * a.c + e % a.c] : 0.0f;
    }
}

/* Id 0, the pad, and ids outside the table add nothing; y may be base. */
LW_KERNEL(embedding_bag, lw_cuda_bag, 256)
{
    LW_EACH(e, a.rows * a.c)
    {
        const int32_t *ids = a.ids + e / a.c * a.k;
        double sum = a.base ? (double)a.base[e] : 0.0;
        for (int32_t j = 0; j < a.k; j++) {
            double v = ids[j] > 0 && ids[j] < a.v ? (double)a.table[ids[j] * a.c + e % a.c] : 0.0;
            sum += a.minus >> j % a.period & 1u ? -v : v;
        }
        a.y[e] = (float)sum;
    }
}
