/* SPDX-License-Identifier: Apache-2.0 */
/* What a network's graph does to pictures before build sees them: their size and their numbers. */
#include <stdio.h>
#include <string.h>

#include "models/models_private.h"

bool lw_network_resizes(const lw_network *n)
{
    return lw_network_sized(n) && !lw_resample_is_u8(n->preparation.form);
}

const lw_preparation *lw_network_preparation(const lw_network *n)
{
    return lw_network_sized(n) && !lw_network_resizes(n) ? &n->preparation : NULL;
}

lw_data_opts lw_network_data(const lw_network *n, int32_t image_size)
{
    const lw_preparation *p = lw_network_preparation(n);
    bool whole = !image_size && lw_network_resizes(n);
    return (lw_data_opts){.preparation = p,
                          .whole = whole,
                          .channels = n->channels,
                          .image_size = p || whole   ? 0
                                        : image_size ? image_size
                                                     : n->image_size};
}

/* ((x + 1) 127.5 scale - mean) / std */
static lw_val normalise(lw_graph *g, const lw_preparation *p, lw_val x)
{
    float scale[LW_MAX_CHANNELS], shift[LW_MAX_CHANNELS];
    if (!lw_val_ok(x) || lw_type_last(lw_val_type(g, x)) != p->channels)
        return lw_graph_fail(g, LW_ESHAPE, "an image encoder wants %d channels", (int)p->channels);
    for (int32_t i = 0; i < p->channels; i++) {
        double half = 127.5 * p->scale, deviation = (double)p->std[i];
        scale[i] = (float)(half / deviation);
        shift[i] = (float)((half - (double)p->mean[i]) / deviation);
    }
    lw_type each = lw_type_of(LW_F32, 1, p->channels);
    return lw_add(g, lw_mul(g, x, lw_const(g, each, scale)), lw_const(g, each, shift));
}

static lw_val resize(lw_graph *g, lw_val x, int32_t h, int32_t w, int32_t form, int32_t filter)
{
    const char *up = lw_scope_part(g, "resize");
    x = lw_resize(g, x, (lw_attr_resize){.h = h, .w = w, .form = form, .filter = filter});
    lw_scope_set(g, up);
    return x;
}

/* The pixels of a preparation in floats. A filter that overshoots is cut off where bytes end, as
 * clean-fid does. */
static lw_val frame(lw_graph *g, const lw_preparation *p, lw_val x)
{
    if (!lw_val_ok(x) || lw_val_type(g, x).rank != 4)
        return x;
    lw_type t = lw_val_type(g, x);
    lw_frame f = lw_preparation_frame(p, t.dim[1], t.dim[2]);
    if (f.keep[0] < p->height || f.keep[1] < p->width)
        return lw_graph_fail(g, LW_EUNSUPPORTED, "pictures that are padded are resized as bytes");
    int lo[3] = {-f.skip[0], -f.skip[1], 0}, hi[3] = {0};
    for (int i = 0; i < 2; i++)
        hi[i] = f.keep[i] + f.skip[i] - (int)f.to[i];
    x = resize(g, x, (int32_t)f.to[0], (int32_t)f.to[1], p->form, p->filter);
    if (lo[0] || lo[1] || hi[0] || hi[1])
        x = lw_pad(g, x, lo, hi);
    if (p->filter == LW_FILTER_BILINEAR || p->filter == LW_FILTER_BOX)
        return x;
    x = lw_ew2(g, LW_EW_max, x, lw_const_f32(g, -1.0f));
    return lw_ew2(g, LW_EW_min, x, lw_const_f32(g, 1.0f));
}

static lw_val fit(lw_graph *g, const lw_network_fit *f, lw_val x)
{
    if (!lw_val_ok(x) || f->h == 0 || lw_val_type(g, x).rank != 4)
        return x;
    lw_type t = lw_val_type(g, x);
    return t.dim[1] == f->h && t.dim[2] == f->w ? x : resize(g, x, f->h, f->w, f->form, f->filter);
}

lw_val lw_network_see(const lw_network *n, lw_graph *g, lw_val x)
{
    x = lw_network_gray(n, g, x);
    if (lw_network_resizes(n))
        x = frame(g, &n->preparation, x);
    if (n->prepared)
        x = normalise(g, &n->preparation, x);
    return fit(g, &n->fit, x); /* behind the numbers: the same, of fewer pixels */
}

/* ---- other sizes ----------------------------------------------------------------------------- */

void lw_network_fit_own(lw_network *n)
{
    const lw_preparation *p = &n->preparation;
    n->fit = (lw_network_fit){p->height, p->width, LW_RESAMPLE_TORCH, LW_FILTER_BILINEAR};
    if (lw_network_resizes(n)) {
        n->fit.form = p->form;
        n->fit.filter = p->filter;
    }
}

/* One whose preparation is in the graph. */
static int fit_prepared(lw_network *n, int32_t size, int32_t resize)
{
    lw_preparation *p = &n->preparation;
    if (resize != 0)
        return lw_fail(LW_EUSAGE,
                       "--encoder-resize: %s says itself how its pictures are resized (%s)",
                       n->name, lw_resample_form_name[p->form]);
    if (size > 0)
        p->resize_h = p->resize_w = p->height = p->width = size;
    lw_network_fit_own(n);
    return 0;
}

int lw_encoder_fit(lw_network *n, int32_t size, int32_t resize)
{
    /* where describe gave its preparation the only size it takes */
    if (size > 0 && size != n->image_size && n->prepared && n->image_size > 0 &&
        n->image_size == n->preparation.height)
        return lw_fail(LW_EUSAGE, "--encoder-size %d: %s takes pictures of %dx%d", (int)size,
                       n->dir, (int)n->image_size, (int)n->image_size);
    if (lw_network_resizes(n))
        return fit_prepared(n, size, resize);
    if (size > 0)
        n->fit.h = n->fit.w = size;
    n->fit.filter = resize % 2 ? LW_FILTER_BICUBIC : LW_FILTER_BILINEAR;
    n->fit.form = resize >= 2 ? LW_RESAMPLE_FLOAT_AA : LW_RESAMPLE_TORCH;
    return 0;
}

const char *lw_encoder_fit_text(const lw_network *n, int32_t h, int32_t w, char buf[64])
{
    const lw_network_fit *f = &n->fit;
    const char *more = f->form == LW_RESAMPLE_FLOAT_AA       ? "-antialias"
                       : f->form == LW_RESAMPLE_TF_INCEPTION ? ", as tf-inception"
                                                             : "";
    buf[0] = '\0';
    if (f->h > 0 && (f->h != h || f->w != w))
        snprintf(buf, 64, "resized to %dx%d (%s%s)", (int)f->h, (int)f->w,
                 lw_filter_name[f->filter], more);
    return buf;
}

/* ---- another resize -------------------------------------------------------------------------- */

int lw_encoder_resize(lw_network *n, const char *name)
{
    lw_preparation p = n->preparation;
    LW_CLEANUP(lw_str_clear) lw_str have = {0};
    int form = 0;
    while (form < LW_RESAMPLE_FORMS && !lw_str_eq(lw_resample_form_name[form], name))
        form++;
    for (int i = 0; i < LW_RESAMPLE_FORMS && form == LW_RESAMPLE_FORMS; i++)
        lw_str_addf(&have, "%s%s", i ? ", " : "", lw_resample_form_name[i]);
    if (form == LW_RESAMPLE_FORMS)
        return lw_fail(LW_EUSAGE, "no resize '%s': there are %s", name, lw_str_c(&have));
    if (!n->prepared || p.height == 0)
        return lw_fail(LW_EUSAGE, "resize %s: %s takes pictures as they are", name, n->name);
    p.form = (lw_resample_form)form;
    if (n->def->resize)
        n->def->resize(n->arch, &p);
    if (!lw_resample_has(p.form, p.filter))
        return lw_fail(LW_EUSAGE, "resize %s has no filter '%s', which %s wants", name,
                       lw_filter_name[p.filter], n->name);
    n->preparation = p;
    lw_network_fit_own(n);
    return 0;
}
