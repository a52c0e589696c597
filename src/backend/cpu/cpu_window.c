/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention in windows: a task is one head of one window of one sample. Its places are not side by
 * side in memory, so they are gathered, attended by the kernels of whole pictures, and put back.
 */
#include "backend/cpu/cpu_private.h"

#include <math.h>
#include <string.h>

typedef struct window_arg {
    const lw_kernels *k;
    lw_attention_shape s; /* of the largest window, of one head */
    int64_t heads, window, w, h, across, down;
    size_t in_size, out_size; /* bytes of an element */
    /* of q, k, v: operand, its elements from place to place, where the first head begins */
    int operand[3];
    int64_t pitch[3], at[3];
    size_t part, room; /* bytes of one gathered operand; of all, before the kernel's scratch */
} window_arg;

/* Where a task's window is: its first place among those of its sample, and its sides. */
typedef struct window {
    int64_t sample, head, first, rows, columns;
} window;

static window window_of(const window_arg *a, int64_t index)
{
    const int64_t i = index / a->heads, y = i / a->across % a->down * a->window,
                  x = i % a->across * a->window;
    return (window){.sample = i / (a->across * a->down),
                    .head = index % a->heads,
                    .first = y * a->w + x,
                    .rows = LW_MIN(a->window, a->h - y),
                    .columns = LW_MIN(a->window, a->w - x)};
}

static void gather(const window_arg *a, const window *v, const char *src, int64_t pitch, char *dst)
{
    const size_t row = (size_t)a->s.hd * a->in_size, step = (size_t)pitch * a->in_size;
    for (int64_t y = 0; y < v->rows; y++)
        for (int64_t x = 0; x < v->columns; x++, dst += row)
            memcpy(dst, src + (size_t)(v->first + y * a->w + x) * step, row);
}

static void put_back(const window_arg *a, const window *v, const char *src, char *dst)
{
    const size_t row = (size_t)a->s.hd * a->out_size, step = row * (size_t)a->heads;
    for (int64_t y = 0; y < v->rows; y++)
        for (int64_t x = 0; x < v->columns; x++, src += row)
            memcpy(dst + (size_t)(v->first + y * a->w + x) * step, src, row);
}

static void attend(const window_arg *a, const window *v, char *const part[4], float *lse,
                   float *scratch)
{
    lw_attention_shape s = a->s;
    s.tq = s.tk = v->rows * v->columns;
    for (int64_t i = 0, n = lw_attention_tasks(&s); i < n; i++)
        if (a->in_size == sizeof(lw_bf16))
            a->k->attention.forward_bf16(part[3], lse, (const lw_bf16 *)(const void *)part[0],
                                         (const lw_bf16 *)(const void *)part[1],
                                         (const lw_bf16 *)(const void *)part[2], &s, i, scratch);
        else
            a->k->attention.forward((float *)(void *)part[3], lse, (float *)(void *)part[0],
                                    (float *)(void *)part[1], (float *)(void *)part[2], &s, i,
                                    scratch);
}

/* Scratch: q, k, v, o and the sums of a window, and the kernel's own. */
static void window_task(const lw_task *t)
{
    const window_arg *a = t->arg;
    const window v = window_of(a, t->index);
    const int64_t places = a->w * a->h;
    char *part[4], *scratch = (char *)t->scratch;
    for (int i = 0; i < 4; i++)
        part[i] = scratch + (size_t)i * a->part;
    float *lse = (float *)(void *)(scratch + 4 * a->part);
    for (int i = 0; i < 3; i++) {
        const int64_t from = v.sample * places * a->pitch[i] + a->at[i] + v.head * a->s.hd;
        gather(a, &v, (const char *)t->in[a->operand[i]] + (size_t)from * a->in_size, a->pitch[i],
               part[i]);
    }
    attend(a, &v, part, lse, (float *)(void *)(scratch + a->room));
    const int64_t to = v.sample * places * a->heads * a->s.hd + v.head * a->s.hd;
    put_back(a, &v, part[3], (char *)t->out[0] + (size_t)to * a->out_size);
    if (!t->out[1])
        return;
    float *sums = (float *)t->out[1] + (v.sample * a->heads + v.head) * places + v.first;
    for (int64_t y = 0; y < v.rows; y++)
        memcpy(sums + y * a->w, lse + y * v.columns, sizeof *sums * (size_t)v.columns);
}

/* The last of n operands holds all that follows its own, side by side. */
static void find_operands(window_arg *a, const cpu_lower *c, int64_t channels)
{
    for (int i = 0, n = c->n->n_in; i < 3; i++) {
        a->operand[i] = LW_MIN(i, n - 1);
        a->pitch[i] = cpu_in(c, a->operand[i]).dim[2];
        a->at[i] = (i - a->operand[i]) * channels;
    }
}

int lw_cpu_lower_window(cpu_lower *c)
{
    const lw_attr_attention *at = c->n->attr;
    const lw_type o = cpu_out(c, 0);
    window_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    const ptrdiff_t hd = o.dim[2] / at->heads;
    *a = (window_arg){.k = c->k,
                      .heads = at->heads,
                      .window = at->window,
                      .w = at->width,
                      .h = o.dim[1] / at->width,
                      .in_size = at->num == LW_NUM_BF16 ? sizeof(lw_bf16) : sizeof(float),
                      .out_size = o.dtype == LW_BF16 ? sizeof(lw_bf16) : sizeof(float)};
    a->across = LW_CEIL_DIV(a->w, a->window);
    a->down = LW_CEIL_DIV(a->h, a->window);
    const ptrdiff_t most = (ptrdiff_t)(LW_MIN(a->window, a->w) * LW_MIN(a->window, a->h));
    a->s = (lw_attention_shape){.tq = most,
                                .tk = most,
                                .heads = 1,
                                .hd = hd,
                                .q_pitch = hd,
                                .k_pitch = hd,
                                .v_pitch = hd,
                                .o_pitch = hd,
                                .scale = (float)(1.0 / sqrt((double)hd)),
                                .store = o.dtype == LW_BF16 ? LW_NUM_BF16 : LW_NUM_F32};
    find_operands(a, c, o.dim[2]);
    a->part = LW_ROUND_UP((size_t)(most * hd) * sizeof(float), (size_t)64);
    a->room = 4 * a->part + LW_ROUND_UP((size_t)most * sizeof(float), (size_t)64);
    c->out->scratch_bytes = a->room + sizeof(float) * lw_attention_scratch(&a->s, 0);
    lw_cpu_phase(c, window_task, o.dim[0] * a->across * a->down * a->heads);
    return 0;
}
