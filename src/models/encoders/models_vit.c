/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks and trunk of vision transformers. */
#include "models/encoders/models_vit.h"

/* Do the tokens of one picture fit into a tensor's dimension? */
static bool fits(const lw_vit *c, int32_t h, int32_t w)
{
    return ((int64_t)h * w + 1) * c->width <= INT32_MAX;
}

int lw_vit_check(lw_vit *c, const char *where)
{
    if (c->width < 1 || c->heads < 1 || c->patch < 1)
        return lw_fail(LW_EFORMAT, "%s: a width, a number of heads or a patch of 0", where);
    c->grid = c->image_size / c->patch;
    if (c->width % c->heads != 0)
        return lw_fail(LW_EFORMAT, "%s: a width of %d is not divisible into %d heads", where,
                       (int)c->width, (int)c->heads);
    if (c->grid < 1)
        return lw_fail(LW_EFORMAT, "%s: patches of %d are larger than pictures of %d", where,
                       (int)c->patch, (int)c->image_size);
    if (!fits(c, c->grid, c->grid))
        return lw_fail(LW_EFORMAT, "%s: %dx%d tokens of %d numbers are more than a tensor has here",
                       where, (int)c->grid, (int)c->grid, (int)c->width);
    return 0;
}

int32_t lw_vit_prefix(const lw_vit *c, const lw_vit_names *n)
{
    return (n->class_token ? 1 : 0) + (n->registers ? c->registers : 0);
}

lw_val lw_vit_token(lw_graph *g, lw_val tokens, int32_t i)
{
    if (!lw_val_ok(tokens))
        return tokens;
    lw_type t = lw_val_type(g, tokens);
    return lw_reshape(g, lw_slice(g, tokens, 1, i, i + 1),
                      lw_type_of(LW_F32, 2, t.dim[0], t.dim[2]));
}

/* ---- patches, positions, tokens in front ----------------------------------------------------- */

/* A learned table [rows,C], in files perhaps with a leading dimension of 1. */
static lw_val table(lw_builder *b, const char *name, bool batched, int32_t rows, int32_t width)
{
    const lw_init init = {LW_INIT_NORMAL, 0.02f};
    lw_type flat = lw_type_of(LW_F32, 2, rows, width);
    lw_type type = batched ? lw_type_of(LW_F32, 3, 1, rows, width) : flat;
    return lw_reshape(b->g, lw_param(b, name, type, init), flat);
}

static lw_val class_token(lw_builder *b, const lw_vit *c, const lw_vit_names *n)
{
    if (n->batched)
        return table(b, n->class_token, true, 1, c->width);
    lw_val v = lw_param(b, n->class_token, lw_type_of(LW_F32, 1, c->width),
                        (lw_init){LW_INIT_NORMAL, 0.02f});
    return lw_reshape(b->g, v, lw_type_of(LW_F32, 2, 1, c->width));
}

/* The grid's rows [h w,C] of positions [cells,C]. square: of a picture of equal sides, whose table is
 * taken as it is where it fits; that of others is interpolated even then. */
static lw_val positions(lw_builder *b, const lw_vit *c, lw_val at, int32_t h, int32_t w,
                        bool square)
{
    lw_graph *g = b->g;
    double side = (double)c->grid;
    lw_attr_resize to = {.h = h,
                         .w = w,
                         .form = c->resize == LW_VIT_RESIZE_ANTIALIAS ? LW_RESAMPLE_FLOAT_AA
                                                                      : LW_RESAMPLE_TORCH,
                         .filter = LW_FILTER_BICUBIC};
    if (square && h == c->grid)
        return at;
    if (c->resize == LW_VIT_RESIZE_NONE)
        return lw_graph_fail(g, LW_ESHAPE, "pictures of %dx%d patches, the network has %dx%d",
                             (int)h, (int)w, (int)c->grid, (int)c->grid);
    if (c->resize == LW_VIT_RESIZE_OFFSET) {
        to.scale[0] = ((double)h + 0.1) / side;
        to.scale[1] = ((double)w + 0.1) / side;
    }
    at = lw_reshape(g, at, lw_type_of(LW_F32, 4, 1, c->grid, c->grid, c->width));
    return lw_reshape(g, lw_resize(g, at, to), lw_type_of(LW_F32, 2, h * w, c->width));
}

/* Class token with its position, registers: [B,n,C]. Depends on parameters alone, so plans make it
 * once. */
static lw_val front(lw_builder *b, const lw_vit *c, const lw_vit_names *n, lw_val at, int32_t batch)
{
    lw_graph *g = b->g;
    int32_t rows = lw_vit_prefix(c, n);
    lw_val v = class_token(b, c, n);
    if (lw_val_ok(at))
        v = lw_add(g, v, at);
    if (rows > 1)
        v = lw_concat(g, v, table(b, n->registers, n->batched, c->registers, c->width), 0);
    v = lw_reshape(g, v, lw_type_of(LW_F32, 1, rows * c->width));
    v = lw_broadcast(g, v, lw_type_of(LW_F32, 2, batch, rows * c->width));
    return lw_reshape(g, v, lw_type_of(LW_F32, 3, batch, rows, c->width));
}

/* Tokens [B,T,C] before the blocks; h, w in patches. */
static lw_val embed(lw_builder *b, const lw_vit *c, const lw_vit_names *n, lw_val x, int32_t h,
                    int32_t w)
{
    lw_graph *g = b->g;
    lw_type t = lw_val_type(g, x);
    int32_t batch = t.dim[0], cells = c->grid * c->grid;
    int32_t placed = n->class_token && !c->class_unplaced ? 1 : 0;
    lw_conv_opts o = {.kernel = c->patch, .stride = c->patch, .no_bias = !n->patch_bias};
    x = lw_conv2d(b, n->patch, x, c->width, o);
    lw_val all = table(b, n->positions, n->batched, placed + cells, c->width);
    lw_val at = placed ? lw_slice(g, all, 0, placed, placed + cells) : all;
    at = positions(b, c, at, h, w, t.dim[1] == t.dim[2]);
    /* a row per picture, so that positions repeat over the batch */
    x = lw_reshape(g, x, lw_type_of(LW_F32, 2, batch, h * w * c->width));
    x = lw_add(g, x, lw_reshape(g, at, lw_type_of(LW_F32, 1, h * w * c->width)));
    x = lw_reshape(g, x, lw_type_of(LW_F32, 3, batch, h * w, c->width));
    if (n->class_token) {
        lw_val own = placed ? lw_slice(g, all, 0, 0, 1) : LW_NOVAL;
        own = front(b, c, n, own, batch);
        x = lw_concat(g, own, x, 1);
    }
    x = lw_layer_done(b, "pos_drop", LW_NOVAL, x);
    return n->norm ? lw_layer_norm(b, n->norm, x, c->eps, LW_NOVAL) : x;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* scale * (W x + b). LayerScale goes into weight and bias, by ops on parameters alone that plans do
 * once. */
static lw_val scaled_linear(lw_builder *b, const char *name, const char *scale, lw_val x,
                            int32_t out)
{
    lw_graph *g = b->g;
    if (!scale || !lw_val_ok(x))
        return lw_linear(b, name, x, out, true);
    const lw_init init = {LW_INIT_UNIFORM, 0.02f}, one = {LW_INIT_ONES, 0};
    int32_t in = lw_type_last(lw_val_type(g, x));
    lw_val k = lw_param(b, scale, lw_type_of(LW_F32, 1, out), one);
    if (b->hook) /* it concerns the layer's own output */
        return lw_mul(g, lw_linear(b, name, x, out, true), k);
    const char *up = lw_scope_push(g, name);
    lw_val w = lw_param(b, "weight", lw_type_of(LW_F32, 2, out, in), init);
    lw_val bias = lw_param(b, "bias", lw_type_of(LW_F32, 1, out), init);
    w = lw_mul(g, w, lw_reshape(g, k, lw_type_of(LW_F32, 2, out, 1)));
    lw_val y = lw_linear_op(g, x, w, lw_mul(g, bias, k));
    lw_scope_set(g, up);
    return y;
}

static lw_val mlp(lw_builder *b, const lw_vit *c, const char *fc1, const char *fc2,
                  const char *scale, lw_val x)
{
    lw_graph *g = b->g;
    lw_val h = lw_linear(b, fc1, x, c->swiglu ? 2 * c->hidden : c->hidden, true);
    if (c->swiglu) {
        lw_val gate = lw_silu(g, lw_slice(g, h, -1, 0, c->hidden));
        h = lw_mul(g, gate, lw_slice(g, h, -1, c->hidden, 2 * c->hidden));
    } else {
        h = lw_ew1(g, c->act, h);
    }
    h = lw_layer_done(b, "mlp.drop1", LW_NOVAL, h);
    h = scaled_linear(b, fc2, scale, h, c->width);
    return lw_layer_done(b, "mlp.drop2", LW_NOVAL, h);
}

lw_val lw_vit_mlp(lw_builder *b, const lw_vit *c, const char *fc1, const char *fc2, lw_val x)
{
    return mlp(b, c, fc1, fc2, NULL, x);
}

static lw_val block(lw_builder *b, const lw_vit *c, const lw_vit_names *n, lw_val x)
{
    lw_graph *g = b->g;
    lw_val h = lw_layer_norm(b, n->norm1, x, c->eps, LW_NOVAL);
    h = lw_attention(g, lw_linear(b, n->qkv, h, 3 * c->width, !c->no_qkv_bias), c->heads);
    h = scaled_linear(b, n->out, n->scale1, h, c->width);
    h = lw_layer_done(b, "attn.proj_drop", LW_NOVAL, h);
    lw_val before = x;
    x = lw_add(g, x, h);
    h = lw_layer_norm(b, n->norm2, x, c->eps, LW_NOVAL);
    x = lw_add(g, x, mlp(b, c, n->fc1, n->fc2, n->scale2, h));
    return lw_layer_done(b, "", before, x);
}

lw_val lw_vit_build(lw_builder *b, const lw_vit *c, const lw_vit_names *n, lw_val x, lw_val *map)
{
    lw_graph *g = b->g;
    if (!lw_val_ok(x))
        return x;
    lw_type t = lw_val_type(g, x);
    int32_t h = t.dim[1] / c->patch, w = t.dim[2] / c->patch, before = lw_vit_prefix(c, n);
    lw_type grid = lw_type_of(LW_F32, 4, t.dim[0], h, w, c->width);
    if (h < 1 || w < 1)
        return lw_graph_fail(g, LW_ESHAPE, "pictures of %dx%d are smaller than a patch of %dx%d",
                             (int)t.dim[1], (int)t.dim[2], (int)c->patch, (int)c->patch);
    if (!fits(c, h, w))
        return lw_graph_fail(g, LW_ESHAPE, "pictures of %dx%d have too many patches of %dx%d",
                             (int)t.dim[1], (int)t.dim[2], (int)c->patch, (int)c->patch);
    x = embed(b, c, n, x, h, w);
    for (int32_t i = 0; i <= c->depth; i++) {
        if (i > 0) {
            const char *up = lw_scope_pushf(g, "%s.%d", n->blocks, (int)i - 1);
            x = block(b, c, n, x);
            lw_scope_set(g, up);
        }
        map[i] = lw_reshape(g, before ? lw_slice(g, x, 1, before, before + h * w) : x, grid);
    }
    return x;
}
