/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution and BatchNorm in inference form. gamma / sqrt(var + eps) is multiplied into the
 * convolution's weights by graph ops that depend on parameters only, so plans do it once, in their
 * prepare segment.
 */
#include "models/models_private.h"

#include <math.h>

typedef struct bn {
    lw_val scale, shift; /* [O]: y = x scale + shift */
} bn;

/* Inference form (Ioffe and Szegedy 2015): scale = gamma / sqrt(var + eps), shift = beta - mean
 * scale. */
static bn batch_norm(lw_builder *b, const char *name, int32_t o, float eps)
{
    lw_graph *g = b->g;
    lw_type t = lw_type_of(LW_F32, 1, o);
    const lw_init one = {LW_INIT_ONES, 0}, zero = {LW_INIT_ZEROS, 0};
    const char *up = lw_scope_push(g, name);
    lw_val gamma = lw_param(b, "weight", t, one), beta = lw_param(b, "bias", t, zero);
    lw_val mean = lw_param(b, "running_mean", t, zero), var = lw_param(b, "running_var", t, one);
    lw_scope_set(g, up);
    bn n;
    n.scale = lw_div(g, gamma, lw_ew1(g, LW_EW_sqrt, lw_add_f32(g, var, eps)));
    n.shift = lw_sub(g, beta, lw_mul(g, mean, n.scale));
    return n;
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
    const lw_init init = {LW_INIT_UNIFORM, how.bias ? bound : 0.1f},
                  of_bias = how.bias ? init : (lw_init){0};
    const char *up = lw_scope_push(g, conv);
    lw_val w = lw_param(b, "weight", lw_type_of(LW_F32, 4, o, how.kernel, how.kernel_w, c), init);
    lw_val bias = norm && !how.bias ? LW_NOVAL
                                    : lw_param(b, "bias", lw_type_of(LW_F32, 1, o), of_bias);
    bn n = {.shift = bias};
    lw_scope_set(g, up);
    if (norm) {
        n = batch_norm(b, norm, o, how.eps);
        if (how.bias)
            n.shift = lw_add(g, n.shift, lw_mul(g, bias, n.scale));
        w = lw_mul(g, w, lw_reshape(g, n.scale, lw_type_of(LW_F32, 2, o, 1)));
    }
    return how.depthwise ? lw_depthwise_op(g, x, w, n.shift, how.stride, pad)
                         : lw_conv2d_pad(g, x, w, n.shift, how.stride, pad);
}

lw_val lw_conv_bn(lw_builder *b, const char *conv, const char *norm, lw_val x, int32_t o, int k,
                  int stride)
{
    return lw_conv_bn_as(b, conv, norm, x, o,
                         (lw_conv_bn_opts){.kernel = k, .stride = stride, .eps = 1e-5f});
}
