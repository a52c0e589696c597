/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures with borders, for tile registers: conv.h. */
#include "kernels/conv/conv_shape.h"

#include <string.h>

/* Copies for tasks of their own stay in a part of L2; one for all must stay there as well, between cores. */
enum { MOST_BYTES = 1 << 20, TASK_BYTES = 1 << 16 };

static size_t line_bytes(lw_num num, const lw_conv_shape *s)
{
    return (size_t)s->W * (size_t)s->C * (num == LW_NUM_S8 ? sizeof(uint8_t) : sizeof(lw_bf16));
}

bool lw_conv_bordered(lw_isa isa, lw_num num, const lw_conv_shape *s, lw_conv_shape *out)
{
    const int32_t across = s->pad_left + s->pad_right, down = s->pad_top + s->pad_bottom;
    const bool whole = s->OW % (LW_WIDE_ROWS / 2) == 0;
    if (!lw_tiles_are_wide(isa, num, s->C) || num == LW_NUM_BF16X3 || s->KH * s->KW < 2 ||
        lw_num_words(num, s->C) % LW_WIDE_CHUNK)
        return false;
    if (!whole && (s->stride != 1 || num == LW_NUM_S8))
        return false;
    *out = *s;
    out->pad_top = out->pad_bottom = out->pad_left = out->pad_right = 0;
    out->H += down;
    out->W += across;
    if (!whole) {
        out->W = s->OW;
        out->C *= s->KW;
        out->KW = 1;
    }
    out->ldx = out->C;
    return lw_conv_bordered_bytes(num, out) <= MOST_BYTES;
}

size_t lw_conv_bordered_bytes(lw_num num, const lw_conv_shape *bordered)
{
    return (size_t)bordered->B * (size_t)bordered->H * line_bytes(num, bordered);
}

static int64_t lines_of_task(lw_num num, const lw_conv_shape *bordered)
{
    return LW_MAX((int64_t)(TASK_BYTES / line_bytes(num, bordered)), 1);
}

int64_t lw_conv_border_tasks(lw_num num, const lw_conv_shape *bordered)
{
    return LW_CEIL_DIV((int64_t)bordered->B * bordered->H, lines_of_task(num, bordered));
}

/* Pixels [x, x + n) of a line, or what stands for 0 where there are none. */
static char *copy_pixels(char *to, const char *line, const lw_conv_shape *s, int32_t x, int32_t n,
                         size_t number, int fill)
{
    const size_t pixel = (size_t)s->C * number, pitch = (size_t)s->ldx * number;
    const int32_t x0 = LW_MIN(LW_MAX(x, 0), x + n), x1 = LW_MAX(LW_MIN(x + n, s->W), x0);
    const int32_t from = line ? x0 : x + n, end = line ? x1 : x + n;
    memset(to, fill, (size_t)(from - x) * pixel);
    to += (size_t)(from - x) * pixel;
    if (pitch == pixel && end > from) {
        memcpy(to, line + (size_t)from * pitch, (size_t)(end - from) * pixel);
        to += (size_t)(end - from) * pixel;
    } else {
        for (int32_t i = from; i < end; i++, to += pixel)
            memcpy(to, line + (size_t)i * pitch, pixel);
    }
    memset(to, fill, (size_t)(x + n - end) * pixel);
    return to + (size_t)(x + n - end) * pixel;
}

void lw_conv_border(void *to, const void *x, lw_num num, const lw_conv_shape *s,
                    const lw_conv_shape *bordered, int fill, int64_t task)
{
    const size_t number = num == LW_NUM_S8 ? sizeof(uint8_t) : sizeof(lw_bf16),
                 line = line_bytes(num, bordered);
    const int64_t some = lines_of_task(num, bordered), all = (int64_t)bordered->B * bordered->H;
    for (int64_t l = task * some; l < LW_MIN((task + 1) * some, all); l++) {
        const int32_t y = (int32_t)(l % bordered->H) - s->pad_top;
        const char *from = y < 0 || y >= s->H
                               ? NULL
                               : (const char *)x + (size_t)(l / bordered->H * s->H + y) *
                                                       (size_t)s->W * (size_t)s->ldx * number;
        char *p = (char *)to + (size_t)l * line;
        if (bordered->C == s->C) {
            copy_pixels(p, from, s, -s->pad_left, bordered->W, number, fill);
            continue;
        }
        for (int32_t q = 0; q < bordered->W; q++)
            p = copy_pixels(p, from, s, q - s->pad_left, s->KW, number, fill);
    }
}
