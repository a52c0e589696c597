/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing pictures, frames of video, and casts on GPUs. */
#include "backend/cuda/cuda_private.h"

#include <string.h>

#include "kernels/kernels.h"

/* ---- resize ---------------------------------------------------------------------------------- */

/* A pass along one axis; its weights stand in the step's table. */
typedef struct resize_pass {
    lw_cuda_resize a;
    size_t start, count, weight; /* byte offsets in the table */
} resize_pass;

typedef struct resize_step {
    cuda_step step;
    resize_pass pass[2]; /* down, across; of one alone: the first */
    int n;
} resize_step;

static void resize_task(const lw_task *t)
{
    const resize_step *s = t->arg;
    const char *table = t->table;
    for (int i = 0; i < s->n; i++) {
        lw_cuda_resize a = s->pass[i].a;
        a.y = i == s->n - 1 ? t->out[0] : t->work;
        a.x = i ? t->work : t->in[0];
        a.start = (const int32_t *)(const void *)(table + s->pass[i].start);
        a.count = (const int32_t *)(const void *)(table + s->pass[i].count);
        a.weight = (const float *)(const void *)(table + s->pass[i].weight);
        lw_cuda_launch(s->step.d, LW_CUDA_resize,
                       lw_cuda_blocks(LW_CUDA_resize, a.outer * a.to * a.inner), 1, &a);
    }
}

static void copy_task(const lw_task *t)
{
    const resize_step *s = t->arg;
    lw_cuda_copy a = {.rows = 1, .y_pitch = s->pass[0].a.outer};
    a.part[0] = (lw_cuda_copy_part){
        .y = t->out[0], .x = t->in[0], .width = a.y_pitch, .x_pitch = a.y_pitch};
    lw_cuda_launch(s->step.d, LW_CUDA_copy_rows, lw_cuda_blocks(LW_CUDA_copy_rows, a.y_pitch), 1,
                   &a);
}

static size_t put(char *table, size_t *at, const void *data, size_t bytes)
{
    size_t mine = *at;
    if (table)
        memcpy(table + mine, data, bytes);
    *at += LW_ROUND_UP(bytes, 64);
    return mine;
}

/* The axis' values into a pass and the table; table NULL: counts their bytes. */
static void put_axis(resize_pass *p, const lw_resample_axis *x, char *table, size_t *at)
{
    size_t n = (size_t)x->n;
    p->start = put(table, at, x->start, n * sizeof *x->start);
    p->count = put(table, at, x->count, n * sizeof *x->count);
    p->weight = put(table, at, x->weight, n * (size_t)x->taps * sizeof *x->weight);
    for (size_t o = 0; table && o < n; o++) /* the kernel counts from the line's beginning */
        ((int32_t *)(void *)(table + p->start))[o] += (int32_t)x->first;
    p->a.taps = (int32_t)x->taps;
}

static int make_table(cuda_lower *c, resize_step *s, const lw_resample_axis *const axis[2])
{
    size_t bytes = 0, at = 0;
    for (int i = 0; i < s->n; i++)
        put_axis(&s->pass[i], axis[i], NULL, &bytes);
    char *table = lw_arena_alloc(c->arena, LW_MAX(bytes, (size_t)1));
    if (!table)
        return LW_ENOMEM;
    for (int i = 0; i < s->n; i++)
        put_axis(&s->pass[i], axis[i], table, &at);
    c->out->table = table;
    c->out->table_bytes = bytes;
    return 0;
}

static int lower_passes(cuda_lower *c, const lw_resample_axis *down, const lw_resample_axis *across)
{
    lw_type x = cuda_in(c, 0), y = cuda_out(c, 0);
    const lw_resample_axis *axis[2] = {0};
    resize_step *s = lw_cuda_arg(c, sizeof *s,
                                 down->copy && across->copy ? copy_task : resize_task);
    if (!s)
        return LW_ENOMEM;
    if (down->copy && across->copy) {
        s->pass[0].a.outer = lw_type_count(y);
        return 0;
    }
    if (!down->copy) {
        axis[s->n] = down;
        s->pass[s->n++].a = (lw_cuda_resize){.outer = x.dim[0],
                                             .inner = (int64_t)x.dim[2] * x.dim[3],
                                             .from = x.dim[1],
                                             .to = y.dim[1]};
    }
    if (!across->copy) {
        axis[s->n] = across;
        s->pass[s->n++].a = (lw_cuda_resize){.outer = (int64_t)x.dim[0] * y.dim[1],
                                             .inner = x.dim[3],
                                             .from = x.dim[2],
                                             .to = y.dim[2]};
    }
    if (s->n == 2)
        c->out->work_bytes = sizeof(float) *
                             (size_t)(s->pass[0].a.outer * y.dim[1] * s->pass[0].a.inner);
    return make_table(c, s, axis);
}

static int axis_of(const cuda_lower *c, lw_resample_axis *axis, int d)
{
    const lw_attr_resize *at = c->n->attr;
    const lw_resample_axis_spec s = {.form = (lw_resample_form)at->form,
                                     .filter = (lw_filter)at->filter,
                                     .from = cuda_in(c, 0).dim[d],
                                     .to = cuda_out(c, 0).dim[d],
                                     .scale = at->scale[d - 1]};
    return lw_resample_axis_init(axis, &s);
}

int lw_cuda_lower_resize(cuda_lower *c)
{
    LW_CLEANUP(lw_resample_axis_clear) lw_resample_axis down = {0}, across = {0};
    LW_TRY(lw_cuda_f32(c, -1));
    LW_TRY(axis_of(c, &down, 1));
    LW_TRY(axis_of(c, &across, 2));
    return lower_passes(c, &down, &across);
}

/* ---- frames ---------------------------------------------------------------------------------- */

typedef struct frames_step {
    cuda_step step;
    lw_cuda_frames a;
} frames_step;

static void to_rgb_task(const lw_task *t)
{
    const frames_step *s = t->arg;
    lw_cuda_frames a = s->a;
    a.rgb = t->out[0];
    a.frame = t->in[0];
    lw_cuda_launch(s->step.d, LW_CUDA_frame_to_rgb,
                   lw_cuda_blocks(LW_CUDA_frame_to_rgb, a.n * a.h * a.w), 1, &a);
}

static void from_rgb_task(const lw_task *t)
{
    const frames_step *s = t->arg;
    lw_cuda_frames a = s->a;
    a.rgb = t->in[0];
    a.frame = t->out[0];
    lw_cuda_launch(s->step.d, LW_CUDA_rgb_to_frame,
                   lw_cuda_blocks(LW_CUDA_rgb_to_frame, a.n * a.h * (a.w + 1)), 1, &a);
}

static int lower_frames(cuda_lower *c, lw_task_fn *fn)
{
    const lw_attr_pixels *at = c->n->attr;
    frames_step *s = lw_cuda_arg(c, sizeof *s, fn);
    lw_pixels p;
    if (!s)
        return LW_ENOMEM;
    lw_pixels_init(&p, (lw_pixels_form)at->form, (lw_pixels_matrix)at->matrix, at->full_range != 0,
                   at->w, at->h);
    s->a = (lw_cuda_frames){.n = cuda_in(c, 0).dim[0],
                            .bytes = (int64_t)lw_pixels_bytes(&p),
                            .w = p.w,
                            .h = p.h,
                            .form = (int32_t)p.form,
                            .narrow = cuda_out(c, 0).dtype == LW_U8,
                            .lines = p.lines,
                            .black = p.black,
                            .gray = p.gray,
                            .yy = p.yy,
                            .rv = p.rv,
                            .gu = p.gu,
                            .gv = p.gv,
                            .bu = p.bu};
    memcpy(s->a.y_of, p.y_of, sizeof p.y_of);
    memcpy(s->a.u_of, p.u_of, sizeof p.u_of);
    memcpy(s->a.v_of, p.v_of, sizeof p.v_of);
    return 0;
}

int lw_cuda_lower_frame_to_rgb(cuda_lower *c)
{
    return lower_frames(c, to_rgb_task);
}

int lw_cuda_lower_rgb_to_frame(cuda_lower *c)
{
    if (cuda_in(c, 0).dtype != LW_F32)
        return lw_cuda_lacks(c, " of other numbers than f32");
    return lower_frames(c, from_rgb_task);
}

/* ---- casts ----------------------------------------------------------------------------------- */

typedef struct cast_step {
    cuda_step step;
    lw_cuda_cast a;
} cast_step;

static void cast_task(const lw_task *t)
{
    const cast_step *s = t->arg;
    lw_cuda_cast a = s->a;
    a.y = t->out[0];
    a.x = t->in[0];
    a.quant = t->in[1];
    const uintptr_t from = a.kind == LW_CUDA_TO_F32 || a.kind == LW_CUDA_BF16_TO_U8 ? 8 : 16;
    const uintptr_t to = a.kind == LW_CUDA_TO_F32 ? 16 : a.kind == LW_CUDA_TO_BF16 ? 8 : 4;
    a.wide = (uintptr_t)a.x % from == 0 && (uintptr_t)a.y % to == 0;
    lw_cuda_launch(s->step.d, LW_CUDA_cast, lw_cuda_blocks(LW_CUDA_cast, LW_CEIL_DIV(a.n, 4)), 1,
                   &a);
}

int lw_cuda_lower_cast(cuda_lower *c)
{
    lw_type y = cuda_out(c, 0);
    cast_step *s = lw_cuda_arg(c, sizeof *s, cast_task);
    if (!s)
        return LW_ENOMEM;
    s->a.n = lw_type_count(y);
    s->a.kind = y.dtype == LW_U8
                    ? (cuda_in(c, 0).dtype == LW_BF16 ? LW_CUDA_BF16_TO_U8 : LW_CUDA_TO_U8)
                : y.dtype == LW_BF16 ? LW_CUDA_TO_BF16
                                     : LW_CUDA_TO_F32;
    return 0;
}
