/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution and BatchNorm. In inference form gamma / sqrt(var + eps) is multiplied into the
 * convolution's weights by graph ops that depend on parameters only, so plans do it once, in their
 * prepare segment. In training form it is a GroupNorm of one channel a group over n pictures that
 * lie above one another as one of n times the height: "ghost" batches (Hoffer et al. 2017) of a
 * fixed size, so that the batch may grow without changing what a picture is normalised with, and
 * several of them are normalised at once.
 */
#include "models/models_private.h"

#include <math.h>

typedef struct bn {
    lw_val scale, shift; /* [O]: y = x scale + shift */
} bn;

typedef struct bn_params {
    lw_val gamma, beta, mean, var; /* [O] */
} bn_params;

static bn_params declare(lw_builder *b, const char *name, int32_t o)
{
    lw_type t = lw_type_of(LW_F32, 1, o);
    const lw_init one = {LW_INIT_ONES, 0}, zero = {LW_INIT_ZEROS, 0};
    const char *up = lw_scope_push(b->g, name);
    bn_params p = {.gamma = lw_param(b, "weight", t, one), .beta = lw_param(b, "bias", t, zero)};
    p.mean = lw_param(b, "running_mean", t, zero);
    p.var = lw_param(b, "running_var", t, one);
    lw_scope_set(b->g, up);
    return p;
}

/* Inference form (Ioffe and Szegedy 2015): scale = gamma / sqrt(var + eps), shift = beta - mean
 * scale. */
static bn batch_norm(lw_builder *b, const char *name, int32_t o, float eps)
{
    lw_graph *g = b->g;
    bn_params p = declare(b, name, o);
    bn n;
    n.scale = lw_div(g, p.gamma, lw_ew1(g, LW_EW_sqrt, lw_add_f32(g, p.var, eps)));
    n.shift = lw_sub(g, p.beta, lw_mul(g, p.mean, n.scale));
    return n;
}

/* Training form, x [B,H,W,O]. */
static lw_val batch_norm_train(lw_builder *b, const char *name, lw_val x, float eps, lw_act act)
{
    lw_graph *g = b->g;
    if (!lw_val_ok(x))
        return x;
    lw_type t = lw_val_type(g, x), above = t;
    int32_t n = LW_MIN(LW_BATCH_NORM, t.dim[0]);
    while (t.dim[0] % n)
        n--;
    above.dim[0] = t.dim[0] / n;
    above.dim[1] = t.dim[1] * n;
    bn_params p = declare(b, name, t.dim[3]);
    lw_val y = lw_layer_done(b, name, LW_NOVAL, x);
    y = lw_group_norm_op(g, lw_reshape(g, y, above), p.gamma, p.beta, LW_NOVAL, LW_NOVAL, t.dim[3],
                         eps, act);
    return lw_reshape(g, y, t);
}

/* Top, left, bottom, right. */
static void find_pads(lw_conv_bn_opts how, lw_type x, int pad[4])
{
    for (int i = 0; i < 4; i++)
        pad[i] = how.valid ? 0 : (i % 2 ? how.kernel_w : how.kernel) / 2;
    for (int i = 0; i < 2 && how.same; i++)
        lw_conv_pads_same(x.dim[1 + i], i ? how.kernel_w : how.kernel, how.stride, &pad[i],
                          &pad[2 + i]);
}

static lw_val convolved(lw_graph *g, lw_val x, lw_val w, lw_val shift, lw_conv_bn_opts how,
                        const int pad[4])
{
    return how.depthwise ? lw_depthwise_op(g, x, w, shift, how.stride, pad)
                         : lw_conv2d_pad(g, x, w, shift, how.stride, pad);
}

/* BN(conv(x)) = conv'(x) + shift with every output channel's weights scaled. */
lw_val lw_conv_bn_as(lw_builder *b, const char *conv, const char *norm, lw_val x, int32_t o,
                     lw_conv_bn_opts how)
{
    lw_graph *g = b->g;
    if (!lw_val_ok(x))
        return x;
    lw_type t = lw_val_type(g, x);
    int32_t c = how.depthwise ? 1 : lw_type_last(t);
    int pad[4];
    how.kernel_w = how.kernel_w ? how.kernel_w : how.kernel;
    find_pads(how, t, pad);
    float bound = 1.0f / sqrtf((float)(c * how.kernel * how.kernel_w));
    const lw_init init = {LW_INIT_UNIFORM, how.bias || how.trained ? bound : 0.1f},
                  of_bias = how.bias ? init : (lw_init){0};
    const char *up = lw_scope_push(g, conv);
    lw_val w = lw_param(b, "weight", lw_type_of(LW_F32, 4, o, how.kernel, how.kernel_w, c), init);
    lw_val bias = norm && !how.bias ? LW_NOVAL
                                    : lw_param(b, "bias", lw_type_of(LW_F32, 1, o), of_bias);
    bn n = {.shift = bias};
    lw_scope_set(g, up);
    if (norm && b->training)
        return batch_norm_train(b, norm, convolved(g, x, w, bias, how, pad), how.eps, how.act);
    if (norm) {
        n = batch_norm(b, norm, o, how.eps);
        if (how.bias)
            n.shift = lw_add(g, n.shift, lw_mul(g, bias, n.scale));
        w = lw_mul(g, w, lw_reshape(g, n.scale, lw_type_of(LW_F32, 2, o, 1)));
    }
    lw_val y = convolved(g, x, w, n.shift, how, pad);
    return how.act == LW_ACT_RELU ? lw_relu(g, y) : y;
}

lw_val lw_conv_bn(lw_builder *b, const char *conv, const char *norm, lw_val x, int32_t o, int k,
                  int stride)
{
    return lw_conv_bn_as(b, conv, norm, x, o,
                         (lw_conv_bn_opts){.kernel = k, .stride = stride, .eps = 1e-5f});
}
