/* SPDX-License-Identifier: Apache-2.0 */
/* One plan from the bytes of a frame to those of the network's picture. */
#include "session/session_translator.h"

#include <string.h>

#include "session/session_translator_framing.h"

struct lw_translator {
    lw_translator_opts o;
    lw_pixels in;
    lw_autoencoder coder; /* of latents, or the network itself */
    lw_framing fit;
    int32_t out_w, out_h;
    lw_forward *plan;
};

/* ---- which network, which size --------------------------------------------------------------- */

static int open_network(lw_translator *t)
{
    return lw_str_eq(t->o.model, "identity") ? 0 : lw_autoencoder_open(t->o.model, &t->coder);
}

/* The multiple that lies nearest to a side. */
static int32_t near(int32_t side, int32_t multiple)
{
    return LW_MAX((side + multiple / 2) / multiple, 1) * multiple;
}

static int choose_size(lw_translator *t)
{
    lw_translator_opts *o = &t->o;
    const int32_t w = (int32_t)t->in.w, h = (int32_t)t->in.h;
    const int32_t multiple = t->coder.encoder ? t->coder.shrink : 1;
    if (o->w == 0 && o->h == 0) {
        o->w = LW_MAX(w - w % multiple, multiple);
        o->h = LW_MAX(h - h % multiple, multiple);
    }
    if (o->w < 1 || o->h < 1 || (int64_t)o->w * o->h > (int64_t)1 << 26)
        return lw_fail(LW_EUSAGE, "pictures of %dx%d: sides are at least 1, pixels at most 2^26",
                       (int)o->w, (int)o->h);
    if (o->w % multiple || o->h % multiple)
        return lw_fail(
            LW_EUSAGE,
            "%s takes pictures whose sides are multiples of %d: %dx%d is nearest to %dx%d",
            o->model, (int)multiple, (int)near(o->w, multiple), (int)near(o->h, multiple),
            (int)o->w, (int)o->h);
    t->fit = lw_framing_of((lw_frame_fit)o->fit, w, h, o->w, o->h);
    t->out_w = o->at_input ? t->fit.window.w : o->w;
    t->out_h = o->at_input ? t->fit.window.h : o->h;
    return 0;
}

/* ---- the graph --------------------------------------------------------------------------------- */

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
    if (!t->coder.encoder)
        return x;
    x = through(t->coder.encoder, g, "encoder", "latent", x);
    return through(t->coder.decoder, g, "decoder", "y", x);
}

static int build(lw_translator *t, lw_graph *g)
{
    lw_val frame = lw_input(g, "frame", lw_type_of(LW_U8, 2, 1, (int32_t)lw_pixels_bytes(&t->in)));
    if (!t->coder.encoder && lw_framing_same(&t->fit)) {
        lw_graph_output_add(g, "rgb", lw_frame_to_rgb(g, frame, pixels_of(&t->in, LW_U8)),
                            LW_NOVAL);
        return lw_graph_error(g);
    }
    lw_val y = translate(
        t, g, lw_framing_in(g, &t->fit, lw_frame_to_rgb(g, frame, pixels_of(&t->in, LW_F32))));
    if (t->o.at_input)
        y = lw_framing_out(g, &t->fit, y);
    y = lw_rgb_to_frame(g, y,
                        (lw_attr_pixels){.form = LW_PIXELS_RGB, .w = t->out_w, .h = t->out_h});
    lw_graph_output_add(g, "rgb", y, LW_NOVAL);
    return lw_graph_error(g);
}

/* ---- making and running ------------------------------------------------------------------------ */

static int make(lw_translator *t, lw_device *dev)
{
    LW_CLEANUP(lw_graph_free) lw_graph *g = NULL;
    LW_TRY(open_network(t));
    LW_TRY(choose_size(t));
    LW_TRY(lw_graph_new(&g));
    LW_TRY(build(t, g));
    const lw_compile_opts o = {.opt = 1, .precision = (lw_num)t->o.precision};
    const char *name = t->coder.encoder ? t->coder.encoder->dir : "identity";
    return lw_forward_of(dev, &g, &o, LW_SLAB_PARAM, name, &t->plan);
}

int lw_translator_new(lw_device *dev, const lw_translator_opts *o, const lw_pixels *in,
                      lw_translator **out)
{
    LW_CLEANUP(lw_translator_free) lw_translator *t = lw_calloc(1, sizeof *t);
    if (!t)
        return LW_ENOMEM;
    t->o = *o;
    t->in = *in;
    LW_TRY(make(t, dev));
    *out = lw_steal(&t);
    return 0;
}

void lw_translator_free(lw_translator **pp)
{
    lw_translator *t = *pp;
    if (!t)
        return;
    lw_forward_free(&t->plan);
    lw_autoencoder_close(&t->coder);
    lw_free(pp);
}

void lw_translator_size(const lw_translator *t, int32_t *w, int32_t *h)
{
    *w = t->out_w;
    *h = t->out_h;
}

void lw_translator_network_size(const lw_translator *t, int32_t *w, int32_t *h)
{
    *w = t->fit.w;
    *h = t->fit.h;
}

lw_plan_info lw_translator_info(const lw_translator *t)
{
    return lw_forward_info(t->plan);
}

int lw_translator_run(lw_translator *t, const uint8_t *frame, uint8_t *rgb)
{
    memcpy(lw_forward_input(t->plan, "frame"), frame, lw_pixels_bytes(&t->in));
    LW_TRY(lw_forward_run(t->plan, NULL));
    memcpy(rgb, lw_forward_output(t->plan, "rgb"), (size_t)t->out_w * (size_t)t->out_h * 3);
    return 0;
}
