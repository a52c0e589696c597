/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of video and RGB: the kernels of family pixels, on bands of lines that share colours. */
#include "backend/cpu/cpu_private.h"

typedef struct pixels_arg {
    const lw_kernels *k;
    lw_pixels p;
    cpu_range bands;   /* of a frame */
    int64_t tasks;     /* of a frame */
    size_t frame, rgb; /* bytes of one, elements of one */
} pixels_arg;

/* Where a task lies: its frame, its bands. */
typedef struct part {
    size_t frame, rgb;
    int64_t begin, end;
} part;

static part part_of(const pixels_arg *a, int64_t task)
{
    size_t i = (size_t)(task / a->tasks);
    int64_t at = task % a->tasks;
    return (part){i * a->frame, i * a->rgb, cpu_begin(a->bands, at), cpu_end(a->bands, at)};
}

static void to_f32_task(const lw_task *t)
{
    const pixels_arg *a = t->arg;
    part at = part_of(a, t->index);
    a->k->pixels.to_f32((float *)t->out[0] + at.rgb, (const uint8_t *)t->in[0] + at.frame, &a->p,
                        at.begin, at.end);
}

static void to_u8_task(const lw_task *t)
{
    const pixels_arg *a = t->arg;
    part at = part_of(a, t->index);
    a->k->pixels.to_u8((uint8_t *)t->out[0] + at.rgb, (const uint8_t *)t->in[0] + at.frame, &a->p,
                       at.begin, at.end);
}

static void from_f32_task(const lw_task *t)
{
    const pixels_arg *a = t->arg;
    part at = part_of(a, t->index);
    a->k->pixels.from_f32((uint8_t *)t->out[0] + at.frame, (const float *)t->in[0] + at.rgb, &a->p,
                          at.begin, at.end);
}

static int lower(cpu_lower *c, lw_task_fn *fn)
{
    const lw_attr_pixels *at = c->n->attr;
    pixels_arg *a = lw_cpu_arg(c, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->k = c->k;
    lw_pixels_init(&a->p, (lw_pixels_form)at->form, (lw_pixels_matrix)at->matrix,
                   at->full_range != 0, at->w, at->h);
    a->frame = lw_pixels_bytes(&a->p);
    a->rgb = (size_t)at->w * (size_t)at->h * 3;
    a->bands = cpu_split(a->p.bands, (int64_t)a->rgb / a->p.bands);
    a->tasks = cpu_range_tasks(a->bands);
    lw_cpu_phase(c, fn, a->tasks * cpu_in(c, 0).dim[0]);
    return 0;
}

int lw_cpu_lower_frame_to_rgb(cpu_lower *c)
{
    return lower(c, cpu_out(c, 0).dtype == LW_U8 ? to_u8_task : to_f32_task);
}

int lw_cpu_lower_rgb_to_frame(cpu_lower *c)
{
    return lower(c, from_f32_task);
}
