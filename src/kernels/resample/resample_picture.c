/* SPDX-License-Identifier: Apache-2.0 */
/* Both passes of a resize: across the lines that the second needs, then down. */
#include "kernels/resample/resample_picture.h"

#include <string.h>

int lw_resample_init(lw_resample *r, const lw_resample_spec *s)
{
    bool all = s->out_h == 0 && s->out_w == 0;
    ptrdiff_t out_h = all ? s->to_h : s->out_h, out_w = all ? s->to_w : s->out_w;
    if (s->h < 1 || s->w < 1 || s->c < 1 || out_h < 1 || out_w < 1 || s->y < 0 || s->x < 0 ||
        s->y > s->to_h - out_h || s->x > s->to_w - out_w)
        return lw_fail(LW_EUSAGE,
                       "cannot resize %tdx%td pixels of %td channels to %tdx%td and cut %tdx%td at "
                       "%td,%td out of it",
                       s->w, s->h, s->c, s->to_w, s->to_h, out_w, out_h, s->x, s->y);
    lw_resample made = {.u8 = lw_resample_is_u8(s->form), .w = s->w, .c = s->c};
    made.down_first = s->form == LW_RESAMPLE_PILLOW_13 &&
                      s->h - s->to_h > LW_MAX(0, 2 * (s->w - s->to_w));
    lw_resample_axis_spec across = {s->form, s->filter, s->w, s->to_w, s->x, out_w, 0.0};
    lw_resample_axis_spec down = {s->form, s->filter, s->h, s->to_h, s->y, out_h, 0.0};
    LW_TRY(lw_resample_axis_init(&made.across, &across));
    int rc = lw_resample_axis_init(&made.down, &down);
    if (rc < 0)
        lw_resample_clear(&made);
    else
        *r = made;
    return rc;
}

void lw_resample_clear(lw_resample *r)
{
    lw_resample_axis_clear(&r->across);
    lw_resample_axis_clear(&r->down);
}

/* Elements of a line of the picture between the passes, and its lines. */
static ptrdiff_t between_line(const lw_resample *r)
{
    return (r->down_first ? r->across.span : r->across.n) * r->c;
}
static ptrdiff_t between_lines(const lw_resample *r)
{
    return r->down_first ? r->down.n : r->down.span;
}

static size_t element(const lw_resample *r)
{
    return r->u8 ? sizeof(uint8_t) : sizeof(float);
}

/* Bytes of that picture: none where there are not two passes. */
static size_t between(const lw_resample *r)
{
    if (r->across.copy || r->down.copy)
        return 0;
    size_t bytes = (size_t)(between_line(r) * between_lines(r)) * element(r);
    return LW_ROUND_UP(bytes, 64);
}

size_t lw_resample_scratch(const lw_resample *r)
{
    size_t columns = r->across.copy ? 0 : lw_resample_across_scratch(&r->across, r->c, element(r));
    return between(r) + columns;
}

typedef struct passes {
    const lw_resample *r;
    lw_resample_across_fn *across;
    lw_resample_down_fn *down;
    void *columns; /* scratch of across */
} passes;

static void go_across(const passes *p, void *y, const void *x, ptrdiff_t x_pitch, ptrdiff_t lines)
{
    const lw_resample *r = p->r;
    lw_resample_pass pass = {&r->across, r->c, x_pitch, r->across.n * r->c};
    p->across(y, x, &pass, 0, lines, p->columns);
}

static void go_down(const passes *p, void *y, const void *x, ptrdiff_t x_pitch, ptrdiff_t line)
{
    lw_resample_pass pass = {&p->r->down, line, x_pitch, line};
    p->down(y, x, &pass, 0, p->r->down.n);
}

static void copy_lines(void *y, const void *x, size_t line, size_t pitch, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++)
        memcpy((char *)y + (size_t)i * line, (const char *)x + (size_t)i * pitch, line);
}

static void run(const passes *p, void *y, const void *x, void *between)
{
    const lw_resample *r = p->r;
    size_t size = element(r);
    ptrdiff_t pitch = r->w * r->c, line = r->across.n * r->c, part = between_line(r);
    x = (const char *)x + (size_t)(r->down.first * pitch + r->across.first * r->c) * size;
    if (r->across.copy && r->down.copy) {
        copy_lines(y, x, (size_t)line * size, (size_t)pitch * size, r->down.n);
    } else if (r->across.copy) {
        go_down(p, y, x, pitch, line);
    } else if (r->down.copy) {
        go_across(p, y, x, pitch, r->down.n);
    } else if (r->down_first) {
        go_down(p, between, x, pitch, part);
        go_across(p, y, between, part, r->down.n);
    } else {
        go_across(p, between, x, pitch, r->down.span);
        go_down(p, y, between, part, line);
    }
}

void lw_resample_u8(const struct lw_resample_kernels *k, const lw_resample *r, uint8_t *y,
                    const uint8_t *x, void *scratch)
{
    LW_ASSERT(r->u8, "a resize of floats");
    run(&(passes){r, k->across_u8, k->down_u8, (char *)scratch + between(r)}, y, x, scratch);
}

void lw_resample_f32(const struct lw_resample_kernels *k, const lw_resample *r, float *y,
                     const float *x, void *scratch)
{
    LW_ASSERT(!r->u8, "a resize of bytes");
    run(&(passes){r, k->across_f32, k->down_f32, (char *)scratch + between(r)}, y, x, scratch);
}
