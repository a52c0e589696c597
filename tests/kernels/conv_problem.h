/* SPDX-License-Identifier: Apache-2.0 */
/* A convolution for the kernel tests: random operands of any type, the numbers that they stand for,
 * and one double loop nest over those for all three passes. */
#ifndef LW_TESTS_CONV_PROBLEM_H
#define LW_TESTS_CONV_PROBLEM_H

#include <stdio.h>

#include "kernels/conv/conv.h"
#include "kernels/operands.h"

/* Operands of one convolution, their values (_d) and what the passes should give. */
typedef struct problem {
    lw_conv_shape s;
    lw_num num;
    lw_quant q, q_dx;   /* of bytes: scales of forward and of data gradient */
    int64_t nx, ny, nw; /* elements of x, y and w (with pitches) */
    const void *x, *dy;
    float *w;
    double *x_d, *dy_d, *w_d, *w_dx; /* w_dx: of the data gradient */
    double *y, *dx, *dw, *db;        /* y and dx as [pixels][channels], dense */
    char name[160];
} problem;

/* One tap of one output pixel. */
static inline void add_tap(problem *p, ptrdiff_t out, ptrdiff_t in, ptrdiff_t tap)
{
    const lw_conv_shape *s = &p->s;
    const double *x = p->x_d + in * s->ldx;
    double *restrict dx = p->dx + in * s->C;
    for (ptrdiff_t o = 0; o < s->O; o++) {
        ptrdiff_t row = (o * s->KH * s->KW + tap) * s->C;
        const double *w = p->w_d + row, *w_dx = p->w_dx + row;
        double *restrict dw = p->dw + row, dy = p->dy_d[out * s->ldy + o], y = 0.0;
        for (ptrdiff_t i = 0; i < s->C; i++) {
            y += x[i] * w[i];
            dx[i] += dy * w_dx[i];
            dw[i] += dy * x[i];
        }
        p->y[out * s->O + o] += y;
    }
}

/* What the passes should give for the values of p. */
static inline void oracle(check *t, problem *p)
{
    const lw_conv_shape *s = &p->s;
    p->y = check_doubles(t, (int64_t)s->B * s->OH * s->OW * s->O);
    p->dx = check_doubles(t, (int64_t)s->B * s->H * s->W * s->C);
    p->dw = check_doubles(t, p->nw);
    p->db = check_doubles(t, s->O);
    for (ptrdiff_t out = 0; out < (ptrdiff_t)s->B * s->OH * s->OW; out++) {
        ptrdiff_t b = out / s->OW / s->OH, oy = out / s->OW % s->OH, ox = out % s->OW;
        for (ptrdiff_t o = 0; o < s->O; o++)
            p->db[o] += p->dy_d[out * s->ldy + o];
        for (ptrdiff_t tap = 0; tap < s->KH * s->KW; tap++) {
            ptrdiff_t iy = oy * s->stride - s->pad_top + tap / s->KW;
            ptrdiff_t ix = ox * s->stride - s->pad_left + tap % s->KW;
            if (iy >= 0 && iy < s->H && ix >= 0 && ix < s->W)
                add_tap(p, out, (b * s->H + iy) * s->W + ix, tap);
        }
    }
}

/* Values of s8 weights with a scale for each channel that the data gradient makes. */
static inline double *weights_of_dx(check *t, problem *p)
{
    int64_t n = p->s.C, depth = p->nw / n;
    float *turned = check_out(t, p->nw, 0);
    double *v = check_doubles(t, p->nw);
    for (int64_t i = 0; i < p->nw; i++)
        turned[i % n * depth + i / n] = p->w[i];
    const double *values = operand_weights(t, p->num, turned, n, depth, &p->q_dx);
    for (int64_t i = 0; i < p->nw; i++)
        v[i] = values[i % n * depth + i / n];
    return v;
}

static inline problem make(check *t, lw_conv_shape s, lw_num num, bool with_oracle)
{
    problem p = {.s = s, .num = num};
    p.q = (lw_quant){.a_scale = 0.0123f, .a_zero = (int32_t)check_below(t, 256)};
    if (lw_conv_shape_init(&p.s))
        LW_ASSERT(false, "%s", lw_errmsg());
    s = p.s;
    int shift = (int)((s.ldx - s.C) & 1);
    p.nx = ((int64_t)s.B * s.H * s.W - 1) * s.ldx + s.C;
    p.ny = ((int64_t)s.B * s.OH * s.OW - 1) * s.ldy + s.O;
    p.nw = (int64_t)s.O * s.KH * s.KW * s.C;
    p.w = check_in(t, p.nw, shift, -1, 1);
    p.x = operands(t, num, p.nx, shift, &p.q, &p.x_d);
    p.dy = operands(t, num, p.ny, shift, &p.q, &p.dy_d);
    p.q_dx = p.q;
    p.w_d = operand_weights(t, num, p.w, s.O, p.nw / s.O, &p.q);
    p.w_dx = num == LW_NUM_S8 ? weights_of_dx(t, &p) : p.w_d;
    snprintf(p.name, sizeof p.name,
             "type %d B%d %dx%dx%d ldx %td -> O%d ldy %td, %dx%d stride %d pads %d %d %d %d", num,
             s.B, s.H, s.W, s.C, s.ldx, s.O, s.ldy, s.KH, s.KW, s.stride, s.pad_top, s.pad_left,
             s.pad_bottom, s.pad_right);
    if (with_oracle)
        oracle(t, &p);
    return p;
}

#endif
