/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of one size and proportion as pictures of another. */
#include "session/session_translator_framing.h"

#include <math.h>

static int32_t side(double v, int32_t most)
{
    return (int32_t)fmin(fmax(lrint(v), 1), most);
}

static lw_framing_box centred(int32_t w, int32_t h, int32_t in_w, int32_t in_h)
{
    return (lw_framing_box){(in_w - w) / 2, (in_h - h) / 2, w, h};
}

lw_framing lw_framing_of(lw_frame_fit how, int32_t source_w, int32_t source_h, int32_t w, int32_t h)
{
    const double across = (double)w / source_w, down = (double)h / source_h;
    lw_framing f = {source_w, source_h, w, h, {0, 0, source_w, source_h}, {0, 0, w, h}};
    if (how == LW_FRAME_CROP) {
        const double scale = fmax(across, down);
        f.window = centred(side(w / scale, source_w), side(h / scale, source_h), source_w,
                           source_h);
    } else if (how == LW_FRAME_BORDER) {
        const double scale = fmin(across, down);
        f.inner = centred(side(source_w * scale, w), side(source_h * scale, h), w, h);
    }
    return f;
}

static bool is_whole(const lw_framing_box *b, int32_t w, int32_t h)
{
    return b->w == w && b->h == h;
}

bool lw_framing_same(const lw_framing *f)
{
    return is_whole(&f->window, f->source_w, f->source_h) && is_whole(&f->inner, f->w, f->h) &&
           f->source_w == f->w && f->source_h == f->h;
}

static lw_val cut(lw_graph *g, lw_val x, const lw_framing_box *b, int32_t w, int32_t h)
{
    if (is_whole(b, w, h))
        return x;
    return lw_pad(g, x, (const int[3]){-b->y, -b->x, 0},
                  (const int[3]){b->y + b->h - h, b->x + b->w - w, 0});
}

/* Antialiased where it becomes smaller; bilinear does not overshoot. */
lw_val lw_framing_resize(lw_graph *g, lw_val x, int32_t w, int32_t h)
{
    if (!lw_val_ok(x))
        return x;
    const lw_type t = lw_val_type(g, x);
    if (t.dim[1] == h && t.dim[2] == w)
        return x;
    return lw_resize(
        g, x,
        (lw_attr_resize){
            .h = h, .w = w, .form = LW_RESAMPLE_FLOAT_AA, .filter = LW_FILTER_BILINEAR});
}

/* Padding is with zeros, and black is -1. */
static lw_val frame_black(lw_graph *g, lw_val x, const lw_framing_box *b, int32_t w, int32_t h)
{
    if (is_whole(b, w, h))
        return x;
    x = lw_pad(g, lw_add_f32(g, x, 1.0f), (const int[3]){b->y, b->x, 0},
               (const int[3]){h - b->h - b->y, w - b->w - b->x, 0});
    return lw_add_f32(g, x, -1.0f);
}

lw_val lw_framing_in(lw_graph *g, const lw_framing *f, lw_val x)
{
    if (!lw_val_ok(x))
        return x;
    x = lw_framing_resize(g, cut(g, x, &f->window, f->source_w, f->source_h), f->inner.w,
                          f->inner.h);
    return frame_black(g, x, &f->inner, f->w, f->h);
}

lw_val lw_framing_out(lw_graph *g, const lw_framing *f, lw_val y)
{
    return lw_val_ok(y)
               ? lw_framing_resize(g, cut(g, y, &f->inner, f->w, f->h), f->window.w, f->window.h)
               : y;
}

void lw_framing_print(lw_str *s, const lw_framing *f)
{
    const lw_framing_box *w = &f->window, *i = &f->inner;
    lw_str_addf(s, "size: %dx%d", (int)f->source_w, (int)f->source_h);
    if (!is_whole(w, f->source_w, f->source_h))
        lw_str_addf(s, ", cropped to %dx%d at %d,%d", (int)w->w, (int)w->h, (int)w->x, (int)w->y);
    if (w->w != i->w || w->h != i->h)
        lw_str_addf(s, ", resized to %dx%d (floats, bilinear, antialiased)", (int)i->w, (int)i->h);
    if (!is_whole(i, f->w, f->h))
        lw_str_addf(s, ", in a black border at %d,%d", (int)i->x, (int)i->y);
    lw_str_addf(s, "; the network's pictures are %dx%d\n", (int)f->w, (int)f->h);
}
