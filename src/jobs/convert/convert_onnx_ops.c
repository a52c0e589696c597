/* SPDX-License-Identifier: Apache-2.0 */
/* Ops but the elementwise ones in ONNX's operators: what lw_attr_* of ir_ops.h say, said there. */
#include <math.h>

#include "jobs/convert/convert_onnx.h"

static lw_onnx_val shaped(lw_onnx *m, lw_onnx_val x, lw_type t)
{
    int64_t dim[LW_MAX_RANK];
    for (int i = 0; i < t.rank; i++)
        dim[i] = t.dim[i];
    return lw_onnx_shape(m, x, dim, t.rank);
}

/* Behind a product: bias (0: none), image bias, residual, activation. */
static lw_onnx_val finish(lw_onnx *m, const lw_node *n, lw_onnx_val y, const int at[3], int32_t act)
{
    lw_type t = lw_val_type(m->g, n->out[0]);
    if (at[0] && lw_onnx_in(n, at[0]))
        y = lw_onnx_2(m, "Add", y, lw_onnx_row(m, n, at[0]));
    if (at[1] && lw_onnx_in(n, at[1]))
        y = lw_onnx_2(m, "Add", y,
                      lw_onnx_shape(m, lw_onnx_in(n, at[1]),
                                    (int64_t[]){t.dim[0], 1, 1, lw_type_last(t)}, 4));
    if (lw_onnx_in(n, at[2]))
        y = lw_onnx_2(m, "Add", y, shaped(m, lw_onnx_in(n, at[2]), t));
    return lw_onnx_act(m, y, act);
}

/* ---- products -------------------------------------------------------------------------------- */

static lw_onnx_val matrix(lw_onnx *m, const lw_node *n, int i, bool turn)
{
    lw_type t = lw_onnx_type(m, n, i);
    int64_t cols = lw_type_last(t), rows = lw_type_count(t) / LW_MAX(cols, 1);
    lw_onnx_val x = lw_onnx_in(n, i);
    if (t.rank != 2)
        x = lw_onnx_shape(m, x, (int64_t[]){rows, cols}, 2);
    return turn ? lw_onnx_turn(m, x, (int64_t[]){1, 0}, 2) : x;
}

static lw_onnx_val matmul(lw_onnx *m, const lw_node *n)
{
    const lw_attr_matmul *a = n->attr;
    if (a->packed_n || a->store || lw_onnx_in(n, 4) || lw_onnx_in(n, 5))
        return 0;
    lw_onnx_val x = a->trans_a ? matrix(m, n, 0, true) : lw_onnx_in(n, 0);
    lw_onnx_val y = lw_onnx_2(m, "MatMul", x, matrix(m, n, 1, a->trans_b));
    return finish(m, n, y, (int[]){2, 0, 3}, a->act);
}

/* Conv of x [B,H,W,C] and w [outer,KH,KW,inner] with the rest as finish has it. */
static lw_onnx_val conv(lw_onnx *m, const lw_node *n)
{
    const lw_attr_conv *a = n->attr;
    bool back = n->op == LW_OP_CONV2D_DX, deep = n->op == LW_OP_DEPTHWISE;
    lw_type y = lw_val_type(m->g, n->out[0]), x = lw_onnx_type(m, n, 0);
    if (lw_onnx_in(n, 4))
        return 0; /* of 8-bit activations */
    lw_onnx_val w = lw_onnx_shape(m, lw_onnx_in(n, 1),
                                  (int64_t[]){a->o, a->kh, a->kw, deep ? 1 : a->c}, 4);
    lw_onnx_val in[2] = {lw_onnx_planar(m, lw_onnx_in(n, 0)), lw_onnx_planar(m, w)};
    lw_onnx_ints(m, "kernel_shape", (int64_t[]){a->kh, a->kw}, 2);
    lw_onnx_ints(m, "strides", (int64_t[]){a->stride, a->stride}, 2);
    lw_onnx_ints(m, "pads", (int64_t[]){a->pad_t, a->pad_l, a->pad_b, a->pad_r}, 4);
    lw_onnx_int(m, "group", deep ? a->c : 1);
    if (back) {
        int64_t h = (x.dim[1] - 1) * a->stride - a->pad_t - a->pad_b + a->kh;
        int64_t v = (x.dim[2] - 1) * a->stride - a->pad_l - a->pad_r + a->kw;
        lw_onnx_ints(m, "output_padding", (int64_t[]){y.dim[1] - h, y.dim[2] - v}, 2);
    }
    lw_onnx_val r = lw_onnx_2(m, back ? "ConvTranspose" : "Conv", in[0], in[1]);
    r = lw_onnx_last(m, r);
    return finish(m, n, r, back ? (int[]){3, 0, 2} : (int[]){2, deep ? 0 : 5, 3}, a->act);
}

/* ---- norms and attention --------------------------------------------------------------------- */

static lw_onnx_val mean(lw_onnx *m, lw_onnx_val x)
{
    lw_onnx_ints(m, "axes", (int64_t[]){1, 3}, 2);
    lw_onnx_int(m, "keepdims", 1);
    return lw_onnx_1(m, "ReduceMean", x);
}

static lw_onnx_val norm(lw_onnx *m, const lw_node *n)
{
    const lw_attr_norm *a = n->attr;
    lw_type t = lw_onnx_type(m, n, 0);
    int64_t b = t.dim[0], c = lw_type_last(t), s = lw_type_count(t) / (b * c);
    if (a->store || a->also || lw_onnx_in(n, 5))
        return 0;
    lw_onnx_val x = lw_onnx_shape(m, lw_onnx_in(n, 0), (int64_t[]){b, s, a->groups, c / a->groups},
                                  4);
    if (!a->rms)
        x = lw_onnx_2(m, "Sub", x, mean(m, x));
    lw_onnx_val var = mean(m, lw_onnx_2(m, "Mul", x, x));
    lw_onnx_val std = lw_onnx_1(m, "Sqrt", lw_onnx_2(m, "Add", var, lw_onnx_f32(m, a->eps)));
    lw_onnx_val y = lw_onnx_shape(m, lw_onnx_2(m, "Div", x, std), (int64_t[]){b, s, c}, 3);
    if (lw_onnx_in(n, 1))
        y = lw_onnx_2(m, "Mul", y, lw_onnx_row(m, n, 1));
    if (lw_onnx_in(n, 2))
        y = lw_onnx_2(m, "Add", y, lw_onnx_row(m, n, 2));
    for (int i = 3; i <= 4; i++)
        if (lw_onnx_in(n, i)) {
            lw_onnx_val v = lw_onnx_shape(m, lw_onnx_in(n, i), (int64_t[]){b, 1, c}, 3);
            if (i == 3)
                v = lw_onnx_2(m, "Add", v, lw_onnx_f32(m, 1.0f));
            y = lw_onnx_2(m, i == 3 ? "Mul" : "Add", y, v);
        }
    return shaped(m, lw_onnx_act(m, y, a->act), t);
}

/* Channels [part C, part C + C) of operand i as heads: [B,heads,T,D], for keys [B,heads,D,T]. */
static lw_onnx_val heads(lw_onnx *m, const lw_node *n, int i, int part, int64_t c, bool keys)
{
    const lw_attr_attention *a = n->attr;
    lw_type t = lw_onnx_type(m, n, i);
    lw_onnx_val x = lw_onnx_in(n, i);
    if (t.dim[2] != c) {
        const int64_t ends[2] = {part * c, part * c + c}, axis = 2;
        lw_onnx_val in[4] = {x, lw_onnx_i64(m, ends, 1), lw_onnx_i64(m, ends + 1, 1),
                             lw_onnx_i64(m, &axis, 1)};
        lw_onnx_node(m, "Slice", in, 4, ++m->last);
        x = m->last;
    }
    x = lw_onnx_shape(m, x, (int64_t[]){t.dim[0], t.dim[1], a->heads, c / a->heads}, 4);
    return lw_onnx_turn(m, x, keys ? (int64_t[]){0, 2, 3, 1} : (int64_t[]){0, 2, 1, 3}, 4);
}

static lw_onnx_val attention(lw_onnx *m, const lw_node *n)
{
    const lw_attr_attention *a = n->attr;
    lw_type o = lw_val_type(m->g, n->out[0]);
    int64_t c = o.dim[2];
    int last = n->n_in - 1;
    if (a->window > 0 || a->num != LW_NUM_F32 || a->store)
        return 0;
    lw_onnx_val q = heads(m, n, 0, 0, c, false);
    lw_onnx_val k = heads(m, n, n->n_in > 1 ? 1 : 0, n->n_in == 1, c, true);
    lw_onnx_val v = heads(m, n, last, 2 - last, c, false);
    const int64_t per_head = c / a->heads;
    q = lw_onnx_2(m, "Mul", q, lw_onnx_f32(m, 1.0f / sqrtf((float)per_head)));
    lw_onnx_val p = lw_onnx_2(m, "MatMul", q, k);
    lw_onnx_int(m, "axis", -1);
    p = lw_onnx_1(m, "Softmax", p);
    p = lw_onnx_2(m, "MatMul", p, v);
    return shaped(m, lw_onnx_turn(m, p, (int64_t[]){0, 2, 1, 3}, 4), o);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static lw_onnx_val reduce(lw_onnx *m, const lw_node *n)
{
    const lw_attr_reduce *a = n->attr;
    lw_type t = lw_onnx_type(m, n, 0);
    int from = 0, to = t.rank, k = 0;
    int64_t axes[LW_MAX_RANK];
    if (a->over == LW_OVER_LAST)
        from = t.rank - 1;
    if (a->over == LW_OVER_MIDDLE || a->over == LW_OVER_BATCH)
        from = 1;
    if (a->over == LW_OVER_ROWS || a->over == LW_OVER_MIDDLE)
        to = t.rank - 1;
    for (int i = from; i < to; i++)
        axes[k++] = i;
    lw_onnx_val x = lw_onnx_in(n, 0);
    if (k && a->mean) {
        lw_onnx_ints(m, "axes", axes, k);
        x = lw_onnx_1(m, "ReduceMean", x);
    } else if (k) {
        x = lw_onnx_2(m, "ReduceSum", x, lw_onnx_i64(m, axes, k));
    }
    return shaped(m, x, lw_val_type(m->g, n->out[0]));
}

/* x[from : to : step] along n axes. */
static lw_onnx_val slice(lw_onnx *m, lw_onnx_val x, const int64_t *from, const int64_t *to,
                         const int64_t *axis, const int64_t *step, int n)
{
    lw_onnx_val in[5] = {x, lw_onnx_i64(m, from, n), lw_onnx_i64(m, to, n), lw_onnx_i64(m, axis, n),
                         lw_onnx_i64(m, step, n)};
    lw_onnx_node(m, "Slice", in, 5, ++m->last);
    return m->last;
}

static lw_onnx_val one_slice(lw_onnx *m, const lw_node *n)
{
    const lw_attr_axis *a = n->attr;
    const int64_t axis = a->axis, from = a->begin, to = a->end, one = 1;
    return slice(m, lw_onnx_in(n, 0), &from, &to, &axis, &one, 1);
}

static lw_onnx_val subsample(lw_onnx *m, const lw_node *n)
{
    const lw_attr_factor *a = n->attr;
    lw_type t = lw_onnx_type(m, n, 0);
    return slice(m, lw_onnx_in(n, 0), (int64_t[]){0, 0}, (int64_t[]){t.dim[1], t.dim[2]},
                 (int64_t[]){1, 2}, (int64_t[]){a->k, a->k}, 2);
}

static lw_onnx_val pad(lw_onnx *m, const lw_node *n)
{
    const lw_attr_pad *a = n->attr;
    const int64_t by[8] = {0, a->lo[0], a->lo[1], a->lo[2], 0, a->hi[0], a->hi[1], a->hi[2]};
    return lw_onnx_type(m, n, 0).rank == 4
               ? lw_onnx_2(m, "Pad", lw_onnx_in(n, 0), lw_onnx_i64(m, by, 8))
               : 0;
}

/* Without zeros around pictures, which plans alone ask for. */
static lw_onnx_val patches(lw_onnx *m, const lw_node *n)
{
    const lw_attr_patches *a = n->attr;
    lw_type t = lw_onnx_type(m, n, 0), y = lw_val_type(m->g, n->out[0]);
    int64_t k = a->k, h = a->h ? a->h : t.dim[1], w = a->h ? a->w : t.dim[2];
    int64_t c = a->h ? y.dim[3] : t.dim[3];
    const int64_t cut[6] = {t.dim[0], h / k, k, w / k, k, c},
                  rows[6] = {t.dim[0], h / k, w / k, k, k, c};
    lw_onnx_val x = lw_onnx_shape(m, lw_onnx_in(n, 0), a->h ? rows : cut, 6);
    return shaped(m, lw_onnx_turn(m, x, (int64_t[]){0, 1, 3, 2, 4, 5}, 6), y);
}

static lw_onnx_val concat(lw_onnx *m, const lw_node *n)
{
    lw_onnx_int(m, "axis", ((const lw_attr_axis *)n->attr)->axis);
    return lw_onnx_2(m, "Concat", lw_onnx_in(n, 0), lw_onnx_in(n, 1));
}

static lw_onnx_val embedding(lw_onnx *m, const lw_node *n)
{
    lw_type t = lw_onnx_type(m, n, 0);
    lw_onnx_val table = lw_onnx_shape(m, lw_onnx_in(n, 0), (int64_t[]){t.dim[0], -1}, 2);
    return lw_onnx_2(m, "Gather", table, lw_onnx_row(m, n, 1));
}

/* ---- space ----------------------------------------------------------------------------------- */

static lw_onnx_val pool(lw_onnx *m, const lw_node *n)
{
    const lw_attr_pool *a = n->attr;
    lw_onnx_val x = lw_onnx_planar(m, lw_onnx_in(n, 0));
    lw_onnx_ints(m, "kernel_shape", (int64_t[]){a->k, a->k}, 2);
    lw_onnx_ints(m, "strides", (int64_t[]){a->stride, a->stride}, 2);
    lw_onnx_ints(m, "pads", (int64_t[]){a->pad, a->pad, a->pad, a->pad}, 4);
    if (!a->max)
        lw_onnx_int(m, "count_include_pad", !a->inside);
    return lw_onnx_last(m, lw_onnx_1(m, a->max ? "MaxPool" : "AveragePool", x));
}

static void resize_words(lw_onnx *m, const char *mode, const char *coordinates)
{
    lw_onnx_word(m, "mode", mode);
    lw_onnx_word(m, "coordinate_transformation_mode", coordinates);
}

static lw_onnx_val upsample(lw_onnx *m, const lw_node *n)
{
    const float k = (float)((const lw_attr_factor *)n->attr)->k;
    lw_onnx_val x = lw_onnx_planar(m, lw_onnx_in(n, 0));
    lw_onnx_val scales = lw_onnx_f32s(m, (float[]){1.0f, 1.0f, k, k}, 4);
    resize_words(m, "nearest", "asymmetric");
    lw_onnx_word(m, "nearest_mode", "floor");
    return lw_onnx_last(m, lw_onnx_3(m, "Resize", x, 0, scales));
}

static lw_onnx_val resize(lw_onnx *m, const lw_node *n)
{
    const lw_attr_resize *a = n->attr;
    lw_type t = lw_onnx_type(m, n, 0);
    bool cubic = a->filter == LW_FILTER_BICUBIC, tf = a->form == LW_RESAMPLE_TF_INCEPTION;
    if (a->form != LW_RESAMPLE_TORCH && !tf)
        return 0; /* antialiased */
    lw_onnx_val in[4] = {lw_onnx_planar(m, lw_onnx_in(n, 0))};
    bool scaled = a->scale[0] > 0.0;
    if (scaled)
        in[2] = lw_onnx_f32s(m, (float[]){1.0f, 1.0f, (float)a->scale[0], (float)a->scale[1]}, 4);
    else
        in[3] = lw_onnx_i64(m, (int64_t[]){t.dim[0], t.dim[3], a->h, a->w}, 4);
    resize_words(m, cubic ? "cubic" : "linear", tf ? "asymmetric" : "half_pixel");
    if (cubic)
        lw_onnx_float(m, "cubic_coeff_a", -0.75f);
    lw_onnx_node(m, "Resize", in, scaled ? 3 : 4, ++m->last);
    return lw_onnx_last(m, m->last);
}

lw_onnx_val lw_onnx_op(lw_onnx *m, const lw_node *n)
{
    switch (n->op) {
    case LW_OP_RESHAPE:
        return shaped(m, lw_onnx_in(n, 0), lw_val_type(m->g, n->out[0]));
    case LW_OP_MATMUL:
        return matmul(m, n);
    case LW_OP_CONV2D:
    case LW_OP_CONV2D_DX:
    case LW_OP_DEPTHWISE:
        return conv(m, n);
    case LW_OP_GROUP_NORM:
        return norm(m, n);
    case LW_OP_ATTENTION:
        return attention(m, n);
    case LW_OP_SOFTMAX:
        lw_onnx_int(m, "axis", -1);
        return lw_onnx_1(m, "Softmax", lw_onnx_in(n, 0));
    case LW_OP_REDUCE:
        return reduce(m, n);
    case LW_OP_CONCAT:
        return concat(m, n);
    case LW_OP_SLICE:
        return one_slice(m, n);
    case LW_OP_PAD:
        return pad(m, n);
    case LW_OP_SUBSAMPLE:
        return subsample(m, n);
    case LW_OP_PATCHES:
        return patches(m, n);
    case LW_OP_UPSAMPLE:
        return upsample(m, n);
    case LW_OP_POOL:
        return pool(m, n);
    case LW_OP_RESIZE:
        return resize(m, n);
    case LW_OP_EMBEDDING:
        return embedding(m, n);
    default:
        return 0;
    }
}
