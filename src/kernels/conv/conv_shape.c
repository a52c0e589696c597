/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution geometry and the cutting of work into tasks: pure functions of the shape. */
#include "kernels/conv/conv_shape.h"

int lw_conv_shape_init(lw_conv_shape *s)
{
    if (s->B < 0 || s->H <= 0 || s->W <= 0 || s->C <= 0 || s->O <= 0 || s->KH <= 0 || s->KW <= 0 ||
        s->stride <= 0)
        return lw_fail(LW_ESHAPE,
                       "convolution: sizes must be positive (image %dx%dx%d, filter %dx%dx%d, "
                       "stride %d)",
                       s->H, s->W, s->C, s->O, s->KH, s->KW, s->stride);
    int32_t h = s->H + s->pad_top + s->pad_bottom, w = s->W + s->pad_left + s->pad_right;
    if (h < s->KH || w < s->KW || s->pad_top < 0 || s->pad_bottom < 0 || s->pad_left < 0 ||
        s->pad_right < 0)
        return lw_fail(LW_ESHAPE, "convolution: filter %dx%d does not fit the padded image %dx%d",
                       s->KH, s->KW, h, w);
    s->OH = (h - s->KH) / s->stride + 1;
    s->OW = (w - s->KW) / s->stride + 1;
    if (!s->ldx)
        s->ldx = s->C;
    if (!s->ldy)
        s->ldy = s->O;
    return 0;
}

lw_conv_line lw_conv_line_forward(int32_t in, int32_t out, int32_t k, int32_t stride, int32_t pad)
{
    return (lw_conv_line){.count = out,
                          .out_step = 1,
                          .taps = k,
                          .in0 = -pad,
                          .in_step = stride,
                          .in_size = in,
                          .w_step = 1};
}

/*
 * Input i is read by output o through filter index f where i + pad == o * stride + f. For the
 * inputs with i + pad = q' * stride + phase: f = phase + j * stride and o = q' - j. Taps run in
 * order of rising o, that is falling f, so that they are neighbours in dy.
 */
lw_conv_line lw_conv_line_data(int32_t in, int32_t out, int32_t k, int32_t stride, int32_t pad,
                               int32_t phase)
{
    lw_conv_line l = {.out_step = stride, .in_step = 1, .in_size = out, .w_step = -stride};
    l.out0 = (phase - pad % stride + stride) % stride;
    l.count = in > l.out0 ? LW_CEIL_DIV(in - l.out0, stride) : 0;
    l.taps = k > phase ? LW_CEIL_DIV(k - phase, stride) : 0;
    l.w0 = phase + (l.taps - 1) * stride;
    l.in0 = (l.out0 + pad - phase) / stride - (l.taps - 1);
    return l;
}

int32_t lw_conv_phases(const lw_conv_shape *s, lw_conv_pass pass)
{
    return pass == LW_CONV_FORWARD ? 1 : s->stride * s->stride;
}

lw_conv_phase lw_conv_phase_of(const lw_conv_shape *s, lw_conv_pass pass, int32_t phase)
{
    lw_conv_phase p = {0};
    if (pass == LW_CONV_FORWARD) {
        p.y = lw_conv_line_forward(s->H, s->OH, s->KH, s->stride, s->pad_top);
        p.x = lw_conv_line_forward(s->W, s->OW, s->KW, s->stride, s->pad_left);
        p.depth = s->C;
        p.cols = s->O;
        return p;
    }
    p.depth = s->O;
    p.cols = s->C;
    for (int32_t i = 0; i <= phase; i++) {
        if (i > 0)
            p.packed_offset += lw_gemm_packed_floats(p.cols,
                                                     (ptrdiff_t)p.y.taps * p.x.taps * p.depth);
        p.y = lw_conv_line_data(s->H, s->OH, s->KH, s->stride, s->pad_top, i / s->stride);
        p.x = lw_conv_line_data(s->W, s->OW, s->KW, s->stride, s->pad_left, i % s->stride);
    }
    return p;
}

/* Every phase must find room for what one line of output reads, with one copy for each tap or the pixels between those that
 * are read. */
bool lw_conv_bf16x3_fits(const lw_conv_shape *s, lw_conv_pass pass)
{
    for (int32_t i = 0; i < lw_conv_phases(s, pass); i++) {
        const lw_conv_phase p = lw_conv_phase_of(s, pass, i);
        const ptrdiff_t words = lw_num_words(LW_NUM_BF16X3, p.depth);
        const int64_t shifted = (int64_t)p.x.count * p.x.taps,
                      whole = (int64_t)(p.x.count - 1) * p.x.in_step + p.x.taps;
        if (words > LW_CONV_ZEROS || LW_MAX(shifted, whole) * words * p.y.taps > LW_CONV_COPY)
            return false;
    }
    return true;
}

/* Where lines are copied once for each tap, splitting them so often takes longer than is gained. */
bool lw_conv_bf16x3_pays(lw_isa isa, const lw_conv_shape *s, lw_conv_pass pass)
{
    const lw_conv_phase p = lw_conv_phase_of(s, pass, 0);
    const bool copied_once = p.x.taps == 1 || p.x.count % (LW_WIDE_ROWS / 2) == 0;
    return copied_once && lw_conv_bf16x3_fits(s, pass) &&
           lw_bf16x3_pays(isa, p.depth, p.cols, (ptrdiff_t)p.y.count * p.x.count);
}

/* Of floats, whole taps of this depth. */
static size_t packed_bytes(lw_num num, int64_t floats, ptrdiff_t depth)
{
    const int64_t words = num == LW_NUM_BF16X3 ? floats / depth * lw_num_words(num, depth)
                                               : floats / lw_num_per_word(num);
    return (size_t)words * sizeof(float);
}

size_t lw_conv_phase_offset(lw_num num, const lw_conv_phase *p)
{
    size_t bytes = packed_bytes(num, p->packed_offset, p->depth);
    int64_t tap = lw_gemm_packed_floats(p->cols, p->depth); /* all taps before are of this size */
    return num == LW_NUM_S8 ? bytes + lw_s8_sums_bytes(p->cols, p->packed_offset / tap) : bytes;
}

int64_t lw_conv_packed_floats(const lw_conv_shape *s, lw_conv_pass pass)
{
    lw_conv_phase p = lw_conv_phase_of(s, pass, lw_conv_phases(s, pass) - 1);
    return p.packed_offset +
           lw_gemm_packed_floats(p.cols, (ptrdiff_t)p.y.taps * p.x.taps * p.depth);
}

size_t lw_conv_packed_bytes(lw_num num, const lw_conv_shape *s, lw_conv_pass pass)
{
    ptrdiff_t taps = (ptrdiff_t)s->KH * s->KW;
    bool fwd = pass == LW_CONV_FORWARD;
    if (num == LW_NUM_S8)
        return lw_s8_weight_bytes(fwd ? s->O : s->C, taps * (fwd ? s->C : s->O)) +
               lw_s8_sums_bytes(fwd ? s->O : s->C, taps);
    return packed_bytes(num, lw_conv_packed_floats(s, pass), fwd ? s->C : s->O);
}

int64_t lw_conv_pack_tasks(const lw_conv_shape *s, lw_conv_pass pass)
{
    ptrdiff_t taps = (ptrdiff_t)s->KH * s->KW;
    return pass == LW_CONV_FORWARD ? lw_gemm_pack_tasks(s->O, taps * s->C)
                                   : lw_gemm_pack_tasks(s->C, taps * s->O);
}

/* Positions of a line of any phase, at most. */
static int32_t most_count(int32_t out, const lw_conv_line *l)
{
    return LW_CEIL_DIV(out, l->out_step);
}

/* Whole images, or lines of one, `least` at least. */
static void share_pixels(lw_conv_split *c, int32_t images, int32_t lines, int32_t least,
                         double image, double task)
{
    c->images = 1;
    c->rows = lines;
    if (image <= task) {
        c->images = (int32_t)LW_MIN(task / image, (double)LW_MAX(images, 1));
    } else {
        int32_t parts = (int32_t)LW_MIN(image / task + 0.5, (double)lines);
        c->rows = LW_MAX(LW_CEIL_DIV(lines, parts), least);
    }
    c->image_groups = LW_CEIL_DIV(images, c->images);
    c->row_groups = LW_CEIL_DIV(lines, c->rows);
}

lw_conv_split lw_conv_split_of(const lw_conv_shape *s, lw_conv_pass pass)
{
    lw_conv_phase p = lw_conv_phase_of(s, pass, 0); /* the largest phase decides for all */
    ptrdiff_t depth = LW_MAX((ptrdiff_t)p.y.taps * p.x.taps * p.depth, 8);
    const int32_t most_rows = most_count(pass == LW_CONV_FORWARD ? s->OH : s->H, &p.y),
                  most_cols = most_count(pass == LW_CONV_FORWARD ? s->OW : s->W, &p.x);
    lw_conv_split c = {.phases = lw_conv_phases(s, pass),
                       .cols = lw_gemm_group_cols(p.cols, depth)};
    double row = 2.0 * most_cols * (double)LW_MIN(c.cols, p.cols) * (double)depth;
    const double pixels = (double)s->B * most_rows * most_cols;
    row *= LW_MAX(LW_GEMM_LEAST_ROWS / pixels, 1.0);
    double image = row * most_rows;
    /* Of few pixels borders are much: regions of their own (conv_body.inc). */
    const double least = p.y.taps * p.x.taps > 1 ? 2 * LW_TASK_FLOPS : LW_TASK_FLOPS;
    double task = lw_gemm_even_flops(
        image * s->B * (double)LW_CEIL_DIV(p.cols, c.cols) * (double)c.phases, least);
    /* Few pixels and many columns: narrower column groups. */
    while (image * s->B > task && image * LW_MIN(s->B, 4) > 2 * task && c.cols > LW_GEMM_COLS &&
           (int64_t)most_rows * most_cols <= 64) {
        c.cols = LW_ROUND_UP(c.cols / 2, LW_GEMM_COLS);
        row /= 2;
        image /= 2;
    }
    share_pixels(&c, s->B, most_rows, LW_MIN(LW_CEIL_DIV(2 * LW_GEMM_ROWS, most_cols), most_rows),
                 image, task);
    c.col_groups = LW_CEIL_DIV(p.cols, c.cols);
    return c;
}

static int64_t split_tasks(const lw_conv_split *c)
{
    return c->phases * c->image_groups * c->row_groups * c->col_groups;
}

lw_conv_split lw_conv_wide_split(lw_num num, const lw_conv_shape *s, lw_conv_pass pass)
{
    lw_conv_phase p = lw_conv_phase_of(s, pass, 0);
    const lw_conv_split most = lw_conv_split_of(s, pass);
    const ptrdiff_t depth = LW_MAX((ptrdiff_t)p.y.taps * p.x.taps * p.depth, 8);
    const int32_t lines = most_count(pass == LW_CONV_FORWARD ? s->OH : s->H, &p.y),
                  pixels = most_count(pass == LW_CONV_FORWARD ? s->OW : s->W, &p.x);
    const int32_t least = LW_MIN(LW_CEIL_DIV(LW_WIDE_ROWS, pixels), lines);
    lw_conv_split c = {.phases = most.phases,
                       .cols = lw_gemm_wide_cols(p.cols, lw_num_words(num, depth))};
    double line = 2.0 * pixels * (double)LW_MIN(c.cols, p.cols) * (double)depth;
    double task = lw_gemm_wide_ops(num, 2.0 * pixels * lines * (double)p.cols * (double)depth *
                                            s->B * (double)c.phases);
    while (line * least > task && c.cols > LW_GEMM_COLS) { /* columns before pixels */
        c.cols = LW_ROUND_UP(c.cols / 2, LW_GEMM_COLS);
        line /= 2;
    }
    share_pixels(&c, s->B, lines, least, line * lines, task);
    c.col_groups = LW_CEIL_DIV(p.cols, c.cols);
    return split_tasks(&c) <= split_tasks(&most) ? c : most;
}

int64_t lw_conv_tasks(lw_isa isa, lw_num num, const lw_conv_shape *s, lw_conv_pass pass)
{
    const int32_t depth = pass == LW_CONV_FORWARD ? s->C : s->O;
    lw_conv_split c = lw_tiles_are_wide(isa, num, depth) ? lw_conv_wide_split(num, s, pass)
                                                         : lw_conv_split_of(s, pass);
    return split_tasks(&c);
}

static lw_wgrad_split wgrad_split(const lw_conv_shape *s)
{
    return lw_wgrad_split_of(s->B, (int64_t)s->OH * s->OW, s->O, s->KH, (int64_t)s->KW * s->C);
}

int64_t lw_conv_weight_grad_tasks(const lw_conv_shape *s)
{
    lw_wgrad_split w = wgrad_split(s);
    return w.groups * w.out_tasks;
}

int64_t lw_conv_weight_grad_partial_floats(const lw_conv_shape *s)
{
    lw_wgrad_split w = wgrad_split(s);
    return w.groups > 1 ? w.groups * w.floats : 0;
}

int64_t lw_conv_weight_grad_combine_tasks(const lw_conv_shape *s)
{
    return wgrad_split(s).combine_tasks;
}
