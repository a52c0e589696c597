/* SPDX-License-Identifier: Apache-2.0 */
/* The network of any model folder. */
#include <stdio.h>

#include "session/session_network.h"

/* ---- opening --------------------------------------------------------------------------------- */

static int open_encoder(lw_network *n, const lw_model_place *p)
{
    LW_TRY(lw_encoder_open_at(p, &n->encoder));
    n->kind = "encoder";
    n->name = n->encoder->name;
    n->store = n->encoder->store;
    n->channels = 3;
    n->image_size = n->encoder->kind == LW_ENCODER_OWN ? n->encoder->own.image_size : 0;
    return 0;
}

static int open_unet(lw_network *n)
{
    LW_TRY(lw_unet_load(n->dir, true, &n->unet, &n->store));
    n->kind = "unet";
    n->name = "UNet2DModel";
    n->channels = n->unet.in_channels;
    n->image_size = n->unet.image_size;
    return 0;
}

static int open_source(lw_network *n, const char *source, bool ema)
{
    LW_CLEANUP(lw_model_place_clear) lw_model_place p = {0};
    LW_TRY(lw_model_find(source, ema, &p));
    n->dir = lw_strdup(lw_str_c(&p.path));
    if (!n->dir)
        return LW_ENOMEM;
    bool unet = p.network && lw_str_eq(p.network, "UNet2DModel");
    LW_TRY(unet ? open_unet(n) : open_encoder(n, &p));
    n->config = lw_steal(&p.config);
    return lw_quantization_find(n->dir, &n->quant);
}

int lw_network_open(const char *source, bool ema, lw_network **out)
{
    LW_CLEANUP(lw_network_close) lw_network *n = lw_calloc(1, sizeof *n);
    if (!n)
        return LW_ENOMEM;
    LW_TRY(open_source(n, source, ema));
    for (int32_t i = 0; i < lw_store_count(n->store); i++)
        if (!lw_str_ends(lw_store_at(n->store, i)->name, "running_mean") &&
            !lw_str_ends(lw_store_at(n->store, i)->name, "running_var"))
            n->parameters += lw_store_at(n->store, i)->count;
    *out = lw_steal(&n);
    return 0;
}

void lw_network_close(lw_network **pp)
{
    lw_network *n = *pp;
    if (!n)
        return;
    if (n->encoder)
        lw_encoder_close(&n->encoder);
    else
        lw_store_free(&n->store);
    lw_quantization_free(&n->quant);
    lw_json_drop(&n->config);
    lw_free(&n->dir);
    lw_free(pp);
}

/* ---- building -------------------------------------------------------------------------------- */

/* Outputs a network has, of which some are wanted. */
typedef struct offer {
    lw_graph *g;
    const char *want;
    int seen, taken;
    lw_str names;
} offer;

static void offer_output(offer *o, const char *name, lw_val v)
{
    bool wanted = o->want ? lw_str_eq(o->want, "*") || lw_str_eq(o->want, name) : o->seen == 0;
    lw_str_addf(&o->names, "%s%s", o->seen++ ? ", " : "", name);
    if (wanted) {
        lw_graph_output_add(o->g, name, v, LW_NOVAL);
        o->taken++;
    }
}

int lw_network_train(lw_network *n)
{
    LW_CLEANUP(lw_store_free) lw_store *store = NULL;
    if (n->encoder)
        return lw_fail(LW_EUSAGE, "%s: only U-Nets have a training graph here", n->dir);
    LW_TRY(lw_store_new(false, &store));
    LW_TRY(lw_unet_declare(&n->unet, store));
    lw_store_free(&n->store);
    n->store = lw_steal(&store);
    n->training = true;
    return 0;
}

static int build_unet(const lw_network *n, offer *o, int32_t batch, int32_t h, int32_t w)
{
    const lw_unet_config *c = &n->unet;
    lw_graph *g = o->g;
    lw_builder b = {.g = g, .params = lw_store_params(n->store), .training = n->training};
    bool full = h == c->image_size && w == c->image_size;
    bool small = c->noise_h > 0 && h == c->noise_h && w == c->noise_w;
    if (!full && !small && c->noise_h > 0)
        return lw_fail(LW_ESHAPE, "%s: pictures of %dx%d, the model takes %dx%d or noise of %dx%d",
                       n->dir, (int)h, (int)w, (int)c->image_size, (int)c->image_size,
                       (int)c->noise_h, (int)c->noise_w);
    if (!full && !small)
        return lw_fail(LW_ESHAPE, "%s: pictures of %dx%d, the model takes %dx%d", n->dir, (int)h,
                       (int)w, (int)c->image_size, (int)c->image_size);
    lw_unet_in in = {.x = lw_input(g, "x", lw_type_of(LW_F32, 4, batch, h, w, c->in_channels)),
                     .t = lw_input(g, "t", lw_type_of(LW_F32, 1, batch))};
    if (c->classes > 0)
        in.classes = lw_input(g, "class", lw_type_of(LW_I32, 1, batch));
    if (c->latent_dim > 0)
        in.latent = lw_input(g, "latent", lw_type_of(LW_F32, 2, batch, c->latent_dim));
    if (n->training)
        b.rows = lw_input(g, "rows", lw_type_of(LW_I64, 1, batch));
    offer_output(o, "y", lw_unet(&b, c, in));
    return lw_graph_error(g);
}

static int build_encoder(const lw_network *n, offer *o, int32_t batch, int32_t h, int32_t w)
{
    lw_taps taps;
    lw_graph *g = o->g;
    if (n->image_size > 0 && (h != n->image_size || w != n->image_size))
        return lw_fail(LW_ESHAPE, "%s: pictures of %dx%d, the encoder takes %dx%d", n->dir, (int)h,
                       (int)w, (int)n->image_size, (int)n->image_size);
    lw_encoder_build(n->encoder, g,
                     lw_input(g, "x", lw_type_of(LW_F32, 4, batch, h, w, n->channels)), &taps);
    LW_TRY(lw_graph_error(g));
    for (int32_t i = 0; i < taps.n; i++)
        offer_output(o, taps.tap[i].name, taps.tap[i].val);
    return lw_graph_error(g);
}

int lw_network_build(const lw_network *n, lw_graph *g, int32_t batch, int32_t h, int32_t w,
                     const char *want)
{
    offer o = {.g = g, .want = want};
    int rc = n->encoder ? build_encoder(n, &o, batch, h, w) : build_unet(n, &o, batch, h, w);
    if (rc == 0 && o.taken == 0)
        rc = lw_fail(LW_EUSAGE, "%s has no output '%s': there are %s", n->dir, want,
                     lw_str_c(&o.names));
    lw_str_clear(&o.names);
    return rc;
}
