/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu-stress: a U-Net of width B on the picture and its time, one of half the width on what comes
 * out, and a block over that and the frame before.
 *
 *   block      four times: 3x3 convolution, BatchNorm in inference form, SiLU
 *   attend     tokens of all places: + attention of 16 heads (LayerNorm), + GELU layers (LayerNorm)
 *   U-Net      block at B; then max-pool, block, attend at 2 B, 4 B, 8 B; max-pool, block to 16 B,
 *              attend, block to 8 B; bilinear up, beside the map of the way down, block, four times
 */
#include "models/models_private.h"
#include "models/image/models_rehearsal_parts.h"

enum { LEVELS = 4, HEADS = 16, TIMES = 50 };

static lw_val block(lw_builder *b, const char *name, lw_val x, int32_t o)
{
    const char *up = lw_scope_push(b->g, name);
    for (int i = 0; i < 4; i++) {
        char conv[24], norm[24];
        snprintf(conv, sizeof conv, "conv_layers.%d", i);
        snprintf(norm, sizeof norm, "norms.%d", i);
        x = lw_silu(b->g, lw_conv_bn_as(b, conv, norm, x, o,
                                        (lw_conv_bn_opts){
                                            .kernel = 3, .stride = 1, .eps = 1e-5f, .bias = true}));
    }
    lw_scope_set(b->g, up);
    return x;
}

static lw_val attend(lw_builder *b, const char *name, lw_val x)
{
    lw_graph *g = b->g;
    lw_type t = lw_val_type(g, x);
    if (!lw_val_ok(x))
        return x;
    int32_t c = t.dim[3];
    const char *up = lw_scope_push(g, name);
    x = lw_rehearsal_tokens(g, x);
    lw_val h = lw_layer_norm(b, "norm1", x, 1e-5f, LW_NOVAL),
           q = lw_linear(b, "q_proj", h, c, true), k = lw_linear(b, "k_proj", h, c, true),
           v = lw_linear(b, "v_proj", h, c, true);
    h = lw_attention_places(
        g, (lw_val[]){q, k, v}, 3,
        &(lw_attr_attention){.heads = HEADS, .window = b->window, .width = t.dim[2]});
    x = lw_add(g, lw_linear(b, "out_proj", h, c, true), x);
    h = lw_linear(b, "ffn.0", lw_layer_norm(b, "norm2", x, 1e-5f, LW_NOVAL), 4 * c, true);
    x = lw_add(g, lw_linear(b, "ffn.2", lw_ew1(g, LW_EW_gelu, h), c, true), x);
    lw_scope_set(g, up);
    return lw_reshape(g, x, t);
}

/* Twice the sides, bilinear, as PyTorch without aligned corners. */
static lw_val larger(lw_graph *g, lw_val x)
{
    lw_type t = lw_val_type(g, x);
    return lw_resize(g, x,
                     (lw_attr_resize){.h = 2 * t.dim[1],
                                      .w = 2 * t.dim[2],
                                      .form = LW_RESAMPLE_TORCH,
                                      .filter = LW_FILTER_BILINEAR});
}

static lw_val unet(lw_builder *b, int which, lw_val x, int32_t base)
{
    lw_graph *g = b->g;
    lw_val map[LEVELS];
    char name[16];
    const char *up = lw_scope_pushf(g, "unets.%d", which);
    for (int i = 0; i < LEVELS; i++) {
        snprintf(name, sizeof name, "enc%d", i + 1);
        x = block(b, name, i ? lw_pool2d(g, x, 2, 2, 0, true) : x, base << i);
        snprintf(name, sizeof name, "attn%d", i);
        map[i] = x = i ? attend(b, name, x) : x;
    }
    x = block(b, "bottleneck.0", lw_pool2d(g, x, 2, 2, 0, true), 16 * base);
    x = block(b, "bottleneck.2", attend(b, "bottleneck.1", x), 8 * base);
    for (int i = LEVELS - 1; i >= 0; i--) {
        snprintf(name, sizeof name, "dec%d", i + 1);
        x = block(b, name, lw_concat(g, larger(g, x), map[i], 3), i ? base << (i - 1) : base);
    }
    x = lw_conv2d(b, "output", x, 3, (lw_conv_opts){.kernel = 1});
    lw_scope_set(g, up);
    return x;
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_graph *g = b->g;
    int32_t base = ((const lw_rehearsal *)arch)->base;
    lw_val x = unet(b, 0, lw_rehearsal_with_time(g, in.x, in.t, TIMES), base);
    x = lw_concat(g, unet(b, 1, x, base / 2), in.condition, 3);
    const char *up = lw_scope_push(g, "temporal_processor");
    x = block(b, "2", attend(b, "1", block(b, "0", x, base)), 3);
    lw_scope_set(g, up);
    lw_tap_add(out, "y", x);
}

static void describe(lw_network *n)
{
    lw_rehearsal_describe(n, 3); /* the frame before */
}

const lw_network_def lw_rehearsal_stress = {
    .name = "gpu-stress",
    .kind = "rehearsal",
    .arch_bytes = sizeof(lw_rehearsal),
    .describe = describe,
    .build = build,
};
