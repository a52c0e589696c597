/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize and its gradient: a pass across lines and a pass down them, through one picture between.
 * The gradient is the same two passes under transposed weights. Across, which turns lines into
 * columns where pixels have few channels, has the end with fewer lines.
 */
#include "backend/cpu/cpu_private.h"

#include <string.h>

enum { WIDE = 16 }; /* channels of a pixel that fill the vectors of every level */

typedef struct resize_arg {
    const lw_kernels *k;
    lw_resample_axis across, down; /* arrays in plan memory */
    cpu_range lines, rows;         /* of across; of down */
    ptrdiff_t c, width;            /* channels; elements of a line that goes down */
    ptrdiff_t w, from, to;         /* pixels of a line that goes across; lines of a sample, down */
    bool down_first;
} resize_arg;

/* Across lines [b, e) of x [.., w, c]. */
static void across(const resize_arg *a, float *y, const float *x, int64_t b, int64_t e, void *room)
{
    const lw_resample_axis *axis = &a->across;
    ptrdiff_t line = a->w * a->c, out = axis->n * a->c;
    if (a->c < WIDE) {
        lw_resample_pass p = {axis, a->c, line, out};
        a->k->resample.across_f32(y, x + axis->first * a->c, &p, b, e, room);
        return;
    }
    lw_resample_pass p = {axis, a->c, a->c, a->c}; /* the pixels of a line go down */
    for (int64_t r = b; r < e; r++)
        a->k->resample.down_f32(y + r * out, x + r * line + axis->first * a->c, &p, 0, axis->n);
}

/* Down to lines [b, e) of y: those of a sample lie together. */
static void down(const resize_arg *a, float *y, const float *x, int64_t b, int64_t e)
{
    lw_resample_pass p = {&a->down, a->width, a->width, a->width};
    while (b < e) {
        int64_t sample = b / a->to, end = LW_MIN(e, (sample + 1) * a->to);
        a->k->resample.down_f32(y + sample * a->to * a->width,
                                x + (sample * a->from + a->down.first) * a->width, &p,
                                b - sample * a->to, end - sample * a->to);
        b = end;
    }
}

/* Of two passes, the first writes the workspace, the second reads it. */
static void across_task(const lw_task *t)
{
    const resize_arg *a = t->arg;
    bool last = a->down_first || a->down.copy;
    across(a, last ? t->out[0] : t->work, a->down_first ? t->work : t->in[0],
           cpu_begin(a->lines, t->index), cpu_end(a->lines, t->index), t->scratch);
}

static void down_task(const lw_task *t)
{
    const resize_arg *a = t->arg;
    bool last = !a->down_first;
    down(a, last ? t->out[0] : t->work, last && !a->across.copy ? t->work : t->in[0],
         cpu_begin(a->rows, t->index), cpu_end(a->rows, t->index));
}

static void *copy_of(cpu_lower *c, const void *p, size_t bytes)
{
    void *to = lw_arena_alloc(c->arena, bytes);
    if (to)
        memcpy(to, p, bytes);
    return to;
}

static int keep(cpu_lower *c, lw_resample_axis *to, const lw_resample_axis *a)
{
    size_t n = (size_t)a->n;
    *to = *a;
    if (a->copy)
        return 0;
    to->start = copy_of(c, a->start, n * sizeof *a->start);
    to->count = copy_of(c, a->count, n * sizeof *a->count);
    to->weight = copy_of(c, a->weight, n * (size_t)a->taps * sizeof *a->weight);
    return to->start && to->count && to->weight ? 0 : LW_ENOMEM;
}

/* The weights of dimension d (1: down, 2: across) of a resize from x to y, or their transpose. */
static int axis_of(cpu_lower *c, lw_resample_axis *to, lw_type x, lw_type y, int d, bool transpose)
{
    const lw_attr_resize *at = c->n->attr;
    LW_CLEANUP(lw_resample_axis_clear) lw_resample_axis axis = {0}, turned = {0};
    lw_resample_axis_spec s = {.form = (lw_resample_form)at->form,
                               .filter = (lw_filter)at->filter,
                               .from = x.dim[d],
                               .to = y.dim[d],
                               .scale = at->scale[d - 1]};
    LW_TRY(lw_resample_axis_init(&axis, &s));
    if (!transpose)
        return keep(c, to, &axis);
    LW_TRY(lw_resample_axis_transpose(&turned, &axis, s.from));
    return keep(c, to, &turned);
}

/* from, to: what the step reads and writes; x, y: of the resize whose weights these are. */
static int lower(cpu_lower *c, lw_type x, lw_type y, bool transpose)
{
    lw_type from = cpu_in(c, 0), to = cpu_out(c, 0);
    resize_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    LW_TRY(axis_of(c, &a->down, x, y, 1, transpose));
    LW_TRY(axis_of(c, &a->across, x, y, 2, transpose));
    bool both = !a->across.copy && !a->down.copy;
    a->k = c->k;
    a->c = from.dim[3];
    a->w = from.dim[2];
    a->from = from.dim[1];
    a->to = to.dim[1];
    a->down_first = both && a->to < a->from;
    a->width = (a->down_first ? from.dim[2] : to.dim[2]) * a->c;
    ptrdiff_t lines = a->down_first ? a->to : a->from, middle = lines * a->width;
    a->lines = cpu_split((int64_t)from.dim[0] * lines, a->across.taps * a->across.n * a->c);
    a->lines.step = LW_ROUND_UP(a->lines.step, 16); /* lines that across takes together */
    a->rows = cpu_split((int64_t)from.dim[0] * a->to, a->down.taps * a->width);
    c->out->work_bytes = both ? sizeof(float) * (size_t)(from.dim[0] * middle) : 0;
    c->out->scratch_bytes = a->across.copy || a->c >= WIDE
                                ? 0
                                : lw_resample_across_scratch(&a->across, a->c, sizeof(float));
    if (a->down_first)
        lw_cpu_phase(c, down_task, cpu_range_tasks(a->rows));
    if (!a->across.copy)
        lw_cpu_phase(c, across_task, cpu_range_tasks(a->lines));
    if (!a->down_first && !a->down.copy)
        lw_cpu_phase(c, down_task, cpu_range_tasks(a->rows));
    return 0;
}

int lw_cpu_lower_resize(cpu_lower *c)
{
    return lower(c, cpu_in(c, 0), cpu_out(c, 0), false);
}

int lw_cpu_lower_resize_grad(cpu_lower *c)
{
    return lower(c, cpu_out(c, 0), cpu_in(c, 0), true);
}
