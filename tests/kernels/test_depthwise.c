/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolutions in all three passes against one double-precision loop nest: odd sizes,
 * strides, kernels, pads, pitches, epilogues; batch, order and pitch invariance to the bit. */
#include <stdio.h>
#include <string.h>

#include "kernels/kernels.h"
#include "kernels/operands.h"

static lw_kernels kernels_of(const check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k;
}

/* Operands of one convolution and what the passes should give, [pixels][channels], dense. */
typedef struct problem {
    lw_conv_shape s;
    int64_t nx, ny, nw; /* elements of x, y (with pitches) and w */
    float *x, *dy, *w;
    double *y, *dx, *dw, *db;
    char name[160];
} problem;

static void oracle(check *t, problem *p)
{
    const lw_conv_shape *s = &p->s;
    ptrdiff_t taps = (ptrdiff_t)s->KH * s->KW;
    p->y = check_doubles(t, (int64_t)s->B * s->OH * s->OW * s->C);
    p->dx = check_doubles(t, (int64_t)s->B * s->H * s->W * s->C);
    p->dw = check_doubles(t, p->nw);
    p->db = check_doubles(t, s->C);
    for (ptrdiff_t out = 0; out < (ptrdiff_t)s->B * s->OH * s->OW; out++)
        for (ptrdiff_t c = 0; c < s->C; c++) {
            double dy = (double)p->dy[out * s->ldy + c];
            p->db[c] += dy;
            for (ptrdiff_t tap = 0; tap < taps; tap++) {
                ptrdiff_t iy = out / s->OW % s->OH * s->stride - s->pad_top + tap / s->KW,
                          ix = out % s->OW * s->stride - s->pad_left + tap % s->KW;
                if (iy < 0 || iy >= s->H || ix < 0 || ix >= s->W)
                    continue;
                ptrdiff_t in = (out / s->OW / s->OH * s->H + iy) * s->W + ix;
                double x = (double)p->x[in * s->ldx + c], w = (double)p->w[c * taps + tap];
                p->y[out * s->C + c] += x * w;
                p->dx[in * s->C + c] += dy * w;
                p->dw[c * taps + tap] += dy * x;
            }
        }
}

static problem make(check *t, lw_conv_shape s)
{
    if (lw_conv_shape_init(&s))
        LW_ASSERT(false, "%s", lw_errmsg());
    problem p = {.s = s};
    int shift = (int)(s.ldx & 1);
    p.nx = ((int64_t)s.B * s.H * s.W - 1) * s.ldx + s.C;
    p.ny = ((int64_t)s.B * s.OH * s.OW - 1) * s.ldy + s.C;
    p.nw = (int64_t)s.C * s.KH * s.KW;
    p.x = check_in(t, p.nx, shift, -1, 1);
    p.dy = check_in(t, p.ny, shift, -1, 1);
    p.w = check_in(t, p.nw, shift, -1, 1);
    snprintf(p.name, sizeof p.name,
             "B%d %dx%dx%d ldx %td ldy %td, %dx%d stride %d pads %d %d %d %d", s.B, s.H, s.W, s.C,
             s.ldx, s.ldy, s.KH, s.KW, s.stride, s.pad_top, s.pad_left, s.pad_bottom, s.pad_right);
    oracle(t, &p);
    return p;
}

/* Runs a pass, tasks in falling order, into out (poisoned or holding what is accumulated on). */
static void run(check *t, const problem *p, lw_conv_pass pass, float *out, const lw_epilogue *e)
{
    lw_kernels k = kernels_of(t);
    float *packed = check_out(t, p->nw, 0);
    ptrdiff_t half = p->s.C / 2;
    lw_depthwise_pack(packed, p->w, &p->s, 0, half);
    lw_depthwise_pack(packed, p->w, &p->s, half, p->s.C);
    for (int64_t i = lw_depthwise_tasks(&p->s, pass) - 1; i >= 0; i--)
        k.depthwise.run(out, pass ? p->dy : p->x, packed, &p->s, pass, e, i);
}

static void check_pass(check *t, const problem *p, lw_conv_pass pass)
{
    const lw_conv_shape *s = &p->s;
    ptrdiff_t pixels = (ptrdiff_t)s->B * (pass ? s->H * s->W : s->OH * s->OW);
    ptrdiff_t ld = pass ? s->ldx : s->ldy;
    float *out = check_out(t, pass ? p->nx : p->ny, 1);
    run(t, p, pass, out, NULL);
    for (ptrdiff_t i = 0; i < pixels; i++) {
        check_close(t, out + i * ld, (pass ? p->dx : p->y) + i * s->C, s->C,
                    operand_tol(LW_NUM_F32, (int64_t)s->KH * s->KW), "%s of %s, pixel %td",
                    pass ? "dx" : "y", p->name, i);
        if (i + 1 < pixels)
            check_poisoned(t, out + i * ld + s->C, ld - s->C, "%s", p->name);
    }
}

/* dw [nw], db [C]: one behind the other. */
static float *weight_grad(check *t, const problem *p)
{
    lw_kernels k = kernels_of(t);
    float *partials = check_out(t, lw_depthwise_partial_floats(&p->s), 0);
    float *dw = check_out(t, p->nw + p->s.C, 1);
    for (int64_t i = lw_depthwise_weight_grad_tasks(&p->s) - 1; i >= 0; i--)
        k.depthwise.weight_grad(partials, p->dy, p->x, &p->s, i);
    ptrdiff_t half = p->s.C / 2;
    lw_depthwise_combine(dw, dw + p->nw, partials, &p->s, 0, half);
    lw_depthwise_combine(dw, dw + p->nw, partials, &p->s, half, p->s.C);
    return dw;
}

static void check_all(check *t, lw_conv_shape s)
{
    problem p = make(t, s);
    check_pass(t, &p, LW_CONV_FORWARD);
    check_pass(t, &p, LW_CONV_DATA_GRAD);
    check_tol tol = operand_tol(LW_NUM_F32, (int64_t)p.s.B * p.s.OH * p.s.OW);
    float *dw = weight_grad(t, &p);
    check_close(t, dw, p.dw, p.nw, tol, "dw of %s", p.name);
    check_close(t, dw + p.nw, p.db, p.s.C, tol, "db of %s", p.name);
    check_next(t);
}

static lw_conv_shape shape(int B, int H, int W, int channels, int side, int stride, int pad)
{
    return (lw_conv_shape){.B = B,
                           .H = H,
                           .W = W,
                           .C = channels,
                           .O = channels,
                           .KH = side,
                           .KW = side,
                           .stride = stride,
                           .pad_top = pad,
                           .pad_left = pad,
                           .pad_bottom = pad,
                           .pad_right = pad};
}

/* Every kernel and stride that has blocks of its own, and others, with channels around the widths
 * of vectors and rows that end anywhere in a block. */
static void kernels_and_strides(check *t)
{
    static const int channels[] = {1, 7, 8, 9, 15, 16, 17, 33, 40};
    int turn = 0;
    for (int side = 1; side <= 9; side++)
        for (int stride = 1; stride <= 3; stride++)
            for (int w = 1; w <= 13; w += 1 + side % 3) {
                int c = channels[turn++ % (int)LW_COUNT(channels)];
                lw_conv_shape s = shape(1 + turn % 3, 5, w, c, side, stride, side / 2);
                s.pad_top = LW_MAX(side - 6, turn % 3);
                s.pad_right = side - 1 - turn % LW_MIN(side, 2);
                s.ldx = s.C + turn % 4;
                s.ldy = s.C + turn % 3;
                check_all(t, s);
            }
}

static void random_shapes(check *t)
{
    for (int i = 0; i < 80; i++) {
        lw_conv_shape s = shape(1 + (int)check_below(t, 10), 1 + (int)check_below(t, 12),
                                1 + (int)check_below(t, 12), 1 + (int)check_below(t, 80),
                                1 + (int)check_below(t, 7), 1 + (int)check_below(t, 4), 0);
        s.KW = 1 + (int)check_below(t, 8);
        s.pad_top = (int)check_below(t, 4);
        s.pad_left = (int)check_below(t, 9);
        int bottom = (int)check_below(t, 4), right = (int)check_below(t, 4);
        s.pad_bottom = LW_MAX(s.KH - s.H - s.pad_top, bottom);
        s.pad_right = LW_MAX(s.KW - s.W - s.pad_left, right);
        s.ldx = s.C + (ptrdiff_t)check_below(t, 2);
        s.ldy = s.C + (ptrdiff_t)check_below(t, 2);
        check_all(t, s);
    }
}

/* Several tasks and groups of images, more channels than a task of the weight gradient has. */
static void large(check *t)
{
    check_all(t, shape(3, 28, 28, 192, 3, 1, 1));
    check_all(t, shape(11, 14, 14, 70, 3, 2, 1));
    check_all(t, shape(2, 20, 20, 130, 5, 2, 2));
    check_all(t, shape(1, 15, 40, 80, 7, 1, 3));
}

/* Tasks of both passes, none of less work than microseconds, and of the weight gradient, which its bits hang on. */
static void tasks(check *t)
{
    static const struct {
        int z[6];
        int64_t tasks[3];
    } of[] = {{{1, 112, 112, 32, 3, 1}, {7, 7, 1}},     {{1, 56, 56, 144, 3, 2}, {2, 7, 3}},
              {{8, 28, 28, 192, 3, 1}, {19, 19, 24}},   {{64, 14, 14, 384, 3, 1}, {75, 75, 48}},
              {{3, 7, 7, 960, 5, 1}, {3, 3, 45}},       {{9, 7, 9, 100, 3, 2}, {1, 1, 16}},
              {{1, 600, 600, 200, 3, 1}, {600, 600, 4}}};
    for (size_t i = 0; i < LW_COUNT(of); i++) {
        const int *z = of[i].z;
        lw_conv_shape s = shape(z[0], z[1], z[2], z[3], z[4], z[5], z[4] / 2);
        LW_ASSERT(lw_conv_shape_init(&s) == 0, "%s", lw_errmsg());
        const int64_t got[] = {lw_depthwise_tasks(&s, LW_CONV_FORWARD),
                               lw_depthwise_tasks(&s, LW_CONV_DATA_GRAD),
                               lw_depthwise_weight_grad_tasks(&s)};
        check_same(t, got, of[i].tasks, sizeof got, "tasks of shape %zu", i);
    }
}

/* Each partial sum is one task's; a gradient without that of biases is the same. */
static void parts_of_the_weight_gradient(check *t)
{
    const problem p = make(t, shape(3, 5, 6, 130, 3, 1, 1));
    const lw_conv_shape *s = &p.s;
    const int64_t n = lw_depthwise_partial_floats(s);
    const float *poison = check_out(t, 1, 0);
    float *partials = check_out(t, n, 0), *dw = check_out(t, p.nw, 0);
    int64_t written = 0;
    for (int64_t i = 0; i < lw_depthwise_weight_grad_tasks(s); i++) {
        float *own = check_out(t, n, 0);
        kernels_of(t).depthwise.weight_grad(own, p.dy, p.x, s, i);
        for (int64_t k = 0; k < n; k++)
            if (memcmp(own + k, poison, sizeof *own)) {
                partials[k] = own[k];
                written++;
            }
    }
    check_same(t, &written, &n, sizeof n, "partial sums of %s", p.name);
    lw_depthwise_combine(dw, NULL, partials, s, 0, s->C);
    check_same(t, dw, weight_grad(t, &p), (size_t)p.nw * sizeof *dw, "dw alone of %s", p.name);
}

static void epilogues(check *t)
{
    for (int i = 0; i < 32 * LW_ACT_COUNT; i++) {
        problem p = make(t, shape(3, 4, 7, 37, i & 1 ? 3 : 5, 1, i & 1 ? 1 : 2));
        const lw_conv_shape *s = &p.s;
        ptrdiff_t plane = (ptrdiff_t)s->OH * s->OW, n = s->B * plane * s->C;
        ptrdiff_t ld_res = s->C + 3, ld_ib = s->C + 1;
        float *bias = check_in(t, s->C, 1, -4, 8), *ib = check_in(t, s->B * ld_ib, 1, -1, 1);
        float *res = check_in(t, s->B * plane * ld_res, 1, -1, 1), *old = check_in(t, n, 1, -1, 1);
        lw_epilogue e = {.bias = i & 2 ? bias : NULL,
                         .image_bias = i & 4 ? ib : NULL,
                         .ld_image_bias = ld_ib,
                         .residual = i & 8 ? res : NULL,
                         .ld_residual = ld_res,
                         .accumulate = i >> 4 & 1,
                         .act = (lw_act)(i / 32)};
        float *out = e.accumulate ? check_copy(t, old, n, 1) : check_out(t, n, 1);
        for (ptrdiff_t j = 0; j < n; j++) {
            ptrdiff_t pixel = j / s->C, c = j % s->C;
            p.y[j] += (e.bias ? (double)bias[c] : 0.0) + (e.accumulate ? (double)old[j] : 0.0);
            p.y[j] += e.image_bias ? (double)ib[pixel / plane * ld_ib + c] : 0.0;
            p.y[j] += e.residual ? (double)res[pixel * ld_res + c] : 0.0;
            p.y[j] = activated(p.y[j], e.act);
        }
        run(t, &p, LW_CONV_FORWARD, out, &e);
        check_close(t, out, p.y, n, (check_tol){.abs = 1e-5, .rel = 1e-6}, "epilogue %d of %s", i,
                    p.name);
        check_next(t);
    }
}

/* An image's bits are the same alone and in any batch, at any pitch. */
static void invariance(check *t)
{
    for (int way = 0; way < 8; way++) {
        lw_conv_pass pass = way & 1 ? LW_CONV_DATA_GRAD : LW_CONV_FORWARD;
        problem p = make(t, shape(5, 9 + way, 11, 50, way & 4 ? 5 : 3, way & 2 ? 2 : 1, 1));
        size_t in = (size_t)(pass ? p.ny : p.nx) / 5, out = (size_t)(pass ? p.nx : p.ny) / 5;
        float *all = check_out(t, (int64_t)out * 5, 0);
        run(t, &p, pass, all, NULL);
        for (size_t b = 0; b < 5; b++) {
            problem q = p;
            q.s.B = 1;
            ptrdiff_t ld = p.s.C + 1 + (ptrdiff_t)b;
            *(pass ? &q.s.ldy : &q.s.ldx) = ld;
            ptrdiff_t pixels = (ptrdiff_t)in / p.s.C;
            float *from = check_out(t, pixels * ld, 1), *one = check_out(t, (int64_t)out, 1);
            for (ptrdiff_t i = 0; i < pixels; i++)
                memcpy(from + i * ld, (pass ? p.dy : p.x) + b * in + (size_t)(i * p.s.C),
                       sizeof *from * (size_t)p.s.C);
            q.x = q.dy = from;
            run(t, &q, pass, one, NULL);
            check_same(t, one, all + b * out, out * sizeof *one, "image %zu of %s", b, p.name);
        }
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"kernels_and_strides", kernels_and_strides},
        {"random_shapes", random_shapes},
        {"large", large},
        {"tasks", tasks},
        {"parts_of_the_weight_gradient", parts_of_the_weight_gradient},
        {"epilogues", epilogues},
        {"invariance", invariance},
    };
    return check_main(argc, argv, "depthwise", cases, LW_COUNT(cases));
}
