/* SPDX-License-Identifier: Apache-2.0 */
/* Moving and resampling images: concat, slice, pad, subsample, upsample, pooling. */
#include "backend/cpu/cpu_private.h"

#include <string.h>

/* ---- concat and slice: rows of the dimensions before the axis -------------------------------- */

typedef struct rows_arg {
    const lw_kernels *k;
    cpu_range r;
    ptrdiff_t first, second,
        skip;                     /* elements of operand 0, of operand 1; slice: elements skipped */
    ptrdiff_t pitch[2], to_pitch; /* concat: elements between rows of the operands, of the result */
    bool there[2];                /* concat: the operand was written in place */
} rows_arg;

static int64_t inner(lw_type t, int axis)
{
    int64_t n = 1;
    for (int i = axis; i < t.rank; i++)
        n *= t.dim[i];
    return n;
}

static void concat_task(const lw_task *t)
{
    const rows_arg *a = t->arg;
    int64_t b = cpu_begin(a->r, t->index), e = cpu_end(a->r, t->index);
    if (!a->there[0])
        a->k->pooling.copy_rows(t->out[0], a->to_pitch, t->in[0], a->pitch[0], a->first, b, e);
    if (!a->there[1])
        a->k->pooling.copy_rows((float *)t->out[0] + a->first, a->to_pitch, t->in[1], a->pitch[1],
                                a->second, b, e);
}

static void concat_bf16_task(const lw_task *t)
{
    const rows_arg *a = t->arg;
    const ptrdiff_t n[2] = {a->first, a->second};
    for (int64_t r = cpu_begin(a->r, t->index); r < cpu_end(a->r, t->index); r++) {
        lw_bf16 *to = (lw_bf16 *)t->out[0] + r * a->to_pitch;
        for (int i = 0; i < 2; to += n[i++])
            if (!a->there[i])
                memcpy(to, (const lw_bf16 *)t->in[i] + r * a->pitch[i], (size_t)n[i] * sizeof *to);
    }
}

static void slice_task(const lw_task *t)
{
    const rows_arg *a = t->arg;
    a->k->pooling.copy_rows(t->out[0], a->first, (const float *)t->in[0] + a->skip, a->second,
                            a->first, cpu_begin(a->r, t->index), cpu_end(a->r, t->index));
}

static rows_arg *rows_record(cpu_lower *c, int axis)
{
    rows_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return NULL;
    lw_type o = cpu_out(c, 0);
    a->k = c->k;
    a->r = cpu_split(lw_type_count(o) / inner(o, axis), inner(o, axis));
    return a;
}

int lw_cpu_lower_concat(cpu_lower *c)
{
    int axis = ((const lw_attr_axis *)c->n->attr)->axis;
    rows_arg *a = rows_record(c, axis);
    if (!a)
        return LW_ENOMEM;
    const bool low = cpu_out(c, 0).dtype == LW_BF16;
    if (cpu_out(c, 0).dtype != LW_F32 && !low)
        return lw_fail(LW_EUNSUPPORTED, "concat of %s", lw_dtype_name(cpu_out(c, 0).dtype));
    a->first = inner(cpu_in(c, 0), axis);
    a->second = inner(cpu_in(c, 1), axis);
    a->to_pitch = inner(cpu_out(c, 0), axis) / lw_type_last(cpu_out(c, 0)) * cpu_out_pitch(c);
    for (int i = 0; i < 2; i++) {
        a->there[i] = lw_val_view(c->g, c->n->in[i]).of.id == c->n->out[0].id;
        a->pitch[i] = inner(cpu_in(c, i), axis) / lw_type_last(cpu_in(c, i)) * cpu_in_pitch(c, i);
    }
    lw_cpu_phase(c, low ? concat_bf16_task : concat_task,
                 a->there[0] && a->there[1] ? 0 : cpu_range_tasks(a->r));
    return 0;
}

int lw_cpu_lower_slice(cpu_lower *c)
{
    const lw_attr_axis *at = c->n->attr;
    rows_arg *a = rows_record(c, at->axis);
    if (!a)
        return LW_ENOMEM;
    if (lw_dtype_size(cpu_out(c, 0).dtype) != sizeof(float))
        return lw_fail(LW_EUNSUPPORTED, "slice of %s", lw_dtype_name(cpu_out(c, 0).dtype));
    a->first = inner(cpu_out(c, 0), at->axis);
    a->second = inner(cpu_in(c, 0), at->axis);
    a->skip = at->begin * (a->second / cpu_in(c, 0).dim[at->axis]);
    lw_cpu_phase(c, slice_task, cpu_range_tasks(a->r));
    return 0;
}

/* ---- images: ranges of rows ------------------------------------------------------------------ */

typedef struct image_arg {
    const lw_kernels *k;
    cpu_range r;
    ptrdiff_t h, w, c, factor;
    lw_pad_shape pad;
    lw_pooling_shape pool;
    bool max;
} image_arg;

/* Record with ranges over `rows` image rows (or samples) of `floats` floats each. */
static image_arg *image_record(cpu_lower *c, int64_t rows, int64_t floats)
{
    image_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return NULL;
    a->k = c->k;
    a->r = cpu_split(rows, floats);
    return a;
}

static int64_t image_rows(lw_type t)
{
    return (int64_t)t.dim[0] * t.dim[1];
}
static int64_t row_floats(lw_type t)
{
    return (int64_t)t.dim[2] * t.dim[3];
}

static void set_space(image_arg *a, lw_type t)
{
    a->h = t.dim[1];
    a->w = t.dim[2];
    a->c = t.dim[3];
}

#define IMAGE_TASK(name, call)                                              \
    static void name(const lw_task *t)                                      \
    {                                                                       \
        const image_arg *a = t->arg;                                        \
        int64_t b = cpu_begin(a->r, t->index), e = cpu_end(a->r, t->index); \
        call;                                                               \
    }
IMAGE_TASK(pad_task, a->k->pooling.pad(t->out[0], t->in[0], &a->pad, b, e))
IMAGE_TASK(sub_task,
           a->k->pooling.subsample(t->out[0], t->in[0], a->h, a->w, a->c, a->factor, b, e))
IMAGE_TASK(sub_grad_task,
           a->k->pooling.subsample_grad(t->out[0], t->in[0], a->h, a->w, a->c, a->factor, b, e))
IMAGE_TASK(up_task, a->k->pooling.upsample(t->out[0], t->in[0], a->h, a->w, a->c, a->factor, b, e))
IMAGE_TASK(up_grad_task,
           a->k->pooling.upsample_grad(t->out[0], t->in[0], a->h, a->w, a->c, a->factor, b, e))
IMAGE_TASK(pool_task,
           (a->max ? a->k->pooling.max : a->k->pooling.avg)(t->out[0], t->in[0], &a->pool, b, e))
IMAGE_TASK(max_bf16_task, a->k->pooling.max_bf16(t->out[0], t->in[0], &a->pool, b, e))
IMAGE_TASK(max_u8_task, a->k->pooling.max_u8(t->out[0], t->in[0], &a->pool, b, e))
IMAGE_TASK(avg_grad_task, a->k->pooling.avg_grad(t->out[0], t->in[0], &a->pool, b, e))
IMAGE_TASK(max_grad_task, a->k->pooling.max_grad(t->out[0], t->in[0], t->in[1], &a->pool, b, e))

static int finish(cpu_lower *c, image_arg *a, lw_task_fn *fn)
{
    if (!a)
        return LW_ENOMEM;
    lw_cpu_phase(c, fn, cpu_range_tasks(a->r));
    return 0;
}

int lw_cpu_lower_pad(cpu_lower *c)
{
    const lw_attr_pad *at = c->n->attr;
    lw_type x = cpu_in(c, 0), y = cpu_out(c, 0);
    image_arg *a = image_record(c, image_rows(y), row_floats(y));
    if (a) {
        a->pad = (lw_pad_shape){.h = x.dim[1], .w = x.dim[2], .c = x.dim[3]};
        for (int i = 0; i < 3; i++) {
            a->pad.lo[i] = at->lo[i];
            a->pad.hi[i] = at->hi[i];
        }
    }
    return finish(c, a, pad_task);
}

/* Subsample and upsample: ranges over the rows of `over`; h, w, c of `space`. */
static int lower_factor(cpu_lower *c, lw_type over, lw_type space, lw_task_fn *fn)
{
    image_arg *a = image_record(c, image_rows(over), row_floats(over));
    if (a) {
        set_space(a, space);
        a->factor = ((const lw_attr_factor *)c->n->attr)->k;
    }
    return finish(c, a, fn);
}

int lw_cpu_lower_subsample(cpu_lower *c)
{
    return lower_factor(c, cpu_out(c, 0), cpu_in(c, 0), sub_task);
}
int lw_cpu_lower_subsample_grad(cpu_lower *c)
{
    return lower_factor(c, cpu_out(c, 0), cpu_out(c, 0), sub_grad_task);
}
int lw_cpu_lower_upsample(cpu_lower *c)
{
    return lower_factor(c, cpu_in(c, 0), cpu_in(c, 0), up_task);
}
int lw_cpu_lower_upsample_grad(cpu_lower *c)
{
    return lower_factor(c, cpu_out(c, 0), cpu_out(c, 0), up_grad_task);
}

/* ---- patches --------------------------------------------------------------------------------- */

typedef struct patches_arg {
    cpu_range r;               /* of rows of patches */
    ptrdiff_t k, high, wide;   /* lines of a patch, rows of a picture, patches of a row */
    ptrdiff_t run, line, left; /* bytes of a patch's line, of the picture's, of zeros before that */
    ptrdiff_t lines, above;    /* of the picture, of zeros above it */
    bool back;
} patches_arg;

/* Runs of few bytes, a first layer's, are less than a call of memcpy. */
static inline void copy_run(char *to, const char *from, ptrdiff_t bytes)
{
    enum { FEW = 64 };
    if (bytes > FEW || bytes % 4) {
        memcpy(to, from, (size_t)bytes);
        return;
    }
    for (ptrdiff_t i = 0; i < bytes; i += 4)
        memcpy(to + i, from + i, 4);
}

/* The run that begins `at` bytes from the line on, which may not be all there is of it. */
static void copy_part(char *to, const char *line, ptrdiff_t at, const patches_arg *a)
{
    const ptrdiff_t from = LW_MIN(LW_MAX(at, 0), at + a->run),
                    end = LW_MAX(LW_MIN(at + a->run, a->line), from);
    memset(to, 0, (size_t)a->run);
    memcpy(to + (from - at), line + from, (size_t)(end - from));
}

/* A row of patches is k lines of the picture, `wide` runs each. */
static void patches_task(const lw_task *t)
{
    const patches_arg *a = t->arg;
    const ptrdiff_t all = a->k * a->wide * a->run;
    for (int64_t r = cpu_begin(a->r, t->index); r < cpu_end(a->r, t->index); r++)
        for (ptrdiff_t y = 0; y < a->k; y++) {
            const ptrdiff_t l = r % a->high * a->k + y - a->above;
            char *rows = (char *)(a->back ? t->in[0] : t->out[0]) + r * all + y * a->run;
            char *line = (char *)(a->back ? t->out[0] : t->in[0]) +
                         (r / a->high * a->lines + l) * a->line;
            for (ptrdiff_t x = 0; x < a->wide; x++, rows += a->k * a->run) {
                const ptrdiff_t at = x * a->run - a->left;
                if (a->back)
                    copy_run(line + at, rows, a->run);
                else if (l < 0 || l >= a->lines)
                    memset(rows, 0, (size_t)a->run);
                else if (at < 0 || at + a->run > a->line)
                    copy_part(rows, line, at, a);
                else
                    copy_run(rows, line + at, a->run);
            }
        }
}

int lw_cpu_lower_patches(cpu_lower *c)
{
    const lw_attr_patches *at = c->n->attr;
    const lw_type t = at->h ? cpu_out(c, 0) : cpu_in(c, 0); /* the picture */
    const ptrdiff_t pixel = t.dim[3] * (ptrdiff_t)lw_dtype_size(t.dtype);
    patches_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    *a = (patches_arg){.k = at->k,
                       .high = (t.dim[1] + at->pad[0] + at->pad[2]) / at->k,
                       .wide = (t.dim[2] + at->pad[1] + at->pad[3]) / at->k,
                       .run = at->k * pixel,
                       .line = t.dim[2] * pixel,
                       .left = at->pad[1] * pixel,
                       .lines = t.dim[1],
                       .above = at->pad[0],
                       .back = at->h != 0};
    a->r = cpu_split((int64_t)t.dim[0] * a->high, (int64_t)at->k * t.dim[2] * t.dim[3]);
    lw_cpu_phase(c, patches_task, cpu_range_tasks(a->r));
    return 0;
}

static lw_pooling_shape pool_shape(const lw_attr_pool *at, lw_type y)
{
    return (lw_pooling_shape){.h = at->h,
                              .w = at->w,
                              .c = y.dim[3],
                              .oh = y.dim[1],
                              .ow = y.dim[2],
                              .k = at->k,
                              .stride = at->stride,
                              .pad = at->pad,
                              .inside = at->inside};
}

int lw_cpu_lower_pool(cpu_lower *c)
{
    const lw_attr_pool *at = c->n->attr;
    lw_type y = cpu_out(c, 0);
    image_arg *a = image_record(c, image_rows(y), row_floats(y) * at->k * at->k);
    if (a) {
        a->pool = pool_shape(at, y);
        a->max = at->max;
    }
    return finish(c, a,
                  y.dtype == LW_BF16 ? max_bf16_task
                  : y.dtype == LW_U8 ? max_u8_task
                                     : pool_task);
}

int lw_cpu_lower_pool_grad(cpu_lower *c)
{
    const lw_attr_pool *at = c->n->attr;
    lw_type dx = cpu_out(c, 0);
    image_arg *a = at->max ? image_record(c, dx.dim[0], lw_type_count(dx) / dx.dim[0])
                           : image_record(c, image_rows(dx), row_floats(dx));
    if (a)
        a->pool = pool_shape(at, cpu_in(c, 0));
    return finish(c, a, at->max ? max_grad_task : avg_grad_task);
}
