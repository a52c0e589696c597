/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu-intensive-lsd: the noise in a picture, given the frame it is made for and the frame before.
 *
 *   block   SiLU(GroupNorm), 3x3, SiLU(GroupNorm), 3x3, + attention of 8 heads over all places
 *           (GroupNorm); + what went in
 *   down    3 blocks at B, 2 B, 4 B, each + a projection of the time, then 3x3 of stride 2
 *   middle  6 blocks at 8 B
 *   up      transposed 4x4 of stride 2, beside the map of the way down, 3 blocks at 8 B, 4 B, 2 B
 *
 * Repaired, because as published its shapes do not fit (docs/live.md): 9 channels go in where it
 * declares 6; the time, 4 B wide, is projected to each level's width; the second and third transposed
 * convolution and the end take the widths that reach them.
 */
#include "models/models.h"
#include "models/image/models_rehearsal_parts.h"

#include <math.h>
#include <stdio.h>

enum { LEVELS = 3, BLOCKS = 3 };

/* Heads and groups of c channels: 8, or the largest number below that divides them. */
static int32_t parts_of(int32_t c)
{
    int32_t n = 8;
    while (c % n)
        n--;
    return n;
}

static lw_val grouped(lw_builder *b, const char *name, lw_val x, lw_act act)
{
    if (!lw_val_ok(x))
        return x;
    int32_t groups = parts_of(lw_type_last(lw_val_type(b->g, x)));
    return lw_group_norm(b, name, x, (lw_norm_opts){.groups = groups, .eps = 1e-5f, .act = act});
}

static lw_val attend(lw_builder *b, lw_val x)
{
    lw_graph *g = b->g;
    lw_type t = lw_val_type(g, x);
    if (!lw_val_ok(x))
        return x;
    const char *up = lw_scope_push(g, "attention");
    lw_val h = lw_rehearsal_tokens(g, grouped(b, "norm", x, LW_ACT_NONE));
    const char *in = lw_scope_push(g, "attention");
    h = lw_linear(b, "qkv", h, 3 * t.dim[3], false);
    h = lw_attention_places(
        g, &h, 1,
        &(lw_attr_attention){.heads = parts_of(t.dim[3]), .window = b->window, .width = t.dim[2]});
    h = lw_linear(b, "proj", h, t.dim[3], true);
    lw_scope_set(g, in);
    lw_scope_set(g, up);
    return lw_add(g, lw_reshape(g, h, t), x);
}

static lw_val block(lw_builder *b, const char *level, int i, lw_val x)
{
    int32_t c = lw_type_last(lw_val_type(b->g, x));
    if (!lw_val_ok(x))
        return x;
    const char *up = lw_scope_pushf(b->g, "%s.%d", level, i);
    lw_val h = lw_rehearsal_conv3(b, "conv1", grouped(b, "norm1", x, LW_ACT_SILU), c, 1);
    h = lw_rehearsal_conv3(b, "conv2", grouped(b, "norm2", h, LW_ACT_SILU), c, 1);
    h = attend(b, h);
    lw_scope_set(b->g, up);
    return lw_add(b->g, h, x);
}

static lw_val blocks(lw_builder *b, const char *level, int n, lw_val x)
{
    for (int i = 0; i < n; i++)
        x = block(b, level, i, x);
    return x;
}

/* sin | cos of t times 10000^(-i / (B / 2 - 1)), through two layers: [batch, 4 B]. */
static lw_val embed(lw_builder *b, lw_val t, int32_t base)
{
    lw_graph *g = b->g;
    float frequency[1024];
    int32_t half = base / 2;
    if (!lw_val_ok(t))
        return t;
    for (int32_t i = 0; i < half; i++)
        frequency[i] = (float)exp(-log(10000.0) * i / (half - 1));
    int32_t batch = lw_val_type(g, t).dim[0];
    lw_val f = lw_broadcast(g, lw_const(g, lw_type_of(LW_F32, 1, half), frequency),
                            lw_type_of(LW_F32, 2, batch, half));
    t = lw_broadcast(g, lw_reshape(g, t, lw_type_of(LW_F32, 2, batch, 1)),
                     lw_type_of(LW_F32, 2, batch, half));
    lw_val angle = lw_mul(g, t, f);
    lw_val e = lw_concat(g, lw_ew1(g, LW_EW_sin, angle), lw_ew1(g, LW_EW_cos, angle), 1);
    e = lw_silu(g, lw_linear(b, "time_embed.0", e, 4 * base, true));
    return lw_linear(b, "time_embed.2", e, 4 * base, true);
}

/* + the time, the same at every place: a row for each picture. */
static lw_val timed(lw_builder *b, int level, lw_val x, lw_val time)
{
    char name[16];
    snprintf(name, sizeof name, "time_proj%d", level);
    return lw_add(b->g, x, lw_linear(b, name, time, lw_type_last(lw_val_type(b->g, x)), true));
}

static void build(lw_builder *b, const void *arch, lw_network_in in, lw_taps *out)
{
    lw_graph *g = b->g;
    int32_t base = ((const lw_rehearsal *)arch)->base;
    lw_val map[LEVELS], time = embed(b, in.t, base), x = lw_concat(g, in.x, in.condition, 3);
    char name[16];
    x = lw_rehearsal_conv3(b, "enc_conv_in", x, base, 1);
    for (int i = 0; i < LEVELS && lw_val_ok(x); i++) {
        map[i] = x;
        snprintf(name, sizeof name, "enc_level%d", i + 1);
        x = timed(b, i + 1, blocks(b, name, BLOCKS, x), time);
        snprintf(name, sizeof name, "enc_down%d", i + 1);
        x = lw_rehearsal_conv3(b, name, x, base << (i + 1), 2);
    }
    x = blocks(b, "bottleneck", 2 * BLOCKS, x);
    for (int i = LEVELS - 1; i >= 0 && lw_val_ok(x); i--) {
        snprintf(name, sizeof name, "dec_up%d", i + 1);
        x = lw_concat(g, lw_rehearsal_up(b, name, x, base << i), map[i], 3);
        snprintf(name, sizeof name, "dec_level%d", i + 1);
        x = blocks(b, name, BLOCKS, x);
    }
    x = lw_rehearsal_conv3(b, "out_conv.2", grouped(b, "out_conv.0", x, LW_ACT_SILU), 3, 1);
    lw_tap_add(out, "y", x);
}

static void describe(lw_network *n)
{
    lw_rehearsal_describe(n, 6); /* the frame, the frame before */
}

const lw_network_def lw_rehearsal_lsd = {
    .name = "gpu-intensive-lsd",
    .kind = "rehearsal",
    .arch_bytes = sizeof(lw_rehearsal),
    .describe = describe,
    .build = build,
};
