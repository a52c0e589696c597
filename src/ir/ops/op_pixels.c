/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of video: their bytes as RGB, and RGB as their bytes. */
#include "ir/ops/ops.h"

enum { MAX_SIDE = 1 << 14 };

static const char *const forms[LW_PIXELS_FORMS] = {"420",  "422",  "444", "nv12",
                                                   "yuyv", "gray", "rgb"};

static int check(const lw_graph *g, const lw_node *n)
{
    const lw_attr_pixels *a = n->attr;
    if (a->form < 0 || a->form >= LW_PIXELS_FORMS || a->w < 1 || a->h < 1 || a->w > MAX_SIDE ||
        a->h > MAX_SIDE)
        return lw_op_fail(g, n, "no such frame");
    return 0;
}

static lw_type frames_of(const lw_attr_pixels *a, int32_t batch)
{
    size_t bytes = lw_pixels_form_bytes((lw_pixels_form)a->form, (size_t)a->w, (size_t)a->h);
    return lw_type_of(LW_U8, 2, batch, (int32_t)bytes);
}

static int infer_to_rgb(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_pixels *a = n->attr;
    lw_type t = in_type(g, n, 0);
    LW_TRY(check(g, n));
    if (t.rank != 2 || !lw_type_eq(t, frames_of(a, t.dim[0])))
        return lw_op_fail(g, n, "the bytes are not those of a frame of this size");
    if (a->to != LW_F32 && a->to != LW_U8)
        return lw_op_fail(g, n, "a frame becomes f32 or u8");
    return lw_op_one(out, lw_type_of((lw_dtype)a->to, 4, t.dim[0], a->h, a->w, 3));
}

static int infer_to_frame(const lw_graph *g, const lw_node *n, lw_infer *out)
{
    const lw_attr_pixels *a = n->attr;
    lw_type t = in_type(g, n, 0);
    LW_TRY(check(g, n));
    if (t.rank != 4 || !lw_type_eq(t, lw_type_of(LW_F32, 4, t.dim[0], a->h, a->w, 3)))
        return lw_op_fail(g, n, "needs f32 [B,H,W,3] of this size");
    return lw_op_one(out, frames_of(a, t.dim[0]));
}

/* Two products a colour of a pixel and some more. */
static void cost(const lw_graph *g, const lw_node *n, lw_cost *out)
{
    const lw_attr_pixels *a = n->attr;
    lw_cost_bytes(g, n, out);
    out->flops = 18.0 * a->w * a->h * in_type(g, n, 0).dim[0];
}

static void print(lw_str *s, const lw_node *n)
{
    const lw_attr_pixels *a = n->attr;
    lw_str_addf(s, "%s %dx%d", forms[a->form], a->w, a->h);
    if (a->form != LW_PIXELS_RGB)
        lw_str_addf(s, " bt%s%s", a->matrix == LW_MATRIX_709 ? "709" : "601",
                    a->full_range ? " full" : "");
}

const lw_op_def lw_op_frame_to_rgb = {
    .name = "frame_to_rgb",
    .infer = infer_to_rgb,
    .grad = lw_grad_none,
    .cost = cost,
    .print = print,
};

const lw_op_def lw_op_rgb_to_frame = {
    .name = "rgb_to_frame",
    .infer = infer_to_frame,
    .grad = lw_grad_none,
    .cost = cost,
    .print = print,
};

static lw_val op(lw_graph *g, lw_op which, lw_val x, const lw_attr_pixels *a)
{
    return lw_val_ok(x) ? lw_graph_op(g, which, &x, 1, a, sizeof *a) : x;
}

lw_val lw_frame_to_rgb(lw_graph *g, lw_val frames, lw_attr_pixels a)
{
    return op(g, LW_OP_FRAME_TO_RGB, frames, &a);
}

lw_val lw_rgb_to_frame(lw_graph *g, lw_val rgb, lw_attr_pixels a)
{
    a.to = LW_U8;
    return op(g, LW_OP_RGB_TO_FRAME, rgb, &a);
}
