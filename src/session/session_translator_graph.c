/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a translator, from one end to the other. */
#include "session/session_translator_private.h"

static lw_attr_pixels pixels_of(const lw_pixels *p, lw_dtype to)
{
    return (lw_attr_pixels){.form = (int32_t)p->form,
                            .matrix = (int32_t)p->matrix,
                            .full_range = p->full_range,
                            .w = (int32_t)p->w,
                            .h = (int32_t)p->h,
                            .to = (int32_t)to};
}

static lw_val through(const lw_network *n, lw_graph *g, const char *part, const char *tap, lw_val x)
{
    lw_taps taps;
    const char *up = lw_scope_part(g, part);
    lw_network_append(n, g, (lw_network_in){.x = x}, &taps);
    lw_scope_set(g, up);
    return lw_tap_find(&taps, tap);
}

/* A picture, or with an autoencoder a latent. */
static lw_val translate(lw_translator *t, lw_graph *g, lw_val x)
{
    if (t->coder.encoder)
        x = through(t->coder.encoder, g, "encoder", "latent", x);
    return t->net ? lw_translator_generate(t, g, x) : x;
}

static lw_val decode(const lw_translator *t, lw_graph *g, lw_val z)
{
    return t->coder.decoder ? through(t->coder.decoder, g, "decoder", "y", z) : z;
}

/* The frame, or where "own" is 1 and "given" 0 the picture that came of the last one: a state. */
static lw_val feed_back(lw_graph *g, lw_val x, lw_val *last)
{
    const lw_type one = lw_type_of(LW_F32, 1, 1);
    if (!lw_val_ok(x))
        return x;
    *last = lw_input(g, "last", lw_val_type(g, x));
    return lw_add(g, lw_mul(g, x, lw_input(g, "given", one)),
                  lw_mul(g, *last, lw_input(g, "own", one)));
}

static void keep_picture(lw_graph *g, lw_val y, lw_val last)
{
    if (!lw_val_ok(last))
        return;
    y = lw_ew2(g, LW_EW_max, y, lw_const_f32(g, -1.0f));
    y = lw_ew2(g, LW_EW_min, y, lw_const_f32(g, 1.0f));
    lw_graph_output_add(g, "picture", y, last);
}

/* A picture of the network's size as one of the result's. */
static lw_val as_result(const lw_translator *t, lw_graph *g, lw_val y)
{
    if (t->o.at_input)
        y = lw_framing_out(g, &t->framing, y);
    return lw_framing_resize(g, y, t->out_w, t->out_h);
}

static lw_val as_bytes(lw_graph *g, lw_val y, int32_t w, int32_t h)
{
    return lw_rgb_to_frame(g, y, (lw_attr_pixels){.form = LW_PIXELS_RGB, .w = w, .h = h});
}

static lw_val frame_input(const lw_translator *t, lw_graph *g, const char *name)
{
    return lw_input(g, name, lw_type_of(LW_U8, 2, 1, (int32_t)lw_pixels_bytes(&t->in)));
}

/* A frame as floats of the network's size. */
static lw_val fitted(const lw_translator *t, lw_graph *g, lw_val frame)
{
    return lw_framing_in(g, &t->framing, lw_frame_to_rgb(g, frame, pixels_of(&t->in, LW_F32)));
}

/* What lw_translator_given tells of, where it is not the result. x: the frame, fitted. */
static void keep_given(const lw_translator *t, lw_graph *g, lw_val x)
{
    if (t->o.undamaged)
        x = fitted(t, g, frame_input(t, g, "undamaged"));
    else if (!t->o.given || !(t->coder.encoder || t->net || t->o.feed_back))
        return;
    lw_graph_output_add(g, "given.rgb", as_bytes(g, as_result(t, g, x), t->out_w, t->out_h),
                        LW_NOVAL);
}

int lw_translator_build(lw_translator *t, lw_graph *g)
{
    lw_val frame = frame_input(t, g, "frame");
    if (!t->coder.encoder && !t->net && !t->o.feed_back && !t->o.beside && !t->o.undamaged &&
        lw_framing_same(&t->framing)) {
        lw_graph_output_add(g, "rgb", lw_frame_to_rgb(g, frame, pixels_of(&t->in, LW_U8)),
                            LW_NOVAL);
        return lw_graph_error(g);
    }
    const lw_val given = fitted(t, g, frame);
    lw_val x = given, last = LW_NOVAL;
    keep_given(t, g, given);
    if (t->o.feed_back)
        x = feed_back(g, x, &last);
    lw_val y = translate(t, g, x);
    if (t->o.beside_dev) {
        lw_graph_output_add(g, "latent", y, LW_NOVAL);
        return lw_graph_error(g);
    }
    y = decode(t, g, y);
    keep_picture(g, y, last);
    y = as_result(t, g, y);
    if (t->o.beside)
        y = lw_concat(g, as_result(t, g, given), y, 2);
    int32_t w, h;
    lw_translator_size(t, &w, &h);
    lw_graph_output_add(g, "rgb", as_bytes(g, y, w, h), LW_NOVAL);
    return lw_graph_error(g);
}

int lw_translator_build_back(lw_translator *t, lw_graph *g, lw_type latent)
{
    const lw_val y = as_result(t, g, decode(t, g, lw_input(g, "latent", latent)));
    lw_graph_output_add(g, "rgb", as_bytes(g, y, t->out_w, t->out_h), LW_NOVAL);
    return lw_graph_error(g);
}
