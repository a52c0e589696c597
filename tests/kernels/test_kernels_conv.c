/* SPDX-License-Identifier: Apache-2.0 */
/* conv of f32 and bf16 (all three passes) and of u8 x s8 against one double loop nest over the
 * rounded operands; batch, thread and pitch invariance. */
#include <string.h>

#include "kernels/conv_problem.h"
#include "kernels/kernels.h"

static struct lw_conv_kernels kernels_of(const check *t)
{
    static lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k.conv;
}

static void *pack(check *t, const problem *p, lw_conv_pass pass)
{
    struct lw_conv_kernels k = kernels_of(t);
    void *packed = check_bytes(t, lw_conv_packed_bytes(p->num, &p->s, pass), 0);
    for (int64_t i = lw_conv_pack_tasks(&p->s, pass) - 1; i >= 0; i--) {
        if (p->num == LW_NUM_S8)
            k.pack_s8(packed, p->w, &p->s, pass,
                      pass == LW_CONV_FORWARD ? p->q.b_scale : p->q_dx.b_scale, i);
        else if (p->num == LW_NUM_F32)
            k.pack(packed, p->w, &p->s, pass, i);
        else if (p->num == LW_NUM_BF16X3)
            k.pack_bf16x3(packed, p->w, &p->s, pass, i);
        else
            k.pack_bf16(packed, p->w, &p->s, pass, i);
    }
    return packed;
}

static void run_task(const struct lw_conv_kernels *k, const problem *p, lw_conv_pass pass,
                     float *out, const void *packed, const lw_epilogue *e, int64_t task)
{
    bool fwd = pass == LW_CONV_FORWARD;
    if (p->num == LW_NUM_S8)
        (fwd ? k->forward_u8 : k->data_grad_u8)(out, fwd ? p->x : p->dy, packed,
                                                fwd ? &p->q : &p->q_dx, &p->s, e, task);
    else if (p->num == LW_NUM_BF16)
        (fwd ? k->forward_bf16 : k->data_grad_bf16)(out, fwd ? p->x : p->dy, packed, &p->s, e,
                                                    task);
    else if (p->num == LW_NUM_BF16X3)
        (fwd ? k->forward_bf16x3 : k->data_grad_bf16x3)(out, fwd ? p->x : p->dy, packed, &p->s, e,
                                                        task);
    else
        (fwd ? k->forward : k->data_grad)(out, fwd ? p->x : p->dy, packed, &p->s, e, task);
}

/* Runs a pass into out (poisoned or holding what is accumulated on). */
static void run(check *t, const problem *p, lw_conv_pass pass, float *out, const void *packed,
                const lw_epilogue *e)
{
    struct lw_conv_kernels k = kernels_of(t);
    for (int64_t i = lw_conv_tasks(t->isa, p->num, &p->s, pass) - 1; i >= 0; i--)
        run_task(&k, p, pass, out, packed, e, i);
}

static bool computes(const problem *p, lw_conv_pass pass)
{
    return p->num != LW_NUM_BF16X3 || lw_conv_bf16x3_fits(&p->s, pass);
}

static void check_pass(check *t, const problem *p, lw_conv_pass pass)
{
    const lw_conv_shape *s = &p->s;
    if (!computes(p, pass))
        return;
    bool fwd = pass == LW_CONV_FORWARD;
    ptrdiff_t pixels = (ptrdiff_t)s->B * (fwd ? s->OH * s->OW : s->H * s->W);
    ptrdiff_t n = fwd ? s->O : s->C, ld = fwd ? s->ldy : s->ldx;
    float *out = check_out(t, fwd ? p->ny : p->nx, 1);
    run(t, p, pass, out, pack(t, p, pass), NULL);
    for (ptrdiff_t i = 0; i < pixels; i++) {
        check_close(t, out + i * ld, (fwd ? p->y : p->dx) + i * n, n,
                    operand_tol(p->num, (int64_t)s->KH * s->KW * (fwd ? s->C : s->O)),
                    "%s of %s, pixel %td", fwd ? "y" : "dx", p->name, i);
        if (i + 1 < pixels)
            check_poisoned(t, out + i * ld + n, ld - n, "%s of %s", fwd ? "y" : "dx", p->name);
    }
}

static void run_weights(const struct lw_conv_kernels *k, const problem *p, float *dw, float *db,
                        int accumulate, float *partials, int64_t task)
{
    if (p->num == LW_NUM_F32)
        k->weight_grad(dw, db, p->dy, p->x, &p->s, accumulate, partials, task);
    else
        k->weight_grad_bf16(dw, db, p->dy, p->x, &p->s, accumulate, partials, task);
}

typedef void weights_fn(check *t, const problem *p, float *dw, float *db, int accumulate);

static void direct_weights(check *t, const problem *p, float *dw, float *db, int accumulate)
{
    struct lw_conv_kernels k = kernels_of(t);
    const lw_conv_shape *s = &p->s;
    float *partials = check_out(t, lw_conv_weight_grad_partial_floats(s), 0);
    for (int64_t i = lw_conv_weight_grad_tasks(s) - 1; i >= 0; i--)
        run_weights(&k, p, dw, db, accumulate, partials, i);
    for (int64_t i = lw_conv_weight_grad_combine_tasks(s) - 1; i >= 0; i--)
        k.weight_grad_combine(dw, db, s, accumulate, partials, i);
}

/* Over Winograd's tiles; scratch poisoned: nothing may hang on what an earlier task left. */
static void tiled_weights(check *t, const problem *p, float *dw, float *db, int accumulate)
{
    lw_kernels all;
    lw_kernels_init(&all, t->isa);
    const struct lw_winograd_kernels *k = &all.winograd;
    const lw_conv_shape *s = &p->s;
    const int64_t n = lw_winograd_weight_grad_scratch_words(s);
    float *partials = check_out(t, lw_winograd_weight_grad_partial_floats(s), 0);
    float *scratch = check_out(t, n, 0);
    for (int64_t i = lw_winograd_weight_grad_tasks(s) - 1; i >= 0; i--) {
        memset(scratch, 0xff, (size_t)n * sizeof *scratch);
        (p->num == LW_NUM_F32 ? k->weight_grad : k->weight_grad_bf16)(
            dw, db, p->dy, p->x, s, accumulate, partials, scratch, i);
    }
    for (int64_t i = lw_winograd_weight_grad_combine_tasks(s) - 1; i >= 0; i--)
        k->weight_grad_combine(dw, db, s, accumulate, partials, i);
}

static void check_weights_of(check *t, const problem *p, int accumulate, weights_fn *weights,
                             check_tol tol, const char *how)
{
    const lw_conv_shape *s = &p->s;
    float *old = check_in(t, p->nw + s->O, 0, -1, 1);
    float *dw = accumulate ? check_copy(t, old, p->nw, 1) : check_out(t, p->nw, 1);
    float *db = accumulate ? check_copy(t, old + p->nw, s->O, 1) : check_out(t, s->O, 1);
    weights(t, p, dw, db, accumulate);
    double *want = check_doubles(t, p->nw + s->O);
    for (int64_t i = 0; i < p->nw + s->O; i++)
        want[i] = (i < p->nw ? p->dw[i] : p->db[i - p->nw]) + (accumulate ? (double)old[i] : 0.0);
    check_close(t, dw, want, p->nw, tol, "dw of %s %s accumulate %d", p->name, how, accumulate);
    check_close(t, db, want + p->nw, s->O, tol, "db of %s %s accumulate %d", p->name, how,
                accumulate);
}

/* Rounding over tiles: as test_winograd.c has it of F(4x4), a sum of as many products. */
static void check_weights(check *t, const problem *p, int accumulate)
{
    const int64_t chain = (int64_t)p->s.B * p->s.OH * p->s.OW;
    check_weights_of(t, p, accumulate, direct_weights, operand_tol(p->num, chain), "directly");
    if (lw_winograd_applies(&p->s, LW_CONV_FORWARD) && lw_winograd_is_3x3(&p->s))
        check_weights_of(t, p, accumulate, tiled_weights,
                         (check_tol){.abs = 6e-6 * sqrt((double)chain), .rel = 2e-7}, "over tiles");
}

/* The shape with its channels rounded up as the types need; weight gradients take it as it is. */
static void check_all(check *t, lw_conv_shape s, int accumulate)
{
    for (lw_num num = LW_NUM_F32; num <= operand_last(t); num++) {
        int32_t per_word = (int32_t)lw_num_per_word(num);
        ptrdiff_t gap_x = s.ldx ? s.ldx - s.C : 0, gap_y = s.ldy ? s.ldy - s.O : 0;
        lw_conv_shape r = s;
        r.C = LW_ROUND_UP(s.C, per_word);
        r.O = num == LW_NUM_BF16 ? LW_ROUND_UP(s.O, per_word) : s.O;
        r.ldx = r.C + gap_x * per_word;
        r.ldy = r.O + gap_y * per_word;
        problem p = make(t, r, num, true);
        check_pass(t, &p, LW_CONV_FORWARD);
        if (num == LW_NUM_S8) {
            r.C = s.C;
            r.O = LW_ROUND_UP(s.O, per_word);
            r.ldx = r.C + gap_x;
            r.ldy = r.O + gap_y * per_word;
            p = make(t, r, num, true);
        }
        check_pass(t, &p, LW_CONV_DATA_GRAD);
        if (num == LW_NUM_BF16 && (r.C != s.C || r.O != s.O))
            p = make(t, s, num, true);
        if (num < LW_NUM_S8)
            check_weights(t, &p, accumulate);
        check_next(t);
    }
}

static lw_conv_shape shape(int B, int H, int W, int channels, int O, int side, int stride, int pad)
{
    return (lw_conv_shape){.B = B,
                           .H = H,
                           .W = W,
                           .C = channels,
                           .O = O,
                           .KH = side,
                           .KW = side,
                           .stride = stride,
                           .pad_top = pad,
                           .pad_left = pad,
                           .pad_bottom = pad,
                           .pad_right = pad};
}

static void three_by_three(check *t)
{
    static const int sizes[][3] = {{1, 8, 8}, {9, 4, 4}, {1, 5, 7},
                                   {3, 1, 1}, {2, 2, 3}, {1, 3, 70}};
    static const int channels[][2] = {{16, 16}, {3, 16},  {16, 3}, {1, 1},
                                      {17, 33}, {32, 48}, {40, 65}};
    for (size_t i = 0; i < LW_COUNT(sizes); i++)
        for (size_t j = 0; j < LW_COUNT(channels); j++)
            check_all(t,
                      shape(sizes[i][0], sizes[i][1], sizes[i][2], channels[j][0], channels[j][1],
                            3, 1, 1),
                      (i ^ j) & 1);
}

static void strides_and_pads(check *t)
{
    for (int stride = 1; stride <= 3; stride++)
        for (int side = 1; side <= 5; side++)
            for (int way = 0; way < 4; way++) {
                lw_conv_shape s = shape(2, 6 + way, 9 - way, 5 + 6 * way, 20 - 3 * way, side,
                                        stride, 0);
                s.KW = way == 3 ? 1 + side % 3 : side;
                s.pad_top = way & 1;
                s.pad_left = way >> 1;
                s.pad_bottom = side / 2;
                s.pad_right = (side + way) % 3;
                s.ldx = s.C + way;
                s.ldy = s.O + side % 3;
                check_all(t, s, way & 1);
            }
    check_all(t, shape(1, 7, 7, 3, 8, 9, 1, 4), 0); /* more taps than fit one gather */
    check_all(t, shape(2, 2, 2, 4, 9, 5, 1, 4), 0); /* outputs that see nothing but corners */
}

/* Many tasks, blocks of taps with partial sums in memory, groups of images in the
 * weight gradient. */
static void large(check *t)
{
    check_all(t, shape(1, 4, 4, 1400, 34, 3, 1, 1), 0);
    check_all(t, shape(5, 32, 32, 16, 16, 3, 1, 1), 1);
    check_all(t, shape(64, 8, 8, 8, 24, 3, 1, 1), 0);
    check_all(t, shape(2, 16, 16, 48, 130, 3, 2, 1), 1);
    check_all(t, shape(8, 16, 16, 32, 96, 1, 1, 0), 0);
    check_all(t, shape(1, 4, 128, 384, 16, 3, 2, 1), 0); /* two taps' lines are copied, no third */
    check_all(t, shape(1, 4, 128, 768, 16, 3, 2, 1), 0); /* the same of bytes */
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        check_all(t, shape(9, 14, 17, 70, 81, 3, 1, 1), accumulate); /* ranges, groups of images */
        check_all(t, shape(3, 6, 9, 133, 26, 3, 1, 1), accumulate);
        check_all(t, shape(5, 9, 11, 140, 150, 3, 2, 1), accumulate); /* and of channels */
        check_all(t, shape(1, 2, 300, 130, 26, 3, 1, 1), accumulate); /* lines too long to pack */
    }
}

static void random_shapes(check *t)
{
    for (int i = 0; i < 60; i++) {
        lw_conv_shape s = shape(1 + (int)check_below(t, 5), 1 + (int)check_below(t, 9),
                                1 + (int)check_below(t, 9), 1 + (int)check_below(t, 40),
                                1 + (int)check_below(t, 40), 1 + (int)check_below(t, 4),
                                1 + (int)check_below(t, 3), 0);
        s.KW = 1 + (int)check_below(t, 4);
        s.pad_top = (int)check_below(t, 3);
        s.pad_left = (int)check_below(t, 3);
        int bottom = (int)check_below(t, 3), right = (int)check_below(t, 3);
        s.pad_bottom = LW_MAX(s.KH - s.H - s.pad_top, bottom);
        s.pad_right = LW_MAX(s.KW - s.W - s.pad_left, right);
        s.ldx = s.C + (ptrdiff_t)check_below(t, 2);
        s.ldy = s.O + (ptrdiff_t)check_below(t, 2);
        check_all(t, s, i & 1);
    }
}

static void epilogues(check *t)
{
    for (int i = 0; i < 32 * (1 + (int)operand_last(t)); i++) {
        lw_num num = (lw_num)(i >> 5);
        problem p = make(t, shape(3, 4, 5, 12, 37, i & 1 ? 3 : 1, 1, i & 1), num, true);
        const lw_conv_shape *s = &p.s;
        int64_t n = (int64_t)s->B * s->OH * s->OW * s->O;
        ptrdiff_t ld_res = s->O + 3, ld_ib = s->O + 1, plane = (ptrdiff_t)s->OH * s->OW;
        float *bias = check_in(t, s->O, 1, -1, 1), *ib = check_in(t, s->B * ld_ib, 1, -1, 1);
        float *res = check_in(t, s->B * plane * ld_res, 1, -1, 1), *old = check_in(t, n, 1, -1, 1);
        lw_epilogue e = {.bias = i & 2 ? bias : NULL,
                         .image_bias = i & 4 ? ib : NULL,
                         .ld_image_bias = ld_ib,
                         .residual = i & 8 ? res : NULL,
                         .ld_residual = ld_res,
                         .accumulate = i >> 4 & 1,
                         .act = LW_ACT_RELU};
        float *out = e.accumulate ? check_copy(t, old, n, 1) : check_out(t, n, 1);
        for (int64_t j = 0; j < n; j++) {
            ptrdiff_t pixel = j / s->O, o = j % s->O;
            p.y[j] += (e.bias ? (double)bias[o] : 0.0) + (e.accumulate ? (double)old[j] : 0.0);
            p.y[j] += e.image_bias ? (double)ib[pixel / plane * ld_ib + o] : 0.0;
            p.y[j] += e.residual ? (double)res[pixel * ld_res + o] : 0.0;
            p.y[j] = LW_MAX(p.y[j], 0.0);
        }
        run(t, &p, LW_CONV_FORWARD, out, pack(t, &p, LW_CONV_FORWARD), &e);
        check_close(t, out, p.y, n, operand_tol(num, 108), "epilogue %d of %s", i, p.name);
        check_next(t);
    }
}

/* A pass that writes bf16 or bytes writes what its floats are rounded to; gaps between pixels stay as they are. */
static void rounded_pass(check *t, const problem *p, lw_conv_pass pass, int way, lw_act act)
{
    static const lw_bf16 gap[4] = {0x5a5a, 0x5a5a, 0x5a5a, 0x5a5a};
    const lw_conv_shape *s = &p->s;
    const bool fwd = pass == LW_CONV_FORWARD;
    const int64_t pixels = (int64_t)s->B * (fwd ? s->OH * s->OW : s->H * s->W);
    const ptrdiff_t n = fwd ? s->O : s->C, ld = fwd ? s->ldy : s->ldx, ld_res = n + 3;
    const size_t bytes = (size_t)((pixels - 1) * ld + n) * sizeof(lw_bf16);
    float *res, *out = check_out(t, fwd ? p->ny : p->nx, 0);
    lw_bf16 *res_low = operands_added(t, pixels * ld_res, &res), *low = check_bytes(t, bytes, 1);
    lw_epilogue e = {.bias = way & 1 ? check_in(t, n, 1, -1, 1) : NULL,
                     .image_bias = way & 2 && fwd ? check_in(t, s->B * n, 1, -1, 1) : NULL,
                     .ld_image_bias = n,
                     .residual = way & 12 ? res : NULL,
                     .ld_residual = ld_res,
                     .act = act};
    const void *packed = pack(t, p, pass);
    run(t, p, pass, out, packed, &e);
    memset(low, 0x5a, bytes);
    if (way & 8) {
        e.residual = NULL;
        e.residual_low = res_low;
        float *same = check_out(t, fwd ? p->ny : p->nx, 0);
        run(t, p, pass, same, packed, &e);
        for (int64_t i = 0; i < pixels; i++)
            check_same(t, same + i * ld, out + i * ld, (size_t)n * sizeof *out, "%s: floats",
                       p->name);
    }
    e.store = LW_NUM_S8;
    e.store_pair = operand_pairs[way & 1];
    run(t, p, pass, (float *)(void *)low, packed, &e);
    for (int64_t i = 0; i < pixels; i++) {
        const uint8_t *pixel = (const uint8_t *)low + i * ld;
        check_cast(t, pixel, out + i * ld, n, &e, p->name);
        if (i + 1 < pixels)
            check_same(t, pixel + n, gap, (size_t)(ld - n), "%s: the gap", p->name);
    }
    memset(low, 0x5a, bytes);
    e.store = LW_NUM_BF16;
    run(t, p, pass, (float *)(void *)low, packed, &e);
    for (int64_t i = 0; i < pixels; i++) {
        check_rounded(t, low + i * ld, out + i * ld, n, act, p->name);
        if (i + 1 < pixels)
            check_same(t, low + i * ld + n, gap, (size_t)(ld - n) * sizeof *gap, "%s: the gap",
                       p->name);
    }
    check_next(t);
}

/* Blocks of taps, more columns and more tiles than sums wait for at a time, regions, phases. */
static void rounded(check *t)
{
    const lw_conv_shape s[] = {
        shape(3, 4, 5, 12, 37, 3, 1, 1),   shape(1, 4, 4, 1400, 34, 3, 1, 1),
        shape(2, 8, 8, 48, 1300, 1, 1, 0), shape(1, 16, 16, 160, 132, 3, 1, 1),
        shape(2, 9, 7, 44, 520, 3, 2, 1),  shape(2, 6, 10, 48, 40, 4, 2, 1),
        shape(1, 7, 7, 4, 8, 9, 1, 4),     shape(5, 8, 8, 32, 16, 3, 1, 1),
    };
    int way = 0;
    for (size_t i = 0; i < LW_COUNT(s); i++)
        for (lw_num num = LW_NUM_BF16; num <= LW_NUM_S8; num++)
            for (lw_conv_pass pass = LW_CONV_FORWARD; pass <= LW_CONV_DATA_GRAD; pass++) {
                lw_conv_shape z = s[i];
                z.C = LW_ROUND_UP(z.C, (int32_t)lw_num_per_word(num));
                z.O = LW_ROUND_UP(z.O, (int32_t)lw_num_per_word(num));
                z.ldx = z.C + (i & 1 ? 4 : 0);
                z.ldy = z.O + (i & 1 ? 4 : 0);
                problem p = make(t, z, num, false);
                rounded_pass(t, &p, pass, way, LW_ACT_NONE);
                p = make(t, z, num, false);
                rounded_pass(t, &p, pass, way + 5, (lw_act)(way % LW_ACT_COUNT));
                way++;
            }
}

/* All bytes 255 and all weights alike, with scales of 1. */
static void whole_number(check *t, lw_conv_shape s, int32_t zero, float weight)
{
    problem p = make(t, s, LW_NUM_S8, false);
    s = p.s;
    uint8_t *x = check_bytes(t, (size_t)p.nx, 0), *dy = check_bytes(t, (size_t)p.ny, 0);
    memset(x, 255, (size_t)p.nx);
    memset(dy, 255, (size_t)p.ny);
    p.x = x;
    p.dy = dy;
    p.q = p.q_dx = (lw_quant){1.0f, zero, check_in(t, LW_MAX(s.O, s.C), 0, 1, 1)};
    for (int64_t i = 0; i < LW_MAX(LW_MAX(p.nx, p.ny), p.nw); i++) {
        p.x_d[LW_MIN(i, p.nx - 1)] = p.dy_d[LW_MIN(i, p.ny - 1)] = 255 - zero;
        p.w_d[LW_MIN(i, p.nw - 1)] = p.w_dx[LW_MIN(i, p.nw - 1)] = (double)weight;
        p.w[LW_MIN(i, p.nw - 1)] = weight;
    }
    oracle(t, &p);
    for (lw_conv_pass pass = LW_CONV_FORWARD; pass <= LW_CONV_DATA_GRAD; pass++) {
        int64_t n = pass ? p.nx : p.ny;
        float *got = check_out(t, n, 1), *want = check_out(t, n, 0);
        for (int64_t i = 0; i < n; i++)
            want[i] = (float)(pass ? p.dx : p.y)[i];
        run(t, &p, pass, got, pack(t, &p, pass), NULL);
        check_same(t, got, want, sizeof(float) * (size_t)n, "pass %d, zero point %d, %s", pass,
                   zero, p.name);
    }
    check_next(t);
}

/* The largest products of bytes, as many as are exact, in every region, phase and block of taps:
 * the result is the whole sum itself. */
static void whole_numbers(check *t)
{
    static const int sizes[][7] = {{3, 5, 7, 20, 36, 3, 1},   {2, 6, 10, 48, 40, 4, 2},
                                   {1, 2, 2, 1600, 40, 3, 1}, {1, 9, 9, 12, 16, 9, 1},
                                   {1, 3, 3, 7280, 8, 3, 1},  {1, 4, 4, 8, 4092, 4, 2}};
    for (size_t i = 0; i < LW_COUNT(sizes); i++)
        for (int way = 0; way < 4; way++) {
            const int *z = sizes[i];
            whole_number(t, shape(z[0], z[1], z[2], z[3], z[4], z[5], z[6], (z[5] - 1) / 2),
                         way & 1 ? 255 : 3, way & 2 ? 127.0f : -127.0f);
        }
}

/* An image's bits are the same alone, in any batch, and at any pitch. */
static void batch_invariance(check *t)
{
    static const int sizes[][6] = {
        {19, 4, 4, 40, 36, 1},  {7, 8, 8, 20, 48, 1},   {3, 16, 16, 16, 16, 1},
        {14, 4, 4, 700, 32, 1}, {5, 9, 9, 24, 20, 2},   {6, 5, 1, 8, 8, 1},
        {11, 4, 4, 20, 4, 1},   {9, 5, 5, 4, 24, 1},    {70, 2, 2, 1600, 8, 1},
        {70, 2, 2, 8, 1600, 1}, {3, 32, 32, 48, 36, 1}, {5, 6, 20, 72, 36, 1},
        {4, 16, 16, 288, 8, 1}, {3, 33, 32, 20, 40, 2}};
    for (size_t i = 0; i < LW_COUNT(sizes); i++)
        for (int way = 0; way < 8; way++) { /* both passes of every type */
            const int *z = sizes[i];
            lw_conv_pass pass = way > 3 ? LW_CONV_DATA_GRAD : LW_CONV_FORWARD;
            lw_num num = (lw_num)(way % 4);
            if (num > operand_last(t))
                continue;
            problem p = make(t, shape(z[0], z[1], z[2], z[3], z[4], 3, z[5], 1), num, false);
            if (!computes(&p, pass))
                continue;
            size_t item = operand_bytes(num);
            float *all = check_out(t, pass ? p.nx : p.ny, 0);
            void *packed = pack(t, &p, pass);
            run(t, &p, pass, all, packed, NULL);
            problem q = p;
            q.s.B = 1;
            size_t in = (size_t)(q.s.H * q.s.W * q.s.C), out = (size_t)(q.s.OH * q.s.OW * q.s.O);
            for (size_t b = 0; b < (size_t)z[0]; b++) {
                float *one = check_out(t, (int64_t)(pass ? in : out), 1);
                q.x = (const char *)p.x + b * in * item;
                q.dy = (const char *)p.dy + b * out * item;
                run(t, &q, pass, one, packed, NULL);
                check_same(t, one, all + b * (pass ? in : out), (pass ? in : out) * sizeof *one,
                           "image %zu, way %d of %s", b, way, p.name);
            }
            check_next(t);
        }
}

/* Over a copy with borders a convolution has the bits that it has over the picture. The copies are tile registers', but any
 * level can read them. */
static void borders(check *t)
{
    static const int sizes[][7] = {{2, 16, 16, 64, 40, 3, 1},  {1, 8, 8, 64, 72, 3, 1},
                                   {3, 4, 4, 320, 36, 3, 1},   {2, 5, 7, 32, 33, 3, 1},
                                   {2, 33, 32, 64, 20, 3, 2},  {1, 9, 16, 128, 24, 5, 1},
                                   {5, 32, 32, 32, 100, 3, 1}, {1, 6, 3, 96, 8, 2, 1}};
    int copied = 0;
    for (size_t i = 0; i < 2 * LW_COUNT(sizes); i++) {
        const int *z = sizes[i / 2];
        const lw_num num = i % 2 ? LW_NUM_S8 : LW_NUM_BF16;
        lw_conv_shape s = shape(z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[5] / 2);
        s.ldx = i % 4 < 2 ? 0 : z[3] + 32;
        problem p = make(t, s, num, false), q = p;
        if (!lw_conv_bordered(LW_ISA_AMX, num, &p.s, &q.s))
            continue;
        copied++;
        char *copy = check_bytes(t, lw_conv_bordered_bytes(num, &q.s), 0);
        for (int64_t k = lw_conv_border_tasks(num, &q.s) - 1; k >= 0; k--)
            lw_conv_border(copy, p.x, num, &p.s, &q.s, num == LW_NUM_S8 ? p.q.a_zero : 0, k);
        q.x = copy;
        const lw_epilogue e = {.bias = p.w, .act = LW_ACT_SILU};
        const void *packed = pack(t, &p, LW_CONV_FORWARD);
        float *want = check_out(t, p.ny, 0), *got = check_out(t, p.ny, 0);
        run(t, &p, LW_CONV_FORWARD, want, packed, &e);
        run(t, &q, LW_CONV_FORWARD, got, packed, &e);
        check_same(t, got, want, (size_t)p.ny * sizeof *got, "with borders, %s", p.name);
        check_next(t);
    }
    LW_ASSERT(copied == 11, "%d of the shapes have copies", copied);
}

/* Sums of bytes are exact, and what is done with them has the same bits at every level of vectors. */
static void bytes_alike(check *t)
{
    static const int sizes[][7] = {{3, 16, 16, 64, 40, 3, 1},
                                   {2, 9, 7, 44, 20, 3, 2},
                                   {5, 8, 8, 160, 36, 3, 1},
                                   {2, 6, 5, 36, 64, 1, 1}};
    const lw_isa isa = t->isa;
    for (size_t i = 0; i < 2 * LW_COUNT(sizes); i++) {
        const int *z = sizes[i / 2];
        const lw_conv_pass pass = i % 2 ? LW_CONV_DATA_GRAD : LW_CONV_FORWARD;
        problem p = make(t, shape(z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[5] / 2), LW_NUM_S8,
                         false);
        const int64_t n = pass ? p.nx : p.ny;
        const lw_epilogue e = {.bias = p.w, .act = LW_ACT_SILU};
        float *one = check_out(t, n, 0), *two = check_out(t, n, 0);
        run(t, &p, pass, one, pack(t, &p, pass), &e);
        t->isa = LW_MIN(isa, LW_ISA_AVX2);
        run(t, &p, pass, two, pack(t, &p, pass), &e);
        t->isa = isa;
        check_same(t, one, two, (size_t)n * sizeof *one, "%s and avx2, pass %d of %s",
                   lw_isa_name(isa), (int)pass, p.name);
        check_next(t);
    }
}

/* All passes give the same bits whatever the order of tasks and however many threads run them. */
typedef struct shared_run {
    struct lw_conv_kernels k;
    const problem *p;
    float *y, *dx, *dw, *db, *partials;
    const void *packed[2];
    int64_t tasks[3];
} shared_run;

static void shared_task(void *arg, int64_t i, int worker)
{
    shared_run *r = arg;
    (void)worker;
    if (i < r->tasks[0])
        run_task(&r->k, r->p, LW_CONV_FORWARD, r->y, r->packed[0], NULL, i);
    else if ((i -= r->tasks[0]) < r->tasks[1])
        run_task(&r->k, r->p, LW_CONV_DATA_GRAD, r->dx, r->packed[1], NULL, i);
    else
        run_weights(&r->k, r->p, r->dw, r->db, 0, r->partials, i - r->tasks[1]);
}

static void shared_combine(void *arg, int64_t i, int worker)
{
    shared_run *r = arg;
    (void)worker;
    r->k.weight_grad_combine(r->dw, r->db, &r->p->s, 0, r->partials, i);
}

/* All of a problem's passes (of bytes: without the weight gradient) on so many threads. */
static float *run_shared(check *t, const problem *p, int threads, int64_t *n)
{
    const lw_conv_shape *s = &p->s;
    bool weights = p->num < LW_NUM_S8;
    *n = p->ny + p->nx + (weights ? p->nw + s->O : 0);
    float *out = check_out(t, *n, 0);
    shared_run r = {.k = kernels_of(t),
                    .p = p,
                    .y = out,
                    .dx = out + p->ny,
                    .dw = out + p->ny + p->nx,
                    .db = out + p->ny + p->nx + p->nw,
                    .packed = {pack(t, p, LW_CONV_FORWARD), pack(t, p, LW_CONV_DATA_GRAD)},
                    .partials = check_out(t, lw_conv_weight_grad_partial_floats(s), 0),
                    .tasks = {lw_conv_tasks(t->isa, p->num, s, LW_CONV_FORWARD),
                              lw_conv_tasks(t->isa, p->num, s, LW_CONV_DATA_GRAD),
                              weights ? lw_conv_weight_grad_tasks(s) : 0}};
    const phase phases[] = {{r.tasks[0] + r.tasks[1] + r.tasks[2], shared_task},
                            {weights ? lw_conv_weight_grad_combine_tasks(s) : 0, shared_combine}};
    run_phases(threads, phases, LW_COUNT(phases), &r);
    return out;
}

static void thread_invariance(check *t)
{
    for (lw_num num = LW_NUM_F32; num <= operand_last(t); num++) {
        problem p = make(t, shape(33, 16, 16, 16, 40, 3, 1, 1), num, false);
        int64_t n;
        float *first = run_shared(t, &p, 1, &n);
        for (int threads = 2; threads <= 3; threads++)
            check_same(t, run_shared(t, &p, threads, &n), first, (size_t)n * sizeof *first,
                       "%d threads, %s", threads, p.name);
        check_next(t);
    }
}

static void pitch_invariance(check *t)
{
    for (lw_num num = LW_NUM_F32; num <= operand_last(t); num++) {
        problem p = make(t, shape(2, 6, 6, 24, 40, 3, 1, 1), num, false), q = p;
        size_t item = operand_bytes(num), dense = (size_t)p.s.C * item;
        q.s.ldx = p.s.C + 5 * lw_num_per_word(num);
        char *x = check_bytes(t, 72 * (size_t)q.s.ldx * item, 0);
        for (size_t i = 0; i < 72; i++)
            memcpy(x + i * (size_t)q.s.ldx * item, (const char *)p.x + i * dense, dense);
        q.x = x;
        void *packed = pack(t, &p, LW_CONV_FORWARD);
        float *one = check_out(t, p.ny, 0), *two = check_out(t, p.ny, 0);
        run(t, &p, LW_CONV_FORWARD, one, packed, NULL);
        run(t, &q, LW_CONV_FORWARD, two, packed, NULL);
        check_same(t, two, one, (size_t)p.ny * sizeof *one, "dense and pitched %s", p.name);
        check_next(t);
    }
}

/* Tasks for 64 threads, but none of less work than microseconds: of both passes in f32, then in the types of tile registers, of
 * weight gradients, which their bits hang on, and of their partial sums: directly, over tiles. */
static void tasks(check *t)
{
    static const struct {
        int z[7];
        int64_t f32[2], bf16[2], s8[2], bf16x3[2], grad[2], tiles[2];
    } of[] = {
        {{1, 8, 8, 256, 256, 3, 1}, {32, 32}, {4, 4}, {4, 4}, {16, 16}, {33, 0}, {16, 0}},
        {{1, 16, 16, 256, 260, 3, 1}, {54, 64}, {18, 16}, {16, 16}, {54, 64}, {33, 0}, {20, 0}},
        {{1, 4, 4, 512, 516, 3, 1}, {17, 16}, {5, 4}, {5, 4}, {17, 16}, {33, 0}, {72, 0}},
        {{3, 64, 64, 64, 64, 3, 1}, {48, 48}, {33, 33}, {33, 33}, {48, 48}, {27, 2}, {3, 2}},
        {{8, 32, 32, 128, 128, 3, 1}, {256, 256}, {64, 64}, {64, 64}, {64, 64}, {72, 10}, {32, 19}},
        {{1, 224, 224, 4, 64, 7, 2}, {56, 64}, {56, 16}, {56, 16}, {56, 64}, {21, 0}, {0, 0}},
        {{2, 56, 56, 64, 256, 1, 1}, {56, 56}, {8, 8}, {8, 8}, {56, 56}, {22, 1}, {0, 0}},
        {{1, 33, 31, 128, 96, 3, 2}, {27, 36}, {4, 4}, {4, 4}, {12, 24}, {12, 0}, {0, 0}},
        {{70, 7, 7, 512, 128, 1, 1}, {70, 70}, {18, 18}, {18, 18}, {70, 70}, {6, 0}, {0, 0}},
        {{1, 512, 512, 32, 4, 3, 1}, {64, 64}, {32, 64}, {32, 64}, {64, 64}, {3, 0}, {1, 0}},
        {{64, 8, 8, 32, 32, 3, 1}, {32, 32}, {4, 4}, {4, 4}, {16, 16}, {12, 1}, {4, 1}},
        {{5, 17, 300, 64, 72, 3, 1}, {85, 85}, {45, 45}, {45, 45}, {45, 45}, {45, 4}, {10, 4}},
        {{3, 16, 16, 48, 4, 5, 1}, {3, 3}, {1, 3}, {1, 3}, {3, 3}, {5, 0}, {0, 0}},
        {{9, 2, 2, 64, 768, 1, 1}, {5, 5}, {1, 1}, {1, 1}, {3, 3}, {3, 0}, {0, 0}},
        {{1, 6, 6, 1280, 1280, 3, 1}, {80, 80}, {40, 40}, {40, 40}, {40, 40}, {54, 0}, {400, 0}},
        {{2, 70, 70, 100, 200, 5, 3}, {112, 216}, {64, 72}, {64, 72}, {64, 72}, {45, 0}, {0, 0}},
        {{16, 4, 4, 64, 768, 1, 1}, {16, 16}, {2, 2}, {2, 2}, {8, 8}, {16, 0}, {0, 0}},
        {{1, 2, 2, 96, 1000, 1, 1}, {2, 2}, {1, 1}, {1, 1}, {1, 1}, {1, 0}, {0, 0}},
        {{4, 8, 8, 32, 512, 1, 1}, {8, 8}, {1, 1}, {1, 1}, {4, 4}, {6, 0}, {0, 0}},
        {{4, 4, 4, 512, 160, 1, 1}, {6, 8}, {1, 1}, {1, 1}, {4, 4}, {7, 0}, {0, 0}},
        {{3, 8, 9, 64, 768, 1, 1}, {12, 12}, {3, 3}, {3, 3}, {3, 3}, {11, 0}, {0, 0}},
        {{1, 8, 8, 512, 288, 3, 1}, {36, 64}, {5, 8}, {5, 8}, {18, 32}, {18, 0}, {40, 0}},
        {{2, 4, 4, 1024, 288, 1, 1}, {18, 16}, {2, 2}, {2, 2}, {6, 4}, {12, 0}, {0, 0}},
        {{1, 65536, 65536, 64, 64, 3, 1},
         {65536, 65536},
         {64, 64},
         {64, 64},
         {64, 64},
         {9, 0},
         {1, 0}}};
    for (size_t i = 0; i < LW_COUNT(of); i++) {
        const int *z = of[i].z;
        lw_conv_shape s = shape(z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[5] / 2);
        LW_ASSERT(lw_conv_shape_init(&s) == 0, "%s", lw_errmsg());
        int64_t got[12] = {0};
        for (int k = 0; k < 8; k++)
            got[k] = lw_conv_tasks(k < 2 ? t->isa : LW_ISA_AMX, (lw_num)(k / 2), &s,
                                   (lw_conv_pass)(k % 2));
        got[8] = lw_conv_weight_grad_tasks(&s);
        got[9] = lw_conv_weight_grad_combine_tasks(&s);
        if (lw_winograd_applies(&s, LW_CONV_FORWARD) && lw_winograd_is_3x3(&s)) {
            got[10] = lw_winograd_weight_grad_tasks(&s);
            got[11] = lw_winograd_weight_grad_combine_tasks(&s);
        }
        check_same(t, got, of[i].f32, sizeof got, "tasks of shape %zu", i);
    }
}

/* What lines of three bf16 are copied to holds no more: the largest that fit and the next, by channels of a filter row, of
 * pixels that stride, of the larger phase, which is not the first one, and of a pixel alone. */
static void room_for_lines(check *t)
{
    static const struct {
        int z[7];
        lw_conv_pass pass;
        int deepest;
    } of[] = {{{1, 16, 16, 0, 64, 3, 1}, LW_CONV_FORWARD, 288},
              {{1, 32, 32, 0, 64, 1, 2}, LW_CONV_FORWARD, 1408},
              {{1, 33, 33, 64, 0, 4, 2}, LW_CONV_DATA_GRAD, 640},
              {{1, 4, 4, 0, 64, 1, 1}, LW_CONV_FORWARD, 2720}};
    for (size_t i = 0; i < 2 * LW_COUNT(of); i++) {
        const int *z = of[i / 2].z, depth = of[i / 2].deepest + i % 2;
        const lw_conv_pass pass = of[i / 2].pass;
        lw_conv_shape s = shape(z[0], z[1], z[2], z[3] ? z[3] : depth, z[4] ? z[4] : depth, z[5],
                                z[6], (z[5] - 1) / 2);
        LW_ASSERT(lw_conv_shape_init(&s) == 0, "%s", lw_errmsg());
        const bool fits = i % 2 == 0, got = lw_conv_bf16x3_fits(&s, pass),
                   pays = lw_conv_bf16x3_pays(LW_ISA_AMX, &s, pass);
        check_same(t, &got, &fits, sizeof got, "%d channels fit, shape %zu", depth, i / 2);
        if (pass == LW_CONV_FORWARD)
            check_same(t, &pays, &fits, sizeof pays, "%d channels pay, shape %zu", depth, i / 2);
    }
}

/* Packed weights: every tap once, whatever the stride, its columns rounded up to 16, of three bf16 its depth to 32. */
static void bytes_of_weights(check *t)
{
    for (int i = 0; i < 24; i++) {
        const lw_conv_pass pass = (lw_conv_pass)(i % 2);
        lw_conv_shape s = shape(1, 9, 10, 36, 20, 1 + i / 2 % 4, 1 + i / 8, i / 2 % 2);
        LW_ASSERT(lw_conv_shape_init(&s) == 0, "%s", lw_errmsg());
        const bool forward = pass == LW_CONV_FORWARD;
        const size_t taps = (size_t)s.KH * (size_t)s.KW, cols = forward ? 32 : 48,
                     depth = forward ? 36 : 20, whole = forward ? 64 : 32,
                     want[] = {[LW_NUM_F32] = taps * cols * depth * 4,
                               [LW_NUM_BF16] = taps * cols * depth * 2,
                               [LW_NUM_S8] = taps * cols * depth + taps * cols * 4,
                               [LW_NUM_BF16X3] = taps * cols * whole * 6};
        for (size_t num = 0; num < LW_COUNT(want); num++) {
            const size_t got = lw_conv_packed_bytes((lw_num)num, &s, pass);
            check_same(t, &got, &want[num], sizeof got, "type %zu, pass %d, side %d, stride %d",
                       num, (int)pass, s.KH, s.stride);
        }
    }
}

static void shape_is(check *t, lw_conv_shape s, int want)
{
    const int code = lw_conv_shape_init(&s);
    check_same(t, &code, &want, sizeof code,
               "B%d %dx%dx%d -> O%d, %dx%d stride %d pads %d %d %d %d", s.B, s.H, s.W, s.C, s.O,
               s.KH, s.KW, s.stride, s.pad_top, s.pad_left, s.pad_bottom, s.pad_right);
}

static void bad_shapes(check *t)
{
    const lw_conv_shape good = shape(1, 4, 5, 1, 1, 1, 1, 0);
    lw_conv_shape s;
    int32_t *const positive[] = {&s.H, &s.W, &s.C, &s.O, &s.KH, &s.KW, &s.stride},
                   *const not_negative[] = {&s.B, &s.pad_top, &s.pad_left, &s.pad_bottom,
                                            &s.pad_right};
    for (size_t i = 0; i < LW_COUNT(positive); i++) {
        s = good;
        *positive[i] = 1;
        shape_is(t, s, 0);
        *positive[i] = 0;
        shape_is(t, s, LW_ESHAPE);
    }
    for (size_t i = 0; i < LW_COUNT(not_negative); i++) {
        s = good;
        *not_negative[i] = 0;
        shape_is(t, s, 0);
        *not_negative[i] = -1;
        shape_is(t, s, LW_ESHAPE);
    }
    for (int bigger = 0; bigger < 2; bigger++) { /* than the picture and its pads */
        s = shape(1, 4, 5, 1, 1, 1, 1, 1);
        s.KH = 6 + bigger;
        shape_is(t, s, bigger ? LW_ESHAPE : 0);
        s.KH = 1;
        s.KW = 7 + bigger;
        shape_is(t, s, bigger ? LW_ESHAPE : 0);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"three_by_three", three_by_three},
        {"strides_and_pads", strides_and_pads},
        {"large", large},
        {"random_shapes", random_shapes},
        {"rounded", rounded},
        {"epilogues", epilogues},
        {"whole_numbers", whole_numbers},
        {"batch_invariance", batch_invariance},
        {"borders", borders},
        {"bytes_alike", bytes_alike},
        {"thread_invariance", thread_invariance},
        {"pitch_invariance", pitch_invariance},
        {"tasks", tasks},
        {"room_for_lines", room_for_lines},
        {"bytes_of_weights", bytes_of_weights},
        {"bad_shapes", bad_shapes},
    };
    return check_main(argc, argv, "conv", cases, LW_COUNT(cases));
}
