/* SPDX-License-Identifier: Apache-2.0 */
/* The shared U-Net. Names and order of operations are those of diffusers' UNet2DModel. */
#include "models/models.h"

#include <math.h>

typedef struct unet {
    lw_builder *b;
    lw_graph *g;
    const lw_unet_config *c;
    lw_val temb; /* silu of the embedding: [1,4 base], or [B,4 base] once rows differ */
    int32_t batch;
    lw_val stack[LW_UNET_MAX_LEVELS * 20]; /* what the way up concatenates */
    int n_stack;
} unet;

/* ---- small pieces ---------------------------------------------------------------------------- */

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

static lw_val conv3(unet *u, const char *name, lw_val x, int out, bool zero)
{
    return lw_conv2d(u->b, name, x, out, (lw_conv_opts){.kernel = 3, .pad = 1, .zero_init = zero});
}

static lw_norm_opts norm_opts(const unet *u, lw_act act)
{
    return (lw_norm_opts){.groups = u->c->norm_groups, .eps = u->c->norm_eps, .act = act};
}

/* ---- embedding ------------------------------------------------------------------------------- */

/* Frequencies exp(-ln(1e4) k / (half - freq_shift)). */
static lw_val frequencies(unet *u, int32_t half)
{
    float *f = lw_arena_alloc(lw_graph_arena(u->g), sizeof *f * (size_t)half);
    if (!f)
        return lw_graph_fail(u->g, LW_ENOMEM, "%s", lw_errmsg());
    for (int32_t k = 0; k < half; k++)
        f[k] = (float)exp(-log(1e4) * k / (half - u->c->freq_shift));
    return lw_const(u->g, lw_type_of(LW_F32, 1, half), f);
}

/* cos | sin of t * frequency: [B, base]; without t the constant row of t = 0. */
static lw_val sinusoid(unet *u, lw_val t)
{
    lw_graph *g = u->g;
    int32_t half = u->c->channels[0] / 2, rows = lw_val_ok(t) ? u->batch : 1;
    lw_type type = lw_type_of(LW_F32, 2, rows, half);
    lw_val angle = lw_zeros(g, type);
    if (lw_val_ok(t)) {
        lw_val column = lw_reshape(g, t, lw_type_of(LW_F32, 2, rows, 1));
        angle = lw_mul(g, lw_broadcast(g, column, type), frequencies(u, half));
    }
    lw_val c = lw_ew1(g, LW_EW_cos, angle), s = lw_ew1(g, LW_EW_sin, angle);
    return u->c->sin_first ? lw_concat(g, s, c, 1) : lw_concat(g, c, s, 1);
}

/* Time, class and latent vector, added up; sets u->temb. */
static void embed(unet *u, const lw_network_in *in)
{
    lw_builder *b = u->b;
    const lw_unet_config *c = u->c;
    int32_t width = 4 * c->channels[0];
    const char *up = lw_scope_push(u->g, "time_embedding");
    lw_val e = lw_linear(b, "linear_1", sinusoid(u, in->t), width, true);
    e = lw_linear(b, "linear_2", lw_silu(u->g, e), width, true);
    lw_scope_set(u->g, up);
    if (c->classes > 0) {
        up = lw_scope_push(u->g, "class_embedding");
        lw_init init = {LW_INIT_NORMAL, c->class_init > 0 ? c->class_init : 0.5f};
        lw_val table = lw_param(b, "weight", lw_type_of(LW_F32, 2, c->classes, width), init);
        e = lw_add(u->g, lw_embedding(u->g, table, in->classes), e);
        lw_scope_set(u->g, up);
    }
    if (c->latent_dim > 0)
        e = lw_add(u->g, lw_linear(b, "latent_embedding", in->latent, width, true), e);
    u->temb = lw_silu(u->g, e);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Columns [from, to) of the projected embedding, one row per sample. */
static lw_val rows_of(unet *u, lw_val e, int32_t from, int32_t to)
{
    lw_val v = lw_slice(u->g, e, 1, from, to);
    return lw_broadcast(u->g, v, lw_type_of(LW_F32, 2, u->batch, to - from));
}

static lw_val res_block(unet *u, lw_val x, int32_t out)
{
    lw_builder *b = u->b;
    const lw_unet_config *c = u->c;
    bool zero = !c->default_res_init;
    int32_t in = lw_type_last(lw_val_type(u->g, x));
    lw_val h = conv3(u, "conv1", lw_group_norm(b, "norm1", x, norm_opts(u, LW_ACT_SILU)), out,
                     false);
    lw_val e = lw_linear(b, "time_emb_proj", u->temb, c->shift_only ? out : 2 * out, true);
    lw_norm_opts n = norm_opts(u, LW_ACT_SILU);
    if (c->shift_only) {
        h = lw_add(u->g, h, rows_of(u, e, 0, out));
    } else {
        n.scale = rows_of(u, e, 0, out);
        n.shift = rows_of(u, e, out, 2 * out);
    }
    h = lw_group_norm(b, "norm2", h, n);
    if (b->training && c->dropout > 0)
        h = lw_dropout(u->g, h, b->rows, c->dropout);
    h = conv3(u, "conv2", h, out, zero);
    if (in != out)
        x = lw_conv2d(b, "conv_shortcut", x, out, (lw_conv_opts){.kernel = 1});
    return lw_add(u->g, h, x);
}

static lw_val attention_block(unet *u, lw_val x)
{
    lw_graph *g = u->g;
    lw_type t = lw_val_type(g, x);
    if (!lw_val_ok(x))
        return x;
    int32_t c = t.dim[3], heads = u->c->heads > 0 ? u->c->heads : LW_MAX(c / u->c->head_dim, 1);
    lw_type tokens = lw_type_of(LW_F32, 3, t.dim[0], t.dim[1] * t.dim[2], c);
    lw_val h = lw_group_norm(u->b, "group_norm", x, norm_opts(u, LW_ACT_NONE));
    h = lw_linear(u->b, "to_qkv", lw_reshape(g, h, tokens), 3 * c, true);
    h = linear_init(u->b, "to_out.0", lw_attention(g, h, heads), c, !u->c->default_res_init);
    return lw_add(g, lw_reshape(g, h, t), x);
}

static lw_val scoped_res(unet *u, int j, lw_val x, int32_t out)
{
    const char *up = lw_scope_pushf(u->g, "resnets.%d", j);
    x = res_block(u, x, out);
    lw_scope_set(u->g, up);
    return x;
}

static lw_val scoped_attention(unet *u, int j, lw_val x)
{
    const char *up = lw_scope_pushf(u->g, "attentions.%d", j);
    x = attention_block(u, x);
    lw_scope_set(u->g, up);
    return x;
}

static lw_val downsample(unet *u, lw_val x, int32_t out)
{
    const char *up = lw_scope_push(u->g, "downsamplers.0");
    if (u->c->pad_end)
        x = lw_pad(u->g, x, (const int[3]){0, 0, 0}, (const int[3]){1, 1, 0});
    lw_conv_opts o = {.kernel = 3, .stride = 2, .pad = u->c->pad_end ? 0 : 1};
    x = lw_conv2d(u->b, "conv", x, out, o);
    lw_scope_set(u->g, up);
    return x;
}

static lw_val upsample(unet *u, lw_val x, int32_t out)
{
    const char *up = lw_scope_push(u->g, "upsamplers.0");
    x = conv3(u, "conv", lw_upsample(u->g, x, 2), out, false);
    lw_scope_set(u->g, up);
    return x;
}

/* ---- the way down, the middle, the way up ---------------------------------------------------- */

static lw_val go_down(unet *u, lw_val h)
{
    const lw_unet_config *c = u->c;
    u->stack[u->n_stack++] = h;
    for (int i = 0; i < c->levels; i++) {
        const char *up = lw_scope_pushf(u->g, "down_blocks.%d", i);
        for (int j = 0; j < c->blocks; j++) {
            h = scoped_res(u, j, h, c->channels[i]);
            if (c->attn[i])
                h = scoped_attention(u, j, h);
            u->stack[u->n_stack++] = h;
        }
        if (i + 1 < c->levels) {
            h = downsample(u, h, c->channels[i]);
            u->stack[u->n_stack++] = h;
        }
        lw_scope_set(u->g, up);
    }
    return h;
}

/* What leaves a block of the middle, residual and all. */
static lw_val scaled(const unet *u, lw_val h)
{
    float k = u->c->mid_scale;
    return k == 0.0f || k == 1.0f ? h : lw_scale(u->g, h, 1.0f / k);
}

static lw_val middle(unet *u, lw_val h)
{
    int32_t width = u->c->channels[u->c->levels - 1];
    const char *up = lw_scope_push(u->g, "mid_block");
    h = scaled(u, scoped_res(u, 0, h, width));
    if (u->c->mid_attn)
        h = scaled(u, scoped_attention(u, 0, h));
    h = scaled(u, scoped_res(u, 1, h, width));
    lw_scope_set(u->g, up);
    return h;
}

static lw_val go_up(unet *u, lw_val h)
{
    const lw_unet_config *c = u->c;
    for (int i = 0; i < c->levels; i++) {
        int level = c->levels - 1 - i;
        const char *up = lw_scope_pushf(u->g, "up_blocks.%d", i);
        for (int j = 0; j <= c->blocks; j++) {
            h = scoped_res(u, j, lw_concat(u->g, h, u->stack[--u->n_stack], 3), c->channels[level]);
            if (c->attn[level])
                h = scoped_attention(u, j, h);
        }
        if (level > 0)
            h = upsample(u, h, c->channels[level]);
        lw_scope_set(u->g, up);
    }
    return h;
}

/* Structured noise [B,h,w,C] -> [B,size,size,C]; an image passes. */
static lw_val full_size(lw_graph *g, const lw_unet_config *c, lw_val x)
{
    lw_type t = lw_val_type(g, x);
    if (t.rank != 4 || t.dim[3] != c->in_channels)
        return lw_graph_fail(g, LW_ESHAPE, "the U-Net wants images [B,%d,%d,%d]", c->image_size,
                             c->image_size, c->in_channels);
    if (c->noise_h > 0 && t.dim[1] == c->noise_h && t.dim[2] == c->noise_w)
        return lw_upsample(g, x, c->image_size / c->noise_h);
    if (t.dim[1] != c->image_size || t.dim[2] != c->image_size)
        return lw_graph_fail(g, LW_ESHAPE, "the U-Net was made for %dx%d images, not %dx%d",
                             c->image_size, c->image_size, t.dim[1], t.dim[2]);
    return x;
}

static int check_inputs(const lw_unet_config *c, const lw_network_in *in)
{
    LW_TRY(lw_unet_check(c));
    if (c->classes > 0 && !lw_val_ok(in->classes))
        return lw_fail(LW_EUSAGE, "this U-Net is class-conditional: class ids are needed");
    if (c->latent_dim > 0 && !lw_val_ok(in->latent))
        return lw_fail(LW_EUSAGE, "this U-Net wants a latent vector of %d numbers per image",
                       c->latent_dim);
    return 0;
}

lw_val lw_unet(lw_builder *b, const lw_unet_config *c, lw_network_in in)
{
    unet u = {.b = b, .g = b->g, .c = c};
    if (lw_graph_error(b->g) < 0 || !lw_val_ok(in.x))
        return LW_NOVAL;
    int rc = check_inputs(c, &in);
    if (rc < 0)
        return lw_graph_fail(b->g, rc, "%s", lw_errmsg());
    lw_val x = full_size(b->g, c, in.x);
    if (!lw_val_ok(x))
        return x;
    u.batch = lw_val_type(b->g, x).dim[0];
    embed(&u, &in);
    lw_val h = conv3(&u, "conv_in", x, c->channels[0], false);
    h = go_up(&u, middle(&u, go_down(&u, h)));
    h = lw_group_norm(b, "conv_norm_out", h, norm_opts(&u, LW_ACT_SILU));
    return conv3(&u, "conv_out", h, c->out_channels, !c->default_out_init);
}

int lw_unet_declare(const lw_unet_config *c, lw_store *s)
{
    lw_unet_config arch = *c;
    lw_network n = lw_network_of(&lw_network_def_unet, &arch, s);
    LW_TRY(lw_unet_check(c));
    return lw_network_declare(&n, s);
}
