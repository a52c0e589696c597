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

static lw_val translate(lw_translator *t, lw_graph *g, lw_val x)
{
    if (t->coder.encoder)
        x = through(t->coder.encoder, g, "encoder", "latent", x);
    if (t->net)
        x = lw_translator_generate(t, g, x);
    return t->coder.decoder ? through(t->coder.decoder, g, "decoder", "y", x) : x;
}

int lw_translator_build(lw_translator *t, lw_graph *g)
{
    lw_val frame = lw_input(g, "frame", lw_type_of(LW_U8, 2, 1, (int32_t)lw_pixels_bytes(&t->in)));
    if (!t->coder.encoder && !t->net && lw_framing_same(&t->framing)) {
        lw_graph_output_add(g, "rgb", lw_frame_to_rgb(g, frame, pixels_of(&t->in, LW_U8)),
                            LW_NOVAL);
        return lw_graph_error(g);
    }
    lw_val x = lw_frame_to_rgb(g, frame, pixels_of(&t->in, LW_F32));
    lw_val y = translate(t, g, lw_framing_in(g, &t->framing, x));
    if (t->o.at_input)
        y = lw_framing_out(g, &t->framing, y);
    y = lw_rgb_to_frame(g, y,
                        (lw_attr_pixels){.form = LW_PIXELS_RGB, .w = t->out_w, .h = t->out_h});
    lw_graph_output_add(g, "rgb", y, LW_NOVAL);
    return lw_graph_error(g);
}
