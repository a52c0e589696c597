/* SPDX-License-Identifier: Apache-2.0 */
/* Leeway's encoder: a small ResNet with a reconstruction decoder and a class head. */
#include "models/models_private.h"

#include <stdio.h>

static const float encoder_eps = 1e-6f;

int32_t lw_norm_groups(int32_t most, int32_t channels)
{
    int32_t g = LW_MIN(most, channels);
    while (channels % g)
        g--;
    return g;
}

static lw_val norm(lw_builder *b, const lw_encoder_config *c, const char *name, lw_val x,
                   lw_act act)
{
    if (!lw_val_ok(x))
        return x;
    int32_t width = lw_type_last(lw_val_type(b->g, x));
    return lw_group_norm(b, name, x,
                         (lw_norm_opts){.groups = lw_norm_groups(c->norm_groups, width),
                                        .eps = encoder_eps,
                                        .act = act});
}

/* A convolution of scope conv_name without a bias and the norm behind it. */
typedef struct layer {
    const char *conv, *norm;
    int kernel, stride;
    lw_act act;
} layer;

static lw_val conv_norm(lw_builder *b, const lw_encoder_config *c, lw_val x, int32_t o, layer l)
{
    if (c->batch_norm)
        return lw_conv_bn_as(b, l.conv, l.norm, x, o,
                             (lw_conv_bn_opts){.kernel = l.kernel,
                                               .stride = l.stride,
                                               .trained = true,
                                               .eps = 1e-5f,
                                               .act = l.act});
    x = lw_conv2d(
        b, l.conv, x, o,
        (lw_conv_opts){
            .kernel = l.kernel, .stride = l.stride, .pad = l.kernel / 2, .no_bias = true});
    return norm(b, c, l.norm, x, l.act);
}

static lw_val block(lw_builder *b, const lw_encoder_config *c, lw_val x, int32_t o, int stride)
{
    if (!lw_val_ok(x))
        return x;
    bool changes = stride != 1 || lw_type_last(lw_val_type(b->g, x)) != o;
    lw_val h = conv_norm(b, c, x, o, (layer){"conv1", "norm1", 3, stride, LW_ACT_RELU});
    h = conv_norm(b, c, h, o, (layer){"conv2", "norm2", 3, 1, LW_ACT_NONE});
    if (changes)
        x = conv_norm(b, c, x, o, (layer){"downsample.0", "downsample.1", 1, stride, LW_ACT_NONE});
    return lw_relu(b->g, lw_add(b->g, h, x));
}

static bool size_fits(const lw_encoder_config *c, lw_type t)
{
    int32_t cell = 1 << (c->stages - 1);
    return t.rank == 4 && t.dim[3] == c->channels && t.dim[1] % cell == 0 && t.dim[2] % cell == 0;
}

void lw_encoder_net(lw_builder *b, const lw_encoder_config *c, lw_val x, lw_taps *out)
{
    lw_graph *g = b->g;
    lw_val map[LW_MAX_STAGES + 1];
    if (!lw_val_ok(x))
        return;
    if (!size_fits(c, lw_val_type(g, x))) {
        lw_graph_fail(g, LW_ESHAPE,
                      "this encoder wants images [B,H,W,%d] with H and W multiples of %d",
                      (int)c->channels, 1 << (c->stages - 1));
        return;
    }
    map[0] = conv_norm(b, c, x, c->width, (layer){"conv1", "norm1", 3, 1, LW_ACT_RELU});
    for (int32_t s = 1; s <= c->stages; s++) {
        lw_val h = map[s - 1];
        for (int32_t i = 0; i < c->blocks; i++) {
            const char *up = lw_scope_pushf(g, "layer%d.%d", s, i);
            h = lw_layer_done(b, "", h,
                              block(b, c, h, c->width << (s - 1), i == 0 && s > 1 ? 2 : 1));
            lw_scope_set(g, up);
        }
        map[s] = h;
    }
    lw_val pooled = lw_mean(g, map[c->stages], LW_OVER_MIDDLE);
    if (c->classes > 0)
        lw_tap_add(
            out, "logits",
            lw_linear(b, "fc", lw_layer_done(b, "head", LW_NOVAL, pooled), c->classes, true));
    lw_tap_add(out, "pooled", pooled);
    lw_tap_add_maps(out, map, c->stages + 1);
}

static lw_val map_of(const lw_taps *taps, int32_t stage)
{
    char name[16];
    snprintf(name, sizeof name, "s%d", stage);
    return lw_tap_find(taps, name);
}

lw_val lw_encoder_decode(lw_builder *b, const lw_encoder_config *c, const lw_taps *taps)
{
    lw_graph *g = b->g;
    lw_val h = map_of(taps, c->stages);
    if (!c->decoder)
        return lw_graph_fail(g, LW_EUSAGE, "this encoder has no decoder");
    for (int32_t i = 0; i + 1 < c->stages; i++) {
        int32_t s = c->stages - 1 - i; /* the stage whose resolution is reached */
        char name[16];
        lw_conv_opts o = {.kernel = 3, .pad = 1};
        const char *up = lw_scope_push(g, "decoder");
        snprintf(name, sizeof name, "%d", i);
        h = lw_concat(g, lw_upsample(g, h, 2), map_of(taps, s), 3);
        h = lw_relu(g, lw_conv2d(b, name, h, c->width << (s - 1), o));
        lw_scope_set(g, up);
    }
    return lw_conv2d(b, "head", h, c->channels, (lw_conv_opts){.kernel = 1});
}

lw_val lw_encoder_predict(lw_builder *b, const lw_encoder_config *c, const lw_taps *taps, int32_t i)
{
    lw_graph *g = b->g;
    const lw_predicted *p = &c->predicted[i];
    lw_val x = p->stage < 0 ? lw_tap_find(taps, "pooled") : map_of(taps, p->stage);
    char name[24];
    if (!lw_val_ok(x))
        return lw_graph_fail(g, LW_ESHAPE, "this encoder has no map to predict from");
    lw_type t = lw_val_type(g, x);
    int32_t places = t.rank == 4 ? t.dim[1] * t.dim[2] : 1;
    x = lw_reshape(g, x, lw_type_of(LW_F32, 3, t.dim[0], places, lw_type_last(t)));
    snprintf(name, sizeof name, "predict.%d", (int)i);
    return lw_linear(b, name, x, p->width, true);
}

lw_val lw_encoder_project(lw_builder *b, const lw_encoder_config *c, const lw_taps *taps)
{
    lw_val x = lw_tap_find(taps, "pooled");
    if (!lw_val_ok(x))
        return lw_graph_fail(b->g, LW_ESHAPE, "this encoder has no pooled feature to project");
    int32_t width = lw_type_last(lw_val_type(b->g, x));
    x = lw_relu(b->g, lw_linear(b, "project.0", x, width, true));
    return lw_linear(b, "project.1", x, c->projection, true);
}

/* ---- masked reconstruction ------------------------------------------------------------------- */

lw_val lw_mae_mask(lw_builder *b, int32_t batch, int32_t size, int32_t cell, lw_val p)
{
    lw_graph *g = b->g;
    if (size % cell)
        return lw_graph_fail(g, LW_ESHAPE, "masked cells are %dx%d: a side of %d is no multiple",
                             (int)cell, (int)cell, (int)size);
    lw_type cells = lw_type_of(LW_F32, 4, batch, size / cell, size / cell, 1);
    lw_val u = lw_random(g, "mae.mask", LW_RANDOM_UNIFORM, 0, cells, b->rows);
    lw_val hidden = lw_ew1(g, LW_EW_step, lw_add(g, lw_ew1(g, LW_EW_neg, u), p)); /* u < p */
    return lw_upsample(g, hidden, cell);
}

/* mask [B,H,W,1] over the channels of x. */
static lw_val per_channel(lw_graph *g, lw_val mask, lw_val x)
{
    return lw_val_ok(x) ? lw_broadcast(g, mask, lw_val_type(g, x)) : x;
}

lw_val lw_mae_hide(lw_graph *g, lw_val x, lw_val mask)
{
    return lw_sub(g, x, lw_mul(g, x, per_channel(g, mask, x)));
}

lw_val lw_mae_loss(lw_graph *g, lw_val rec, lw_val x, lw_val mask)
{
    lw_val err = lw_mul(g, lw_sqr(g, lw_sub(g, rec, x)), per_channel(g, mask, x));
    lw_val hidden = lw_add_f32(g, lw_sum(g, mask, LW_OVER_BATCH), 1e-8f);
    return lw_div(g, lw_sum(g, err, LW_OVER_BATCH), hidden);
}
