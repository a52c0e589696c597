/* SPDX-License-Identifier: Apache-2.0 */
/* Frozen ResNets; BatchNorm becomes part of the convolution before it. */
#include "models/models.h"

static const float imagenet_mean[3] = {0.485f, 0.456f, 0.406f};
static const float imagenet_std[3] = {0.229f, 0.224f, 0.225f};

lw_val lw_imagenet_normalise(lw_graph *g, lw_val x)
{
    float scale[3], shift[3];
    if (!lw_val_ok(x) || lw_type_last(lw_val_type(g, x)) != 3)
        return lw_graph_fail(g, LW_ESHAPE, "an image encoder wants three channels");
    for (int i = 0; i < 3; i++) { /* ((x + 1) / 2 - mean) / std */
        scale[i] = (float)(0.5 / (double)imagenet_std[i]);
        shift[i] = (float)((0.5 - (double)imagenet_mean[i]) / (double)imagenet_std[i]);
    }
    lw_type three = lw_type_of(LW_F32, 1, 3);
    return lw_add(g, lw_mul(g, x, lw_const(g, three, scale)), lw_const(g, three, shift));
}

/* ---- convolution and BatchNorm --------------------------------------------------------------- */

typedef struct bn {
    lw_val scale, shift; /* [O]: y = x scale + shift */
} bn;

/* Inference form (Ioffe and Szegedy 2015): scale = gamma / sqrt(var + eps), shift = beta - mean
 * scale. */
static bn batch_norm(lw_builder *b, const char *name, int32_t o)
{
    lw_graph *g = b->g;
    lw_type t = lw_type_of(LW_F32, 1, o);
    const lw_init one = {LW_INIT_ONES, 0}, zero = {LW_INIT_ZEROS, 0};
    const char *up = lw_scope_push(g, name);
    lw_val gamma = lw_param(b, "weight", t, one), beta = lw_param(b, "bias", t, zero);
    lw_val mean = lw_param(b, "running_mean", t, zero), var = lw_param(b, "running_var", t, one);
    lw_scope_set(g, up);
    bn n;
    n.scale = lw_div(g, gamma, lw_ew1(g, LW_EW_sqrt, lw_add_f32(g, var, 1e-5f)));
    n.shift = lw_sub(g, beta, lw_mul(g, mean, n.scale));
    return n;
}

/* BN(conv(x)) = conv'(x) + shift with every output channel's weights scaled. */
static lw_val conv_bn(lw_builder *b, const char *conv, const char *norm, lw_val x, int32_t o, int k,
                      int stride)
{
    lw_graph *g = b->g;
    if (!lw_val_ok(x))
        return x;
    int32_t c = lw_type_last(lw_val_type(g, x));
    const char *up = lw_scope_push(g, conv);
    lw_val w = lw_param(b, "weight", lw_type_of(LW_F32, 4, o, k, k, c),
                        (lw_init){LW_INIT_UNIFORM, 0.1f});
    lw_scope_set(g, up);
    bn n = batch_norm(b, norm, o);
    w = lw_mul(g, w, lw_reshape(g, n.scale, lw_type_of(LW_F32, 2, o, 1)));
    return lw_conv2d_op(g, x, w, n.shift, stride, k / 2);
}

/* Option A (He et al. 2016): every second pixel, new channels are zeros on both sides. */
static lw_val shortcut_a(lw_graph *g, lw_val x, int32_t o)
{
    int32_t c = lw_type_last(lw_val_type(g, x));
    if (!lw_val_ok(x) || c == o)
        return x;
    int side = (o - c) / 2;
    return lw_pad(g, lw_subsample(g, x, 2), (const int[3]){0, 0, side}, (const int[3]){0, 0, side});
}

static lw_val cifar_block(lw_builder *b, lw_val x, int32_t o, int stride)
{
    lw_graph *g = b->g;
    lw_val h = lw_relu(g, conv_bn(b, "conv1", "bn1", x, o, 3, stride));
    h = conv_bn(b, "conv2", "bn2", h, o, 3, 1);
    return lw_relu(g, lw_add(g, h, shortcut_a(g, x, o)));
}

static lw_val torch_block(lw_builder *b, lw_val x, int32_t o, int stride)
{
    lw_graph *g = b->g;
    lw_val h = lw_relu(g, conv_bn(b, "conv1", "bn1", x, o, 3, stride));
    h = conv_bn(b, "conv2", "bn2", h, o, 3, 1);
    if (stride != 1)
        x = conv_bn(b, "downsample.0", "downsample.1", x, o, 1, stride);
    return lw_relu(g, lw_add(g, h, x));
}

typedef lw_val block_fn(lw_builder *b, lw_val x, int32_t o, int stride);

static lw_val stage(lw_builder *b, block_fn *block, int s, lw_val x, int32_t o, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const char *up = lw_scope_pushf(b->g, "layer%d.%d", s, i);
        x = block(b, x, o, i == 0 && s > 1 ? 2 : 1);
        lw_scope_set(b->g, up);
    }
    return x;
}

/* Stem map[0] and stages map[1 ..] at widths base, 2 base, ...; the mean of the last. */
static lw_val trunk(lw_builder *b, block_fn *block, lw_val x, int32_t base, int32_t stages,
                    int32_t n, lw_val *map)
{
    x = lw_imagenet_normalise(b->g, x);
    map[0] = lw_relu(b->g, conv_bn(b, "conv1", "bn1", x, base, 3, 1));
    for (int32_t s = 1; s <= stages; s++)
        map[s] = stage(b, block, s, map[s - 1], base << (s - 1), n);
    return lw_mean(b->g, map[stages], LW_OVER_MIDDLE);
}

void lw_resnet_cifar(lw_builder *b, int32_t n, lw_val x, lw_taps *out)
{
    lw_val map[4], pooled = trunk(b, cifar_block, x, 16, 3, n, map);
    lw_tap_add(out, "logits", lw_linear(b, "linear", pooled, 10, true));
    lw_tap_add(out, "pooled", pooled);
    lw_tap_add_maps(out, map, 4);
}

void lw_resnet18_cut(lw_builder *b, lw_val x, lw_taps *out)
{
    lw_val map[3], pooled = trunk(b, torch_block, x, 64, 2, 2, map);
    lw_tap_add(out, "pooled", pooled);
    lw_tap_add_maps(out, map, 3);
}
