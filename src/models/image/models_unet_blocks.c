/* SPDX-License-Identifier: Apache-2.0 */
#include "models/image/models_unet_blocks.h"

static lw_val conv3(lw_builder *b, const char *name, lw_val x, int out, bool zero)
{
    return lw_conv2d(b, name, x, out, (lw_conv_opts){.kernel = 3, .pad = 1, .zero_init = zero});
}

static lw_norm_opts norm_opts(const lw_block_style *s, lw_act act)
{
    return (lw_norm_opts){.groups = s->norm_groups, .eps = s->norm_eps, .act = act};
}

lw_val lw_block_norm(lw_builder *b, const lw_block_style *s, const char *name, lw_val x, lw_act act)
{
    return lw_group_norm(b, name, x, norm_opts(s, act));
}

/* ---- residual block -------------------------------------------------------------------------- */

/* Columns [from, to) of the projected embedding, one row per sample of x. */
static lw_val rows_of(lw_graph *g, lw_val e, lw_val x, int32_t from, int32_t to)
{
    lw_val v = lw_slice(g, e, 1, from, to);
    return lw_broadcast(g, v, lw_type_of(LW_F32, 2, lw_val_type(g, x).dim[0], to - from));
}

/* norm2 of h, with the embedding. */
static lw_val second_norm(lw_builder *b, const lw_block_style *s, lw_val h, int32_t out)
{
    lw_norm_opts n = norm_opts(s, LW_ACT_SILU);
    if (!lw_val_ok(s->temb))
        return lw_group_norm(b, "norm2", h, n);
    lw_val e = lw_linear(b, "time_emb_proj", s->temb, s->shift_only ? out : 2 * out, true);
    if (s->shift_only) {
        h = lw_add(b->g, h, rows_of(b->g, e, h, 0, out));
    } else {
        n.scale = rows_of(b->g, e, h, 0, out);
        n.shift = rows_of(b->g, e, h, out, 2 * out);
    }
    return lw_group_norm(b, "norm2", h, n);
}

static lw_val res(lw_builder *b, const lw_block_style *s, lw_val x, int32_t out)
{
    if (!lw_val_ok(x))
        return x;
    int32_t in = lw_type_last(lw_val_type(b->g, x));
    lw_val h = lw_group_norm(b, "norm1", x, norm_opts(s, LW_ACT_SILU));
    h = second_norm(b, s, conv3(b, "conv1", h, out, false), out);
    if (b->training && s->dropout > 0)
        h = lw_dropout(b->g, h, b->rows, s->dropout);
    h = conv3(b, "conv2", h, out, s->zero_init);
    if (in != out)
        x = lw_conv2d(b, "conv_shortcut", x, out, (lw_conv_opts){.kernel = 1});
    return lw_add(b->g, h, x);
}

lw_val lw_block_res(lw_builder *b, const lw_block_style *s, int j, lw_val x, int32_t out)
{
    const char *up = lw_scope_pushf(b->g, "resnets.%d", j);
    x = res(b, s, x, out);
    lw_scope_set(b->g, up);
    return x;
}

/* ---- attention ------------------------------------------------------------------------------- */

/* A linear layer whose parameters start at zero, or at PyTorch's default. */
static lw_val linear_init(lw_builder *b, const char *name, lw_val x, int out, bool zero)
{
    if (!zero || !lw_val_ok(x))
        return lw_linear(b, name, x, out, true);
    int32_t in = lw_type_last(lw_val_type(b->g, x));
    const char *up = lw_scope_push(b->g, name);
    lw_val w = lw_param(b, "weight", lw_type_of(LW_F32, 2, out, in), (lw_init){0});
    lw_val bias = lw_param(b, "bias", lw_type_of(LW_F32, 1, out), (lw_init){0});
    lw_val y = lw_linear_op(b->g, x, w, bias);
    lw_scope_set(b->g, up);
    return y;
}

static lw_val attention(lw_builder *b, const lw_block_style *s, lw_val x)
{
    lw_graph *g = b->g;
    lw_type t = lw_val_type(g, x);
    if (!lw_val_ok(x))
        return x;
    int32_t c = t.dim[3], heads = s->heads > 0 ? s->heads : LW_MAX(c / s->head_dim, 1);
    lw_type tokens = lw_type_of(LW_F32, 3, t.dim[0], t.dim[1] * t.dim[2], c);
    lw_val h = lw_group_norm(b, "group_norm", x, norm_opts(s, LW_ACT_NONE));
    h = lw_linear(b, "to_qkv", lw_reshape(g, h, tokens), 3 * c, true);
    const lw_attr_attention a = {.heads = heads, .window = b->window, .width = t.dim[2]};
    h = linear_init(b, "to_out.0", lw_attention_places(g, &h, 1, &a), c, s->zero_init);
    return lw_add(g, lw_reshape(g, h, t), x);
}

lw_val lw_block_attention(lw_builder *b, const lw_block_style *s, int j, lw_val x)
{
    const char *up = lw_scope_pushf(b->g, "attentions.%d", j);
    x = attention(b, s, x);
    lw_scope_set(b->g, up);
    return x;
}

/* ---- other sizes, the middle ----------------------------------------------------------------- */

lw_val lw_block_down(lw_builder *b, const lw_block_style *s, lw_val x, int32_t out)
{
    const char *up = lw_scope_push(b->g, "downsamplers.0");
    lw_conv_opts o = {.kernel = 3, .stride = 2, .pad = !s->pad_end, .pad_end = s->pad_end};
    x = lw_conv2d(b, "conv", x, out, o);
    lw_scope_set(b->g, up);
    return x;
}

lw_val lw_block_up(lw_builder *b, lw_val x, int32_t out)
{
    const char *up = lw_scope_push(b->g, "upsamplers.0");
    x = conv3(b, "conv", lw_upsample(b->g, x, 2), out, false);
    lw_scope_set(b->g, up);
    return x;
}

static lw_val divided(lw_graph *g, lw_val h, float scale)
{
    return scale == 0.0f || scale == 1.0f ? h : lw_scale(g, h, 1.0f / scale);
}

lw_val lw_block_middle(lw_builder *b, const lw_block_style *s, lw_val x, bool attention,
                       float scale)
{
    if (!lw_val_ok(x))
        return x;
    int32_t width = lw_type_last(lw_val_type(b->g, x));
    const char *up = lw_scope_push(b->g, "mid_block");
    x = divided(b->g, lw_block_res(b, s, 0, x, width), scale);
    if (attention)
        x = divided(b->g, lw_block_attention(b, s, 0, x), scale);
    x = divided(b->g, lw_block_res(b, s, 1, x, width), scale);
    lw_scope_set(b->g, up);
    return x;
}

/* ---- names ----------------------------------------------------------------------------------- */

const lw_name_rule lw_block_older_names[] = {
    LW_QKV_RULES("**.query.*", "**.key.*", "**.value.*"),
    {.file = "**.proj_attn.*", .store = "**.to_out.0.*"},
    {0},
};
