/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution: how it is cut into tasks (pure functions of the shape), and what is not
 * worth vectors: packing, and adding up partial sums. */
#include "kernels/conv/conv_depthwise_shape.h"

enum {
    TASK_FLOATS = 65536, /* of what a task makes */
    PART_IMAGES = 8,     /* groups of images in a weight gradient, at most */
    PART_COLS = 64       /* channels of its tasks */
};

void lw_depthwise_pack(float *packed, const float *w, const lw_conv_shape *s, ptrdiff_t c0,
                       ptrdiff_t c1)
{
    ptrdiff_t taps = (ptrdiff_t)s->KH * s->KW;
    for (ptrdiff_t t = 0; t < taps; t++)
        for (ptrdiff_t c = c0; c < c1; c++)
            packed[t * s->C + c] = w[c * taps + t];
}

/* ---- forward and data gradient --------------------------------------------------------------- */

static int64_t rows_of(const lw_conv_shape *s, lw_conv_pass pass)
{
    return (int64_t)s->B * (pass == LW_CONV_FORWARD ? s->OH : s->H);
}

static int64_t rows_per_task(const lw_conv_shape *s, lw_conv_pass pass)
{
    int64_t row = (int64_t)(pass == LW_CONV_FORWARD ? s->OW : s->W) * s->C;
    return LW_MAX(TASK_FLOATS / row, 1);
}

int64_t lw_depthwise_tasks(const lw_conv_shape *s, lw_conv_pass pass)
{
    return LW_CEIL_DIV(rows_of(s, pass), rows_per_task(s, pass));
}

lw_depthwise_rows lw_depthwise_rows_of(const lw_conv_shape *s, lw_conv_pass pass, int64_t task)
{
    int64_t rows = rows_of(s, pass), tasks = lw_depthwise_tasks(s, pass);
    return (lw_depthwise_rows){rows * task / tasks, rows * (task + 1) / tasks};
}

/* ---- weight gradient ------------------------------------------------------------------------- */

static int64_t image_parts(const lw_conv_shape *s)
{
    return LW_MAX(LW_MIN(s->B, PART_IMAGES), 1);
}

static ptrdiff_t part_floats(const lw_conv_shape *s)
{
    return ((ptrdiff_t)s->KH * s->KW + 1) * s->C;
}

int64_t lw_depthwise_weight_grad_tasks(const lw_conv_shape *s)
{
    return image_parts(s) * LW_CEIL_DIV(s->C, PART_COLS);
}

int64_t lw_depthwise_partial_floats(const lw_conv_shape *s)
{
    return image_parts(s) * part_floats(s);
}

lw_depthwise_part lw_depthwise_part_of(const lw_conv_shape *s, int64_t task)
{
    int64_t cols = LW_CEIL_DIV(s->C, PART_COLS), part = task / cols, parts = image_parts(s);
    return (lw_depthwise_part){.b0 = (ptrdiff_t)(s->B * part / parts),
                               .b1 = (ptrdiff_t)(s->B * (part + 1) / parts),
                               .c0 = (ptrdiff_t)(task % cols) * PART_COLS,
                               .c1 = LW_MIN((ptrdiff_t)(task % cols + 1) * PART_COLS, s->C),
                               .at = (ptrdiff_t)part * part_floats(s)};
}

void lw_depthwise_combine(float *dw, float *db, const float *partials, const lw_conv_shape *s,
                          ptrdiff_t c0, ptrdiff_t c1)
{
    ptrdiff_t taps = (ptrdiff_t)s->KH * s->KW, parts = (ptrdiff_t)image_parts(s);
    for (ptrdiff_t c = c0; c < c1; c++)
        for (ptrdiff_t t = 0; t <= taps; t++) {
            float sum = 0.0f;
            for (ptrdiff_t p = 0; p < parts; p++)
                sum += partials[p * part_floats(s) + t * s->C + c];
            if (t < taps)
                dw[c * taps + t] = sum;
            else if (db)
                db[c] = sum;
        }
}
