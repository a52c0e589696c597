/* SPDX-License-Identifier: Apache-2.0 */
/* Changing the resolution of [B,H,W,C]: subsample, nearest upsample, pooling, resize. */
#include "ir/ops/ops.h"

#include <math.h>

static int need_image(const lw_graph *g, const lw_node *n, lw_type *t)
{
    *t = in_type(g, n, 0);
    if (t->rank != 4 || t->dtype != LW_F32)
        return lw_op_fail(g, n, "needs f32 [B,H,W,C]");
    return 0;
}

static int need_factor(const lw_graph *g, const lw_node *n, lw_type *t)
{
    if (((const lw_attr_factor *)n->attr)->k < 1)
        return lw_op_fail(g, n, "the factor must be positive");
    return need_image(g, n, t);
}

static void print_factor(lw_str *s, const lw_node *n)
{
    const lw_attr_factor *a = n->attr;
    lw_str_addf(s, "%d", a->k);
    if (a->h)
        lw_str_addf(s, " to %dx%d", a->h, a->w);
}

static lw_val factor_op(lw_graph *g, lw_op op, lw_val x, int k, int h, int w)
{
    lw_attr_factor a = {k, h, w};
    return lw_val_ok(x) ? lw_graph_op(g, op, &x, 1, &a, sizeof a) : x;
}

/* ---- subsample ------------------------------------------------------------------------------- */

static int infer_subsample(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_factor *a = n->attr;
    lw_type t;
    LW_TRY(need_factor(g, n, &t));
    t.dim[1] = LW_CEIL_DIV(t.dim[1], a->k);
    t.dim[2] = LW_CEIL_DIV(t.dim[2], a->k);
    return lw_op_one(out, t);
}

static int infer_to_space(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_factor *a = n->attr;
    lw_type t;
    LW_TRY(need_image(g, n, &t));
    if (a->h < 1 || a->w < 1)
        return lw_op_fail(g, n, "size must be positive");
    t.dim[1] = a->h;
    t.dim[2] = a->w;
    return lw_op_one(out, t);
}

static void grad_subsample(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                           lw_val *din)
{
    lw_type t = in_type(g, n, 0);
    if (need[0])
        din[0] = factor_op(g, LW_OP_SUBSAMPLE_GRAD, dout[0], ((const lw_attr_factor *)n->attr)->k,
                           t.dim[1], t.dim[2]);
}

const lw_op_def lw_op_subsample = {
    .name = "subsample",
    .infer = infer_subsample,
    .grad = grad_subsample,
    .cost = lw_cost_bytes,
    .print = print_factor,
    .flags = LW_OPF_CHEAP,
};
const lw_op_def lw_op_subsample_grad = {
    .name = "subsample_grad",
    .infer = infer_to_space,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
    .print = print_factor,
};

lw_val lw_subsample(lw_graph *g, lw_val x, int stride)
{
    return factor_op(g, LW_OP_SUBSAMPLE, x, stride, 0, 0);
}

/* ---- patches --------------------------------------------------------------------------------- */

static int infer_patches(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_patches *a = n->attr;
    lw_type t = in_type(g, n, 0);
    bool padded = false;
    for (int i = 0; i < 4; i++) {
        padded |= a->pad[i] != 0;
        if (a->pad[i] < 0)
            return lw_op_fail(g, n, "nothing of a picture is cut off");
    }
    if (a->k < 1 || t.rank != (a->h ? 3 : 4) || (a->h && padded))
        return lw_op_fail(g, n, "needs [B,H,W,C] or their rows, and a positive factor");
    int64_t h = a->h ? a->h : (int64_t)t.dim[1] + a->pad[0] + a->pad[2],
            w = a->h ? a->w : (int64_t)t.dim[2] + a->pad[1] + a->pad[3];
    int64_t rows = h / a->k * (w / a->k), kk = (int64_t)a->k * a->k;
    if (h % a->k || w % a->k || (a->h && (t.dim[1] != rows || t.dim[2] % kk)))
        return lw_op_fail(g, n, "space must be a multiple of the factor");
    if (a->h)
        return lw_op_one(
            out, lw_type_of(t.dtype, 4, t.dim[0], (int32_t)h, (int32_t)w, t.dim[2] / (int32_t)kk));
    if (rows > LW_MAX_DIM || kk > LW_MAX_DIM / t.dim[3])
        return lw_op_fail(g, n, "there are too many patches, or they are too large");
    return lw_op_one(out, lw_type_of(t.dtype, 3, t.dim[0], (int32_t)rows, (int32_t)kk * t.dim[3]));
}

static lw_val patches_op(lw_graph *g, lw_val x, lw_attr_patches a)
{
    return lw_val_ok(x) ? lw_graph_op(g, LW_OP_PATCHES, &x, 1, &a, sizeof a) : x;
}

/* Of pictures without zeros around them. */
static void grad_patches(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                         lw_val *din)
{
    const lw_attr_patches *a = n->attr;
    lw_type t = in_type(g, n, 0);
    if (need[0])
        din[0] = patches_op(
            g, dout[0],
            (lw_attr_patches){.k = a->k, .h = a->h ? 0 : t.dim[1], .w = a->h ? 0 : t.dim[2]});
}

static void print_patches(lw_str *s, const lw_node *n)
{
    const lw_attr_patches *a = n->attr;
    print_factor(s, n);
    if (a->pad[0] | a->pad[1] | a->pad[2] | a->pad[3])
        lw_str_addf(s, " pad %d,%d,%d,%d", a->pad[0], a->pad[1], a->pad[2], a->pad[3]);
}

const lw_op_def lw_op_patches = {
    .name = "patches",
    .infer = infer_patches,
    .grad = grad_patches,
    .cost = lw_cost_bytes,
    .print = print_patches,
};

lw_val lw_patches(lw_graph *g, lw_val x, int k)
{
    return patches_op(g, x, (lw_attr_patches){.k = k});
}

lw_val lw_patches_padded(lw_graph *g, lw_val x, int k, const int pad[4])
{
    return patches_op(g, x, (lw_attr_patches){.k = k, .pad = {pad[0], pad[1], pad[2], pad[3]}});
}

lw_val lw_patches_back(lw_graph *g, lw_val rows, int k, int h, int w)
{
    return patches_op(g, rows, (lw_attr_patches){.k = k, .h = h, .w = w});
}

/* ---- nearest upsample ------------------------------------------------------------------------ */

static int infer_upsample(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_factor *a = n->attr;
    lw_type t;
    LW_TRY(need_factor(g, n, &t));
    if ((int64_t)LW_MAX(t.dim[1], t.dim[2]) * a->k > LW_MAX_DIM)
        return lw_op_fail(g, n, "the factor is too large");
    t.dim[1] *= a->k;
    t.dim[2] *= a->k;
    return lw_op_one(out, t);
}

static int infer_upsample_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_factor *a = n->attr;
    lw_type t;
    LW_TRY(need_factor(g, n, &t));
    if (t.dim[1] % a->k || t.dim[2] % a->k)
        return lw_op_fail(g, n, "space must be a multiple of the factor");
    t.dim[1] /= a->k;
    t.dim[2] /= a->k;
    return lw_op_one(out, t);
}

static void grad_upsample(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                          lw_val *din)
{
    if (need[0])
        din[0] = factor_op(g, LW_OP_UPSAMPLE_GRAD, dout[0], ((const lw_attr_factor *)n->attr)->k, 0,
                           0);
}

const lw_op_def lw_op_upsample = {
    .name = "upsample",
    .infer = infer_upsample,
    .grad = grad_upsample,
    .cost = lw_cost_bytes,
    .print = print_factor,
    .flags = LW_OPF_CHEAP,
};
const lw_op_def lw_op_upsample_grad = {
    .name = "upsample_grad",
    .infer = infer_upsample_grad,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
    .print = print_factor,
};

lw_val lw_upsample(lw_graph *g, lw_val x, int factor)
{
    return factor == 1 ? x : factor_op(g, LW_OP_UPSAMPLE, x, factor, 0, 0);
}

/* ---- resize ---------------------------------------------------------------------------------- */

static bool resize_keeps(lw_type t, const lw_attr_resize *a)
{
    bool scaled = a->filter == LW_FILTER_BICUBIC && a->form == LW_RESAMPLE_TORCH &&
                  a->scale[0] > 0.0;
    return t.rank == 4 && t.dim[1] == a->h && t.dim[2] == a->w && !scaled;
}

static bool scale_fits(double scale, int32_t from, int32_t to)
{
    return scale == 0.0 || (scale > 0.0 && floor(from * scale) == to);
}

/* Of x to h x w. */
static int check_resize(const lw_graph *g, const lw_node *n, lw_type x, int32_t h, int32_t w)
{
    const lw_attr_resize *a = n->attr;
    if (h < 1 || w < 1)
        return lw_op_fail(g, n, "size must be positive");
    if (a->form < 0 || a->form >= LW_RESAMPLE_FORMS || lw_resample_is_u8((lw_resample_form)a->form))
        return lw_op_fail(g, n, "the form must be torch, float-aa or tf-inception");
    if (a->filter < 0 || a->filter >= LW_FILTERS ||
        !lw_resample_has((lw_resample_form)a->form, (lw_filter)a->filter))
        return lw_op_fail(g, n, "the form has no such filter");
    if (resize_keeps(x, &(lw_attr_resize){h, w, a->form, a->filter, {a->scale[0]}}))
        return lw_op_fail(g, n, "the size stays");
    if ((a->scale[0] == 0.0) != (a->scale[1] == 0.0) || !scale_fits(a->scale[0], x.dim[1], h) ||
        !scale_fits(a->scale[1], x.dim[2], w))
        return lw_op_fail(g, n, "scales make another size: floor(size * scale)");
    return 0;
}

static int infer_resize(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_resize *a = n->attr;
    lw_type t;
    LW_TRY(need_image(g, n, &t));
    LW_TRY(check_resize(g, n, t, a->h, a->w));
    t.dim[1] = a->h;
    t.dim[2] = a->w;
    return lw_op_one(out, t);
}

/* input: dy; the attributes are those of the resize but for h, w, which are the size of dx */
static int infer_resize_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_resize *a = n->attr;
    lw_type t;
    LW_TRY(need_image(g, n, &t));
    lw_type x = t;
    x.dim[1] = a->h;
    x.dim[2] = a->w;
    LW_TRY(check_resize(g, n, x, t.dim[1], t.dim[2]));
    return lw_op_one(out, x);
}

static void grad_resize(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                        lw_val *din)
{
    lw_type t = in_type(g, n, 0);
    lw_attr_resize a = *(const lw_attr_resize *)n->attr;
    a.h = t.dim[1];
    a.w = t.dim[2];
    if (need[0])
        din[0] = lw_graph_op(g, LW_OP_RESIZE_GRAD, dout, 1, &a, sizeof a);
}

static void print_resize(lw_str *s, const lw_node *n)
{
    const lw_attr_resize *a = n->attr;
    lw_str_addf(s, "%s %s to %dx%d", lw_resample_form_name[a->form], lw_filter_name[a->filter],
                a->h, a->w);
    if (a->scale[0] > 0.0)
        lw_str_addf(s, " scale %g, %g", a->scale[0], a->scale[1]);
}

const lw_op_def lw_op_resize = {
    .name = "resize",
    .infer = infer_resize,
    .grad = grad_resize,
    .cost = lw_cost_bytes,
    .print = print_resize,
};
const lw_op_def lw_op_resize_grad = {
    .name = "resize_grad",
    .infer = infer_resize_grad,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
    .print = print_resize,
};

lw_val lw_resize(lw_graph *g, lw_val x, lw_attr_resize to)
{
    if (!lw_val_ok(x) || resize_keeps(lw_val_type(g, x), &to))
        return x;
    return lw_graph_op(g, LW_OP_RESIZE, &x, 1, &to, sizeof to);
}

/* ---- pooling --------------------------------------------------------------------------------- */

/* Of maxima bf16 and bytes, too. */
static int infer_pool(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_pool *a = n->attr;
    lw_type t = in_type(g, n, 0);
    if (!a->max || (t.dtype != LW_BF16 && t.dtype != LW_U8) || t.rank != 4)
        LW_TRY(need_image(g, n, &t));
    if (a->k < 1 || a->stride < 1 || a->pad < 0 || 2 * a->pad > a->k ||
        t.dim[1] + 2 * a->pad < a->k || t.dim[2] + 2 * a->pad < a->k)
        return lw_op_fail(g, n, "pooling window does not fit");
    for (int i = 1; i < 3; i++)
        t.dim[i] = (t.dim[i] + 2 * a->pad - a->k) / a->stride + 1;
    return lw_op_one(out, t);
}

/* inputs: dy, x (max pooling finds its maxima again) */
static int infer_pool_grad(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_pool *a = n->attr;
    lw_type t;
    LW_TRY(need_image(g, n, &t));
    t.dim[1] = a->h;
    t.dim[2] = a->w;
    return lw_op_one(out, t);
}

static void grad_pool(lw_graph *g, const lw_node *n, const lw_val *dout, const bool *need,
                      lw_val *din)
{
    const lw_attr_pool *a = n->attr;
    if (need[0])
        din[0] = lw_graph_op(g, LW_OP_POOL_GRAD, (lw_val[]){dout[0], a->max ? n->in[0] : LW_NOVAL},
                             2, a, sizeof *a);
}

static void print_pool(lw_str *s, const lw_node *n)
{
    const lw_attr_pool *a = n->attr;
    lw_str_addf(s, "%s %dx%d stride %d pad %d%s", a->max ? "max" : "mean", a->k, a->k, a->stride,
                a->pad, a->inside ? " inside" : "");
}

const lw_op_def lw_op_pool = {
    .name = "pool",
    .infer = infer_pool,
    .grad = grad_pool,
    .cost = lw_cost_bytes,
    .print = print_pool,
};
const lw_op_def lw_op_pool_grad = {
    .name = "pool_grad",
    .infer = infer_pool_grad,
    .grad = lw_grad_none,
    .cost = lw_cost_bytes,
    .print = print_pool,
};

static lw_val pool(lw_graph *g, lw_val x, lw_attr_pool a)
{
    if (!lw_val_ok(x))
        return x;
    lw_type t = lw_val_type(g, x);
    if (t.rank == 4) {
        a.h = t.dim[1];
        a.w = t.dim[2];
    }
    return lw_graph_op(g, LW_OP_POOL, &x, 1, &a, sizeof a);
}

lw_val lw_pool2d(lw_graph *g, lw_val x, int k, int stride, int pad, bool max)
{
    return pool(g, x, (lw_attr_pool){.k = k, .stride = stride, .pad = pad, .max = max});
}

lw_val lw_mean_inside(lw_graph *g, lw_val x, int k, int stride, int pad)
{
    return pool(g, x, (lw_attr_pool){.k = k, .stride = stride, .pad = pad, .inside = pad > 0});
}
