/* SPDX-License-Identifier: Apache-2.0 */
/* The shared U-Net. Names and order of operations are those of diffusers'
 * UNet2DModel. */
#include "models/image/models_unet_blocks.h"
#include "models/models.h"

#include <math.h>

typedef struct unet {
    lw_builder *b;
    lw_graph *g;
    const lw_unet_config *c;
    lw_block_style style;
    int32_t batch;
    lw_val stack[LW_UNET_MAX_LEVELS * 20]; /* what the way up concatenates */
    int n_stack;
} unet;

static lw_val conv3(unet *u, const char *name, lw_val x, int out, bool zero)
{
    return lw_conv2d(u->b, name, x, out, (lw_conv_opts){.kernel = 3, .pad = 1, .zero_init = zero});
}

/* ---- embedding
 * -------------------------------------------------------------------------------
 */

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

/* cos | sin of t * frequency: [B, base]; without t the constant row of t = 0.
 */
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

/* Time, class and latent vector, added up: [1,4 base], or [B,4 base] once rows
 * differ. */
static lw_val embed(unet *u, const lw_network_in *in)
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
        lw_val table = lw_param(b, "weight", lw_type_of(LW_F32, 2, lw_unet_class_rows(c), width),
                                init);
        e = lw_add(u->g, lw_embedding(u->g, table, in->classes), e);
        lw_scope_set(u->g, up);
    }
    if (c->latent_dim > 0)
        e = lw_add(u->g, lw_linear(b, "latent_embedding", in->latent, width, true), e);
    return lw_silu(u->g, e);
}

/* ---- the way down, the way up
 * ---------------------------------------------------- */

static lw_val go_down(unet *u, lw_val h)
{
    const lw_unet_config *c = u->c;
    u->stack[u->n_stack++] = h;
    for (int i = 0; i < c->levels; i++) {
        const char *up = lw_scope_pushf(u->g, "down_blocks.%d", i);
        for (int j = 0; j < c->blocks; j++) {
            h = lw_block_res(u->b, &u->style, j, h, c->channels[i]);
            if (c->attn[i])
                h = lw_block_attention(u->b, &u->style, j, h);
            u->stack[u->n_stack++] = h;
        }
        if (i + 1 < c->levels) {
            h = lw_block_down(u->b, &u->style, h, c->channels[i]);
            u->stack[u->n_stack++] = h;
        }
        lw_scope_set(u->g, up);
    }
    return h;
}

static lw_val go_up(unet *u, lw_val h)
{
    const lw_unet_config *c = u->c;
    for (int i = 0; i < c->levels; i++) {
        int level = c->levels - 1 - i;
        const char *up = lw_scope_pushf(u->g, "up_blocks.%d", i);
        for (int j = 0; j <= c->blocks; j++) {
            h = lw_concat(u->g, h, u->stack[--u->n_stack], 3);
            h = lw_block_res(u->b, &u->style, j, h, c->channels[level]);
            if (c->attn[level])
                h = lw_block_attention(u->b, &u->style, j, h);
        }
        if (level > 0)
            h = lw_block_up(u->b, h, c->channels[level]);
        lw_scope_set(u->g, up);
    }
    return h;
}

/* Structured noise [B,h,w,C] -> [B,size,size,C]; an image passes, of any sides
 * that halve evenly. */
static lw_val full_size(lw_graph *g, const lw_unet_config *c, lw_val x)
{
    lw_type t = lw_val_type(g, x);
    if (t.rank != 4 || t.dim[3] != lw_unet_picture_channels(c))
        return lw_graph_fail(g, LW_ESHAPE, "the U-Net wants images [B,%d,%d,%d]", c->image_size,
                             c->image_size, lw_unet_picture_channels(c));
    if (c->noise_h > 0 && t.dim[1] == c->noise_h && t.dim[2] == c->noise_w)
        return lw_upsample(g, x, c->image_size / c->noise_h);
    const int32_t multiple = 1 << (c->levels - 1);
    if (t.dim[1] % multiple || t.dim[2] % multiple || c->noise_h > 0)
        return t.dim[1] == c->image_size && t.dim[2] == c->image_size
                   ? x
                   : lw_graph_fail(g, LW_ESHAPE,
                                   "the U-Net was made for %dx%d images, not %dx%d "
                                   "(whose sides "
                                   "would have to be multiples of %d)",
                                   c->image_size, c->image_size, t.dim[1], t.dim[2], multiple);
    return x;
}

/* x and the frames it is made for, of one size, along the channels. */
static lw_val with_condition(lw_graph *g, const lw_unet_config *c, lw_val x, lw_val condition)
{
    if (lw_unet_condition_channels(c) == 0 || !lw_val_ok(x))
        return x;
    lw_type have = lw_val_type(g, condition), want = lw_val_type(g, x);
    want.dim[3] = lw_unet_condition_channels(c);
    if (!lw_type_eq(have, want))
        return lw_graph_fail(g, LW_ESHAPE, "the U-Net wants a condition [%d,%d,%d,%d]", want.dim[0],
                             want.dim[1], want.dim[2], want.dim[3]);
    return lw_concat(g, x, condition, 3);
}

static int check_inputs(const lw_unet_config *c, const lw_network_in *in)
{
    LW_TRY(lw_unet_check(c));
    if (c->classes > 0 && !lw_val_ok(in->classes))
        return lw_fail(LW_EUSAGE, "this U-Net is class-conditional: class ids are needed");
    if (c->latent_dim > 0 && !lw_val_ok(in->latent))
        return lw_fail(LW_EUSAGE, "this U-Net wants a latent vector of %d numbers per image",
                       c->latent_dim);
    if (lw_unet_condition_channels(c) > 0 && !lw_val_ok(in->condition))
        return lw_fail(LW_EUSAGE,
                       "this U-Net is conditioned on frames: it wants %d channels "
                       "of them per image",
                       lw_unet_condition_channels(c));
    return 0;
}

/* The time that stands for a strength of guidance: 100 (alpha - 1); 1, which is none, has the constant
 * time 0. */
static lw_val guidance_time(lw_graph *g, lw_val alpha)
{
    lw_val one = lw_broadcast(g, lw_const_f32(g, 1.0f), lw_val_type(g, alpha));
    return lw_scale(g, lw_sub(g, alpha, one), 100.0f);
}

lw_val lw_unet(lw_builder *b, const lw_unet_config *c, lw_network_in in)
{
    unet u = {.b = b, .g = b->g, .c = c};
    if (lw_graph_error(b->g) < 0 || !lw_val_ok(in.x))
        return LW_NOVAL;
    if (c->alpha > 0.0f && lw_val_ok(in.alpha))
        in.t = guidance_time(b->g, in.alpha);
    int rc = check_inputs(c, &in);
    if (rc < 0)
        return lw_graph_fail(b->g, rc, "%s", lw_errmsg());
    lw_val x = with_condition(b->g, c, full_size(b->g, c, in.x), in.condition);
    if (!lw_val_ok(x))
        return x;
    u.batch = lw_val_type(b->g, x).dim[0];
    u.style = (lw_block_style){.norm_groups = c->norm_groups,
                               .norm_eps = c->norm_eps,
                               .heads = c->heads,
                               .head_dim = c->head_dim,
                               .shift_only = c->shift_only,
                               .pad_end = c->pad_end,
                               .zero_init = !c->default_res_init,
                               .dropout = c->dropout,
                               .temb = embed(&u, &in)};
    lw_val h = go_down(&u, conv3(&u, "conv_in", x, c->channels[0], false));
    h = go_up(&u, lw_block_middle(b, &u.style, h, c->mid_attn, c->mid_scale));
    h = lw_block_norm(b, &u.style, "conv_norm_out", h, LW_ACT_SILU);
    h = conv3(&u, "conv_out", h, c->out_channels, !c->default_out_init);
    return c->residual ? lw_add(b->g, h, lw_slice(b->g, in.condition, 3, 0, c->out_channels)) : h;
}

int lw_unet_declare(const lw_unet_config *c, lw_store *s)
{
    lw_unet_config arch = *c;
    lw_network n = lw_network_of(&lw_network_def_unet, &arch, s);
    LW_TRY(lw_unet_check(c));
    return lw_network_declare(&n, s);
}
