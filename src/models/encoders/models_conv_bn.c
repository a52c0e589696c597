/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution and BatchNorm in inference form. gamma / sqrt(var + eps) is multiplied into the
 * convolution's weights by graph ops that depend on parameters only, so plans do it once, in their
 * prepare segment.
 */
#include "models/models_private.h"

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
lw_val lw_conv_bn(lw_builder *b, const char *conv, const char *norm, lw_val x, int32_t o, int k,
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
