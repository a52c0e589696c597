/* SPDX-License-Identifier: Apache-2.0 */
/* One small function per op that can be added; each returns the invalid value when its operands do
 * not fit. */
#include "plan/random_graph.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ir/ir.h"

uint32_t random_below(random_graph *r, uint32_t n)
{
    return lw_rng_below(lw_rng_key_of(r->seed, 1), 0, r->draws++, 0, n);
}

bool random_chance(random_graph *r, uint32_t percent)
{
    return random_below(r, 100) < percent;
}

lw_type random_type(const random_graph *r, lw_val v)
{
    return lw_val_type(r->g, v);
}

/* A value of this rank (0: any), the newer the likelier; invalid when there is none. */
lw_val random_pick(random_graph *r, int rank)
{
    for (int tries = 0; tries < 24; tries++) {
        uint32_t n = (uint32_t)r->n_val;
        lw_val v =
            r->val[random_chance(r, 60) && n > 5 ? n - 1 - random_below(r, 5) : random_below(r, n)];
        if (!rank || random_type(r, v).rank == rank)
            return v;
    }
    return LW_NOVAL;
}

lw_val random_input(random_graph *r, lw_type t)
{
    char name[16];
    snprintf(name, sizeof name, "x%d", r->n_input++);
    return lw_input(r->g, name, t);
}

lw_val random_param(random_graph *r, lw_type t, float scale)
{
    char name[16];
    snprintf(name, sizeof name, "p%d", r->n_param++);
    return lw_param(&r->b, name, t, (lw_init){LW_INIT_UNIFORM, scale});
}

/* A weight: mostly a parameter (packed ahead), sometimes computed from one, sometimes an input. */
static lw_val weight(random_graph *r, lw_type t, float scale)
{
    if (random_chance(r, 15))
        return lw_scale(r->g, random_input(r, t), scale);
    lw_val w = random_param(r, t, scale);
    return random_chance(r, 20) ? lw_scale(r->g, w, 0.8f) : w;
}

/* Something that broadcasts to t: a parameter [C], a scalar, [B,1,..,1], [B,..,1], [B,1,..,C], or a
 * twin. */
static lw_val broadcastable(random_graph *r, lw_type t)
{
    int32_t c = lw_type_last(t);
    switch (random_below(r, 7)) {
    case 0:
        return random_param(r, lw_type_of(LW_F32, 1, c), 1.0f);
    case 1:
        return lw_const_f32(r->g, 0.25f * (float)random_below(r, 6));
    case 2:
        for (int i = 1; i < t.rank; i++)
            t.dim[i] = 1;
        return random_input(r, t);
    case 3:
        t.dim[t.rank - 1] = 1;
        return random_input(r, t);
    case 4:
        for (int i = 1; i + 1 < t.rank; i++)
            t.dim[i] = 1;
        return random_input(r, t);
    default:
        for (int tries = 0; tries < 12; tries++) {
            lw_val v = random_pick(r, t.rank);
            if (lw_val_ok(v) && lw_type_eq(random_type(r, v), t))
                return v;
        }
        return random_input(r, t);
    }
}

/* ---- the ops --------------------------------------------------------------------------------- */

static lw_val add_unary(random_graph *r)
{
    static const uint8_t ops[] = {LW_EW_tanh, LW_EW_silu,     LW_EW_sigmoid, LW_EW_relu,
                                  LW_EW_neg,  LW_EW_abs,      LW_EW_sin,     LW_EW_cos,
                                  LW_EW_gelu, LW_EW_softplus, LW_EW_copy};
    lw_val v = random_pick(r, 0);
    switch (random_below(r, 5)) {
    case 0:
        return lw_scale(r->g, v, random_chance(r, 30) ? 1.0f : 0.7f);
    case 1:
        return lw_add_f32(r->g, v, random_chance(r, 30) ? 0.0f : 0.3f);
    default:
        return lw_ew1(r->g, (lw_ewop)ops[random_below(r, LW_COUNT(ops))], v);
    }
}

static lw_val add_binary(random_graph *r)
{
    static const uint8_t ops[] = {LW_EW_add, LW_EW_sub, LW_EW_mul, LW_EW_add, LW_EW_max, LW_EW_min};
    lw_val a = random_pick(r, 0), b = broadcastable(r, random_type(r, a));
    if (random_chance(r, 12))
        return lw_div(r->g, a, lw_add_f32(r->g, lw_sqr(r->g, b), 1.0f));
    if (random_chance(r, 50)) {
        lw_val swap = a;
        a = b;
        b = swap;
    }
    return lw_ew2(r->g, (lw_ewop)ops[random_below(r, LW_COUNT(ops))], a, b);
}

/* Chains long enough to meet the limits of one program. */
static lw_val add_long_chain(random_graph *r)
{
    lw_val v = random_pick(r, 0), u = v;
    int n = 6 + (int)random_below(r, 60);
    for (int i = 0; i < n; i++) {
        v = i % 7 == 3 ? lw_add(r->g, v, lw_scale(r->g, u, 0.1f))
                       : lw_scale(r->g, lw_add_f32(r->g, v, 0.1f), 0.9f);
        if (i % 5 == 4)
            v = lw_mul(
                r->g, v,
                random_param(r, lw_type_of(LW_F32, 1, lw_type_last(random_type(r, v))), 1.0f));
    }
    return lw_ew1(r->g, LW_EW_tanh, v);
}

static lw_val add_linear(random_graph *r)
{
    lw_val x = random_pick(r, 0);
    int32_t k = lw_type_last(random_type(r, x)), n = 1 + (int32_t)random_below(r, 40);
    if (random_chance(r, 25)) { /* [K,N] */
        lw_val y = lw_matmul(r->g, x, weight(r, lw_type_of(LW_F32, 2, k, n), 0.5f), false, false);
        return y;
    }
    lw_val bias = random_chance(r, 60) ? random_param(r, lw_type_of(LW_F32, 1, n), 0.5f) : LW_NOVAL;
    return lw_linear_op(r->g, x, weight(r, lw_type_of(LW_F32, 2, n, k), 0.5f), bias);
}

static lw_val add_gram(random_graph *r) /* X'X / rows */
{
    lw_val x = random_pick(r, 2);
    if (!lw_val_ok(x) || lw_type_last(random_type(r, x)) > 40)
        return LW_NOVAL;
    return lw_matmul(r->g, x, x, true, false);
}

static lw_val add_conv(random_graph *r)
{
    lw_val x = random_pick(r, 4);
    if (!lw_val_ok(x))
        return x;
    lw_type t = random_type(r, x);
    int32_t k = random_chance(r, 65) ? 3 : 1,
            o = random_chance(r, 50) ? t.dim[3] : 1 + (int32_t)random_below(r, 36);
    int stride = random_chance(r, 25) ? 2 : 1;
    int pad[4] = {k / 2, k / 2, k / 2, k / 2};
    if (k == 3 && random_chance(r, 20))
        memcpy(pad, (int[4]){0, 0, 1, 1}, sizeof pad);
    if (t.dim[1] + pad[0] + pad[2] < k || t.dim[2] + pad[1] + pad[3] < k)
        return LW_NOVAL;
    if (k == 3 && random_chance(r, 20)) {
        o = t.dim[3];
        lw_val shift = random_chance(r, 70) ? random_param(r, lw_type_of(LW_F32, 1, o), 0.5f)
                                            : LW_NOVAL;
        return lw_depthwise_op(r->g, x, weight(r, lw_type_of(LW_F32, 4, o, k, k, 1), 0.3f), shift,
                               stride, pad);
    }
    lw_val bias = random_chance(r, 70) ? random_param(r, lw_type_of(LW_F32, 1, o), 0.5f) : LW_NOVAL;
    return lw_conv2d_pad(r->g, x, weight(r, lw_type_of(LW_F32, 4, o, k, k, t.dim[3]), 0.3f), bias,
                         stride, pad);
}

/* conv, + residual, activation: what epilogues are made of. */
static lw_val add_residual(random_graph *r)
{
    lw_val x = random_pick(r, 4);
    if (!lw_val_ok(x))
        return x;
    int32_t c = random_type(r, x).dim[3];
    lw_val h = lw_conv2d_op(r->g, lw_silu(r->g, x),
                            weight(r, lw_type_of(LW_F32, 4, c, 3, 3, c), 0.3f),
                            random_param(r, lw_type_of(LW_F32, 1, c), 0.5f), 1, 1);
    h = random_chance(r, 50) ? lw_add(r->g, x, h) : lw_add(r->g, h, x);
    return random_chance(r, 50) ? lw_relu(r->g, h) : lw_silu(r->g, h);
}

/* upsampling by two, 3x3 convolution, perhaps a row per image, an activation,
 * attention's reshape */
static lw_val add_upconv(random_graph *r)
{
    lw_val x = random_pick(r, 4);
    if (!lw_val_ok(x) || random_type(r, x).dim[1] * random_type(r, x).dim[2] > 40)
        return LW_NOVAL;
    lw_type t = random_type(r, x);
    int32_t c = t.dim[3], o = random_chance(r, 50) ? c : 1 + (int32_t)random_below(r, 20);
    lw_val bias = random_chance(r, 70) ? random_param(r, lw_type_of(LW_F32, 1, o), 0.5f) : LW_NOVAL;
    lw_val h = lw_conv2d_op(r->g, lw_upsample(r->g, x, 2),
                            weight(r, lw_type_of(LW_F32, 4, o, 3, 3, c), 0.3f), bias, 1, 1);
    return random_chance(r, 30) ? lw_silu(r->g, h) : h;
}

/* A row per image behind a convolution, and a residual or an activation behind that. */
static lw_val add_image_bias(random_graph *r)
{
    lw_val x = random_pick(r, 4);
    if (!lw_val_ok(x))
        return x;
    lw_type t = random_type(r, x), row = lw_type_of(LW_F32, 2, t.dim[0], t.dim[3]);
    lw_val w = weight(r, lw_type_of(LW_F32, 4, t.dim[3], 3, 3, t.dim[3]), 0.3f);
    lw_val h = lw_add(r->g, lw_conv2d_op(r->g, x, w, LW_NOVAL, 1, 1), random_input(r, row));
    if (random_chance(r, 40))
        h = lw_add(r->g, x, h);
    return random_chance(r, 40) ? lw_silu(r->g, h) : h;
}

static lw_val add_norm(random_graph *r)
{
    lw_val x = random_pick(r, 0);
    lw_type t = random_type(r, x);
    int32_t c = lw_type_last(t), groups = c % 4 == 0 ? 4 : c % 3 == 0 ? 3 : 1;
    if (random_chance(r, 30))
        groups = 1; /* of rank 2 a LayerNorm */
    if (t.rank < 2 || lw_type_count(t) / t.dim[0] / groups < 4)
        return LW_NOVAL; /* statistics over very few numbers amplify rounding without bound */
    lw_type v = lw_type_of(LW_F32, 1, c), bc = lw_type_of(LW_F32, 2, t.dim[0], c);
    lw_val scale = random_chance(r, 40) ? lw_scale(r->g, random_input(r, bc), 0.3f) : LW_NOVAL;
    lw_val shift = random_chance(r, 40) ? random_input(r, bc) : LW_NOVAL;
    return lw_group_norm_op(r->g, x, random_param(r, v, 1.0f), random_param(r, v, 0.5f), scale,
                            shift, groups, 1e-2f, random_chance(r, 60) ? LW_ACT_SILU : LW_ACT_NONE);
}

/* Queries or keys [B,T,16] of two heads as some networks have them: of unit size, at their positions. */
static lw_val turned(random_graph *r, lw_val q)
{
    lw_type t = lw_val_type(r->g, q);
    lw_val gamma = random_chance(r, 50) ? random_param(r, lw_type_of(LW_F32, 1, 16), 1.0f)
                                        : LW_NOVAL;
    if (random_chance(r, 50))
        q = lw_rms_norm_op(r->g, q, gamma, 1e-2f);
    if (random_chance(r, 60))
        q = lw_rope(r->g, q, random_input(r, lw_type_of(LW_F32, 3, t.dim[1], 1, 8)));
    return q;
}

static lw_val add_attention(random_graph *r)
{
    lw_val x = random_pick(r, 4);
    if (!lw_val_ok(x))
        return x;
    lw_type t = random_type(r, x),
            tokens = lw_type_of(LW_F32, 3, t.dim[0], t.dim[1] * t.dim[2], t.dim[3]);
    lw_val w = random_param(r, lw_type_of(LW_F32, 2, 48, t.dim[3]), 0.4f);
    lw_val qkv = lw_linear_op(r->g, lw_reshape(r->g, x, tokens), w, LW_NOVAL), a;
    lw_val q = lw_slice(r->g, qkv, 2, 0, 16);
    switch (random_below(r, 3)) {
    case 0:
        a = lw_attention(r->g, qkv, 2);
        break;
    case 1: /* of the first token's query alone */
        q = lw_slice(r->g, q, 1, 0, 1);
        a = lw_cross_attention(r->g, q, lw_slice(r->g, qkv, 2, 16, 48), 2);
        a = lw_add(r->g, lw_slice(r->g, qkv, 2, 0, 16), lw_mean(r->g, a, LW_OVER_ALL));
        break;
    default:
        a = lw_attention_qkv(r->g, turned(r, q), turned(r, lw_slice(r->g, qkv, 2, 16, 32)),
                             lw_slice(r->g, qkv, 2, 32, 48), 2);
        break;
    }
    lw_val back = random_param(r, lw_type_of(LW_F32, 2, t.dim[3], 16), 0.4f);
    return lw_add(r->g, x, lw_reshape(r->g, lw_linear_op(r->g, a, back, LW_NOVAL), t));
}

static lw_val add_softmax(random_graph *r)
{
    return lw_softmax(r->g, random_pick(r, 0));
}

static lw_val add_cross_entropy(random_graph *r)
{
    lw_val x = random_pick(r, 2);
    lw_type t = lw_val_ok(x) ? random_type(r, x) : (lw_type){0};
    if (t.rank != 2 || t.dim[0] != lw_type_count(lw_val_type(r->g, r->ids)) || t.dim[1] < 6)
        return LW_NOVAL;
    return lw_cross_entropy(r->g, x, r->ids);
}

static lw_val add_reduce(random_graph *r)
{
    lw_val x = random_pick(r, 0);
    lw_reduce_over over = (lw_reduce_over)random_below(r, 5);
    if (random_type(r, x).rank < 2)
        return LW_NOVAL;
    return random_chance(r, 70) ? lw_mean(r->g, x, over)
                                : lw_scale(r->g, lw_sum(r->g, x, over), 0.05f);
}

static lw_val add_concat(random_graph *r)
{
    lw_val a = random_pick(r, 0), b = random_pick(r, random_type(r, a).rank);
    lw_type x = random_type(r, a), y = random_type(r, b);
    int differ = 0, axis = (int)random_below(r, (uint32_t)x.rank);
    for (int i = 0; i < x.rank; i++)
        if (x.dim[i] != y.dim[i]) {
            differ++;
            axis = i;
        }
    if (differ > 1 || axis == 0 || x.dim[axis] + y.dim[axis] > 80)
        return LW_NOVAL; /* the batch stays what it is: row ids and labels belong to it */
    return lw_concat(r->g, a, b, axis);
}

static lw_val add_slice(random_graph *r)
{
    lw_val x = random_pick(r, 0);
    lw_type t = random_type(r, x);
    if (t.rank < 2)
        return LW_NOVAL;
    int axis = 1 + (int)random_below(r, (uint32_t)t.rank - 1);
    if (t.dim[axis] < 3)
        return LW_NOVAL;
    int begin = (int)random_below(r, (uint32_t)t.dim[axis] - 1);
    return lw_slice(r->g, x, axis, begin,
                    begin + 1 + (int)random_below(r, (uint32_t)(t.dim[axis] - begin)));
}

static lw_val add_reshape(random_graph *r)
{
    lw_val x = random_pick(r, 0);
    lw_type t = random_type(r, x);
    if (t.rank == 4)
        return lw_reshape(r->g, x,
                          random_chance(r, 50)
                              ? lw_type_of(LW_F32, 3, t.dim[0], t.dim[1] * t.dim[2], t.dim[3])
                              : lw_type_of(LW_F32, 4, t.dim[0], t.dim[2], t.dim[1], t.dim[3]));
    if (t.rank == 3)
        return lw_reshape(r->g, x, lw_type_of(LW_F32, 4, t.dim[0], 1, t.dim[1], t.dim[2]));
    return LW_NOVAL;
}

static lw_val add_resize(random_graph *r, lw_val x)
{
    lw_attr_resize to = {.h = 2 + (int)random_below(r, 6), .w = 2 + (int)random_below(r, 6)};
    to.filter = random_below(r, 2) ? LW_FILTER_BICUBIC : LW_FILTER_BILINEAR;
    to.form = random_below(r, 2) ? LW_RESAMPLE_FLOAT_AA : LW_RESAMPLE_TORCH;
    return lw_resize(r->g, x, to);
}

static lw_val add_space(random_graph *r)
{
    lw_val x = random_pick(r, 4);
    if (!lw_val_ok(x))
        return x;
    lw_type t = random_type(r, x);
    switch (random_below(r, 7)) {
    case 0:
        return lw_subsample(r->g, x, 2);
    case 1:
        return t.dim[1] * t.dim[2] <= 40 ? lw_upsample(r->g, x, 2) : LW_NOVAL;
    case 2:
        return t.dim[1] > 2 && t.dim[2] > 2 ? lw_pool2d(r->g, x, 3, 2, 1, false) : LW_NOVAL;
    case 3:
        return t.dim[1] > 1 && t.dim[2] > 1 ? lw_pool2d(r->g, x, 2, 2, 0, true) : LW_NOVAL;
    case 4:
        return add_resize(r, x);
    case 5:
        return lw_patches(r->g, x, t.dim[1] % 2 || t.dim[2] % 2 ? 1 : 2);
    default:
        return lw_pad(r->g, x, (int[3]){1, 0, (int)random_below(r, 2)},
                      (int[3]){0, t.dim[2] > 2 ? -1 : 1, 1});
    }
}

static lw_val add_embedding(random_graph *r)
{
    return lw_embedding(
        r->g, random_param(r, lw_type_of(LW_F32, 2, 6, 3 + (int32_t)random_below(r, 20)), 1.0f),
        r->ids);
}

/* One or two ids a row, sometimes added to another bag of the same width. */
static lw_val add_bag(random_graph *r)
{
    int32_t ids = (int32_t)lw_type_count(lw_val_type(r->g, r->ids));
    int32_t k = ids % 2 == 0 && random_chance(r, 50) ? 2 : 1;
    lw_type table = lw_type_of(LW_F32, 2, 6, 3 + (int32_t)random_below(r, 20));
    lw_val base = LW_NOVAL;
    if (random_chance(r, 50))
        base = lw_embedding_bag(r->g, random_param(r, table, 1.0f), r->ids, base, k, 1, 0);
    return lw_embedding_bag(r->g, random_param(r, table, 1.0f), r->ids, base, k, 2, 2);
}

/* Distances of the rows of a matrix to those of another. */
static lw_val add_pairs(random_graph *r)
{
    lw_val x = random_pick(r, 2);
    if (!lw_val_ok(x))
        return x;
    lw_type t = random_type(r, x);
    lw_val y = random_input(r, lw_type_of(LW_F32, 2, 3 + (int32_t)random_below(r, 5), t.dim[1]));
    return lw_pair_distance(r->g, x, y, random_chance(r, 50) ? LW_DISTANCE_L1 : LW_DISTANCE_L2);
}

static lw_val add_reverse(random_graph *r)
{
    static const lw_reverse row[2] = {
        {.a = .8, .s = .6, .c0 = .7, .c1 = .5, .c2 = .3, .c3 = .2, .clip = 1.0, .limit = 2.0},
        {.a = .6, .s = .8, .c0 = .5, .c1 = .7, .c2 = .1, .c3 = .1, .clip = 2.0, .limit = 1.0}};
    lw_val x = random_pick(r, 0);
    lw_type t = random_type(r, x);
    lw_val noise = random_chance(r, 50) ? random_input(r, t) : LW_NOVAL;
    lw_val numbers = lw_at_step(r->g, lw_const(r->g, lw_type_of(LW_I64, 2, 2, 8), row));
    lw_prediction p = (lw_prediction)random_below(r, 4);
    return lw_reverse_step_op(r->g, x, lw_ew1(r->g, LW_EW_tanh, x), numbers, noise, p,
                              random_chance(r, 50));
}

static lw_val add_random(random_graph *r)
{
    lw_val x = random_pick(r, 0);
    lw_type t = random_type(r, x);
    char stream[16];
    if (t.dim[0] != lw_type_count(lw_val_type(r->g, r->rows)) || t.rank < 2)
        return LW_NOVAL;
    if (random_chance(r, 60))
        return lw_dropout(r->g, x, r->rows, 0.3f);
    snprintf(stream, sizeof stream, "noise%u", random_below(r, 3));
    return lw_random(r->g, stream, random_chance(r, 70) ? LW_RANDOM_NORMAL : LW_RANDOM_UNIFORM, 0,
                     t, r->rows);
}

static lw_val add_stats(random_graph *r)
{
    lw_val x = random_pick(r, 4), out[LW_STATS];
    if (!lw_val_ok(x) || random_type(r, x).dim[1] < 4 || random_type(r, x).dim[2] < 4)
        return LW_NOVAL;
    lw_feature_stats(r->g, x, out);
    for (int i = 0; i < LW_STATS; i++)
        if (random_chance(r, 40))
            r->val[r->n_val++] = out[i];
    return out[random_below(r, LW_STATS)];
}

static lw_val add_drift(random_graph *r)
{
    lw_val x = random_pick(r, 3);
    if (!lw_val_ok(x) || random_type(r, x).dim[0] < 2)
        return LW_NOVAL;
    lw_type t = random_type(r, x), p = t;
    p.dim[0] = 5;
    lw_attr_drift a = {.groups = 1,
                       .n = t.dim[0],
                       .np = 5,
                       .slots = t.dim[1],
                       .c = t.dim[2],
                       .n_tau = 2,
                       .tau = {0.5, 0.2},
                       .normalize_over_x = random_chance(r, 70)};
    lw_drift_out o = lw_drift_field(r->g, x, random_input(r, p), LW_NOVAL, LW_NOVAL, &a);
    return o.loss;
}

static const struct {
    lw_val (*add)(random_graph *r);
    int weight;
} rules[] = {
    {add_unary, 18},    {add_binary, 22},    {add_long_chain, 2}, {add_linear, 8},
    {add_gram, 2},      {add_conv, 12},      {add_residual, 8},   {add_norm, 8},
    {add_attention, 3}, {add_softmax, 2},    {add_reduce, 6},     {add_concat, 6},
    {add_slice, 6},     {add_reshape, 6},    {add_space, 10},     {add_embedding, 3},
    {add_random, 5},    {add_stats, 3},      {add_drift, 2},      {add_cross_entropy, 3},
    {add_upconv, 6},    {add_image_bias, 5}, {add_bag, 3},        {add_pairs, 3},
    {add_reverse, 2},
};

lw_val random_op(random_graph *r)
{
    int total = 0;
    for (size_t i = 0; i < LW_COUNT(rules); i++)
        total += rules[i].weight;
    int at = (int)random_below(r, (uint32_t)total);
    size_t i = 0;
    while (at >= rules[i].weight)
        at -= rules[i++].weight;
    return rules[i].add(r);
}
