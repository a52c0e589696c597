/* SPDX-License-Identifier: Apache-2.0 */
/* The drifting transformer: the network. */
#include "models/image/models_dit.h"

#include <math.h>
#include <stdio.h>

typedef struct dit {
    lw_builder *b;
    lw_graph *g;
    const lw_dit_config *c;
    lw_val cond;  /* [B, hidden], [1, hidden] where all pictures have one */
    lw_val angle; /* of lw_rope; absent: none */
} dit;

static const float eps = 1e-6f;

/* ---- layers in the release's names ----------------------------------------------------------- */

typedef enum dense_init { XAVIER, SMALL, ZERO } dense_init;

typedef struct dense {
    lw_val kernel, bias; /* [in, out], [out] */
} dense;

/* TorchLinear_N holds one Dense_0. */
static dense dense_param(dit *d, int n, int32_t in, int32_t out, dense_init how)
{
    const lw_init init[] = {
        [XAVIER] = {LW_INIT_UNIFORM, (float)sqrt(6.0 / (in + out))},
        [SMALL] = {LW_INIT_NORMAL, 0.02f},
        [ZERO] = {LW_INIT_ZEROS, 0},
    };
    const char *up = lw_scope_pushf(d->g, "TorchLinear_%d.Dense_0", n);
    dense w = {lw_param(d->b, "kernel", lw_type_of(LW_F32, 2, in, out), init[how]),
               lw_param(d->b, "bias", lw_type_of(LW_F32, 1, out), init[ZERO])};
    lw_scope_set(d->g, up);
    return w;
}

static lw_val apply(dit *d, dense w, lw_val x)
{
    const lw_attr_matmul a = {0};
    if (!lw_val_ok(x) || !lw_val_ok(w.kernel) || !lw_val_ok(w.bias))
        return LW_NOVAL;
    return lw_graph_op(d->g, LW_OP_MATMUL, (lw_val[]){x, w.kernel, w.bias}, 3, &a, sizeof a);
}

static lw_val linear(dit *d, int n, lw_val x, int32_t out, dense_init how)
{
    if (!lw_val_ok(x))
        return x;
    return apply(d, dense_param(d, n, lw_type_last(lw_val_type(d->g, x)), out, how), x);
}

/* Columns [begin, end) of a layer: what it gives is then no part of a wider value. */
static dense columns(dit *d, dense w, int32_t begin, int32_t end)
{
    return (dense){lw_slice(d->g, w.kernel, 1, begin, end), lw_slice(d->g, w.bias, 0, begin, end)};
}

static lw_val rms_norm(dit *d, const char *name, lw_val x)
{
    if (!lw_val_ok(x))
        return x;
    const char *up = lw_scope_push(d->g, name);
    lw_val w = lw_param(d->b, "weight", lw_type_of(LW_F32, 1, lw_type_last(lw_val_type(d->g, x))),
                        (lw_init){LW_INIT_ONES, 0});
    lw_scope_set(d->g, up);
    return lw_rms_norm_op(d->g, x, w, eps);
}

static lw_val table(dit *d, const char *name, const char *leaf, lw_type t, lw_init init)
{
    const char *up = lw_scope_push(d->g, name);
    lw_val w = lw_param(d->b, leaf, t, init);
    lw_scope_set(d->g, up);
    return w;
}

/* [B,T,C] and back; T C as one row of a picture, so that tables of all tokens repeat over the batch. */
static lw_val as_row(dit *d, lw_val x)
{
    lw_type t = lw_val_type(d->g, x);
    return lw_reshape(d->g, x, lw_type_of(LW_F32, 2, t.dim[0], t.dim[1] * t.dim[2]));
}

static lw_val add_table(dit *d, lw_val x, const char *name, lw_init init)
{
    if (!lw_val_ok(x))
        return x;
    lw_type t = lw_val_type(d->g, x), one = t;
    one.dim[0] = 1;
    lw_val w = lw_param(d->b, name, one, init);
    return lw_reshape(d->g, lw_add(d->g, as_row(d, x), as_row(d, w)), t);
}

/* ---- the condition --------------------------------------------------------------------------- */

static lw_val embedding(dit *d, const char *name, int32_t words, lw_val ids)
{
    const lw_init init = {LW_INIT_NORMAL, 0.02f};
    lw_type t = lw_type_of(LW_F32, 2, words, d->c->hidden);
    return lw_embedding(d->g, table(d, name, "embedding", t, init), ids);
}

/* cos | sin of alpha times exp(-ln(1e4) k / 128): [B, 256]. */
static lw_val waves(dit *d, lw_val alpha)
{
    enum { HALF = 128 };
    float f[HALF];
    for (int k = 0; k < HALF; k++)
        f[k] = (float)exp(-log(1e4) * k / HALF);
    int32_t rows = (int32_t)lw_type_count(lw_val_type(d->g, alpha));
    alpha = lw_reshape(d->g, alpha, lw_type_of(LW_F32, 2, rows, 1));
    lw_val a = lw_mul(d->g, lw_broadcast(d->g, alpha, lw_type_of(LW_F32, 2, rows, HALF)),
                      lw_const(d->g, lw_type_of(LW_F32, 1, HALF), f));
    return lw_concat(d->g, lw_ew1(d->g, LW_EW_cos, a), lw_ew1(d->g, LW_EW_sin, a), 1);
}

/* 0.02 RMSNorm(MLP(waves)); without alpha that of 1, made when prepared. */
static lw_val guidance(dit *d, lw_val alpha)
{
    lw_val one = lw_val_ok(alpha) ? alpha : lw_const_f32(d->g, 1.0f);
    const char *up = lw_scope_push(d->g, "TimestepEmbedder_0");
    lw_val e = lw_silu(d->g, linear(d, 0, waves(d, one), d->c->hidden, SMALL));
    e = linear(d, 1, e, d->c->hidden, SMALL);
    lw_scope_set(d->g, up);
    return lw_scale(d->g, rms_norm(d, "RMSNorm_0", e), 0.02f);
}

static lw_val condition(dit *d, const lw_network_in *in)
{
    const lw_dit_config *c = d->c;
    lw_val sum = guidance(d, in->alpha);
    if (c->classes)
        sum = lw_add(d->g, embedding(d, "Embed_0", c->classes, in->classes), sum);
    for (int32_t i = 0; i < c->styles; i++) {
        char name[40];
        snprintf(name, sizeof name, "noise_embeds_%d", (int)i);
        lw_val ids = lw_slice(d->g, in->styles, 1, i, i + 1);
        if (lw_val_ok(ids))
            ids = lw_reshape(d->g, ids, lw_type_of(LW_I32, 1, lw_val_type(d->g, ids).dim[0]));
        sum = lw_add(d->g, embedding(d, name, c->style_words, ids), sum);
    }
    return sum;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* cosines | sines of place / 1e4^(k / half), as floats make them */
static void turn(float *row, int32_t half, int32_t place)
{
    for (int32_t k = 0; k < half; k++) {
        float angle = (float)place * (float)(1.0 / pow(1e4, (double)k / half));
        row[k] = (float)cos((double)angle);
        row[half + k] = (float)sin((double)angle);
    }
}

static lw_val angles(lw_graph *g, const lw_dit_config *c)
{
    int32_t side = c->image_size / c->patch, tokens = c->tokens + side * side;
    int32_t head = c->hidden / c->heads, axes = c->rope == LW_DIT_ROPE_2D ? 2 : 1;
    if (c->rope == LW_DIT_ROPE_NONE)
        return LW_NOVAL;
    float *t = lw_arena_alloc(lw_graph_arena(g), sizeof *t * (size_t)tokens * (size_t)head);
    if (!t)
        return lw_graph_fail(g, LW_ENOMEM, "%s", lw_errmsg());
    for (int32_t i = 0; i < tokens; i++) {
        int32_t patch = i - c->tokens;
        if (axes == 1) {
            turn(t + i * head, head / 2, i);
            continue;
        }
        turn(t + i * head, head / 4, patch < 0 ? 0 : patch / side);
        turn(t + i * head + head / 2, head / 4, patch < 0 ? 0 : patch % side);
    }
    return lw_const(g, lw_type_of(LW_F32, 3, tokens, axes, head / axes), t);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Part i of n of the modulation: [B, hidden]. */
static lw_val part(dit *d, lw_val all, int i)
{
    return lw_slice(d->g, all, 1, i * d->c->hidden, (i + 1) * d->c->hidden);
}

/* TorchLinear_n(silu(cond)): n_parts rows of the width of the blocks, zero at first. */
static lw_val modulation(dit *d, int n, int n_parts)
{
    return linear(d, n, lw_silu(d->g, d->cond), n_parts * d->c->hidden, ZERO);
}

static lw_val modulate(dit *d, lw_val x, lw_val shift, lw_val scale)
{
    x = lw_mul(d->g, x, lw_add_f32(d->g, scale, 1.0f));
    return lw_add(d->g, x, shift);
}

/* q or k: a norm of each head, then its place. */
static lw_val place(dit *d, const char *norm, lw_val x)
{
    lw_type t = lw_val_type(d->g, x), heads = t;
    if (lw_val_ok(x) && !d->c->no_qk_norm) {
        heads.rank = 4;
        heads.dim[2] = d->c->heads;
        heads.dim[3] = t.dim[2] / d->c->heads;
        x = lw_reshape(d->g, rms_norm(d, norm, lw_reshape(d->g, x, heads)), t);
    }
    return lw_val_ok(d->angle) ? lw_rope(d->g, x, d->angle) : x;
}

static lw_val attend(dit *d, lw_val x)
{
    const int32_t c = d->c->hidden;
    const char *up = lw_scope_push(d->g, "Attention_0");
    dense qkv = dense_param(d, 0, c, 3 * c, XAVIER);
    lw_val q = place(d, "q_norm", apply(d, columns(d, qkv, 0, c), x));
    lw_val k = place(d, "k_norm", apply(d, columns(d, qkv, c, 2 * c), x));
    lw_val v = apply(d, columns(d, qkv, 2 * c, 3 * c), x);
    x = linear(d, 1, lw_attention_qkv(d->g, q, k, v, d->c->heads), c, XAVIER);
    lw_scope_set(d->g, up);
    return x;
}

static int32_t inner_width(const lw_dit_config *c)
{
    int32_t wide = (int32_t)((float)c->hidden * c->mlp_ratio);
    return LW_ROUND_UP((int32_t)(2.0 / 3.0 * wide), 32);
}

/* SwiGLU */
static lw_val feed(dit *d, lw_val x)
{
    int32_t inner = inner_width(d->c);
    const char *up = lw_scope_push(d->g, "SwiGLUFFN_0");
    lw_val gate = lw_silu(d->g, linear(d, 0, x, inner, XAVIER));
    x = lw_mul(d->g, gate, linear(d, 1, x, inner, XAVIER));
    x = linear(d, 2, x, d->c->hidden, XAVIER);
    lw_scope_set(d->g, up);
    return x;
}

static lw_val block(dit *d, int i, lw_val x)
{
    const char *up = lw_scope_pushf(d->g, "blocks_%d", i);
    lw_val m = modulation(d, 0, 6);
    lw_val h = modulate(d, rms_norm(d, "RMSNorm_0", x), part(d, m, 0), part(d, m, 1));
    x = lw_add(d->g, x, lw_mul(d->g, attend(d, h), part(d, m, 2)));
    h = modulate(d, rms_norm(d, "RMSNorm_1", x), part(d, m, 3), part(d, m, 4));
    x = lw_add(d->g, x, lw_mul(d->g, feed(d, h), part(d, m, 5)));
    lw_scope_set(d->g, up);
    return lw_layer_done(d->b, "", LW_NOVAL, x);
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Patches, behind the in-context tokens. */
static lw_val tokens(dit *d, lw_val x)
{
    const lw_dit_config *c = d->c;
    int32_t batch = lw_val_type(d->g, x).dim[0];
    x = linear(d, 0, lw_patches(d->g, x, c->patch), c->hidden, XAVIER);
    x = add_table(d, x, "pos_embed", (lw_init){LW_INIT_SINCOS, 0});
    if (c->tokens == 0)
        return x;
    lw_val own = linear(d, 1, d->cond, c->hidden, XAVIER);
    own = lw_broadcast(d->g, own, lw_type_of(LW_F32, 3, batch, c->tokens, c->hidden));
    own = add_table(d, own, "cls_embed", (lw_init){LW_INIT_NORMAL, 0.02f});
    return lw_concat(d->g, own, x, 1);
}

/* Norms are of single tokens, so those in context go before. */
static lw_val head(dit *d, lw_val x)
{
    const lw_dit_config *c = d->c;
    int32_t side = c->image_size / c->patch;
    const char *up = lw_scope_push(d->g, "FinalLayer_0");
    if (c->tokens)
        x = lw_slice(d->g, x, 1, c->tokens, c->tokens + side * side);
    lw_val m = modulation(d, 0, 2);
    x = modulate(d, rms_norm(d, "RMSNorm_0", x), part(d, m, 0), part(d, m, 1));
    x = linear(d, 1, x, c->patch * c->patch * c->channels, ZERO);
    lw_scope_set(d->g, up);
    return lw_patches_back(d->g, x, c->patch, c->image_size, c->image_size);
}

static int check_inputs(const lw_graph *g, const lw_dit_config *c, const lw_network_in *in)
{
    lw_type x = lw_val_type(g, in->x);
    LW_TRY(lw_dit_check(c));
    if (x.rank != 4 || x.dim[1] != c->image_size || x.dim[2] != c->image_size ||
        x.dim[3] != c->channels)
        return lw_fail(LW_ESHAPE, "the DiT wants noise [B,%d,%d,%d]", (int)c->image_size,
                       (int)c->image_size, (int)c->channels);
    if (c->classes > 0 && !lw_val_ok(in->classes))
        return lw_fail(LW_EUSAGE, "this DiT is class-conditional: class ids are needed");
    if (c->styles > 0 && !lw_val_ok(in->styles))
        return lw_fail(LW_EUSAGE, "this DiT wants %d style ids per picture", (int)c->styles);
    return 0;
}

lw_val lw_dit(lw_builder *b, const lw_dit_config *c, lw_network_in in)
{
    dit d = {.b = b, .g = b->g, .c = c};
    if (lw_graph_error(b->g) < 0 || !lw_val_ok(in.x))
        return LW_NOVAL;
    int rc = check_inputs(b->g, c, &in);
    if (rc < 0)
        return lw_graph_fail(b->g, rc, "%s", lw_errmsg());
    d.cond = condition(&d, &in);
    d.angle = angles(b->g, c);
    const char *up = lw_scope_push(b->g, "LightningDiT_0");
    lw_val x = tokens(&d, in.x);
    for (int32_t i = 0; i < c->depth; i++)
        x = block(&d, i, x);
    x = head(&d, x);
    lw_scope_set(b->g, up);
    return x;
}
