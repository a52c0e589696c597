/* SPDX-License-Identifier: Apache-2.0 */
/* conv, all three passes, against one double-precision loop nest; batch and task-order invariance.
 */
#include "kernels/check.h"
#include "kernels/kernels.h"

#include <stdio.h>
#include <string.h>

static struct lw_conv_kernels kernels_of(const check *t)
{
    static lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k.conv;
}

static check_tol tol_of(int64_t chain)
{
    return (check_tol){.abs = 1e-6 + 1e-7 * (double)chain, .rel = 2e-7};
}

/* Operands of one convolution and what the three passes should give. */
typedef struct problem {
    lw_conv_shape s;
    int64_t nx, ny, nw; /* floats of x, y and w (with pitches) */
    float *x, *dy, *w;
    double *y, *dx, *dw, *db; /* y and dx as [pixels][channels], dense */
    char name[160];
} problem;

static void oracle(problem *p)
{
    const lw_conv_shape *s = &p->s;
    for (ptrdiff_t b = 0; b < s->B; b++)
        for (ptrdiff_t oy = 0; oy < s->OH; oy++)
            for (ptrdiff_t ox = 0; ox < s->OW; ox++) {
                ptrdiff_t out = (b * s->OH + oy) * s->OW + ox;
                for (ptrdiff_t o = 0; o < s->O; o++)
                    p->db[o] += (double)p->dy[out * s->ldy + o];
                for (ptrdiff_t tap = 0; tap < s->KH * s->KW; tap++) {
                    ptrdiff_t iy = oy * s->stride - s->pad_top + tap / s->KW;
                    ptrdiff_t ix = ox * s->stride - s->pad_left + tap % s->KW;
                    if (iy < 0 || iy >= s->H || ix < 0 || ix >= s->W)
                        continue;
                    ptrdiff_t in = (b * s->H + iy) * s->W + ix;
                    for (ptrdiff_t o = 0; o < s->O; o++)
                        for (ptrdiff_t c = 0; c < s->C; c++) {
                            ptrdiff_t iw = (o * s->KH * s->KW + tap) * s->C + c;
                            double x = (double)p->x[in * s->ldx + c],
                                   dy = (double)p->dy[out * s->ldy + o];
                            p->y[out * s->O + o] += x * (double)p->w[iw];
                            p->dx[in * s->C + c] += dy * (double)p->w[iw];
                            p->dw[iw] += dy * x;
                        }
                }
            }
}

static problem make(check *t, lw_conv_shape s, bool with_oracle)
{
    problem p = {.s = s};
    if (lw_conv_shape_init(&p.s))
        LW_ASSERT(false, "%s", lw_errmsg());
    s = p.s;
    int shift = (int)((s.ldx - s.C) & 1);
    p.nx = ((int64_t)s.B * s.H * s.W - 1) * s.ldx + s.C;
    p.ny = ((int64_t)s.B * s.OH * s.OW - 1) * s.ldy + s.O;
    p.nw = (int64_t)s.O * s.KH * s.KW * s.C;
    p.x = check_in(t, p.nx, shift, -1, 1);
    p.dy = check_in(t, p.ny, shift, -1, 1);
    p.w = check_in(t, p.nw, shift, -1, 1);
    snprintf(p.name, sizeof p.name,
             "B%d %dx%dx%d ldx %td -> O%d ldy %td, %dx%d stride %d pads %d %d %d %d", s.B, s.H, s.W,
             s.C, s.ldx, s.O, s.ldy, s.KH, s.KW, s.stride, s.pad_top, s.pad_left, s.pad_bottom,
             s.pad_right);
    if (with_oracle) {
        p.y = check_doubles(t, (int64_t)s.B * s.OH * s.OW * s.O);
        p.dx = check_doubles(t, (int64_t)s.B * s.H * s.W * s.C);
        p.dw = check_doubles(t, p.nw);
        p.db = check_doubles(t, s.O);
        oracle(&p);
    }
    return p;
}

static float *pack(check *t, const problem *p, lw_conv_pass pass)
{
    struct lw_conv_kernels k = kernels_of(t);
    float *packed = check_out(t, lw_conv_packed_floats(&p->s, pass), 0);
    for (int64_t i = lw_conv_pack_tasks(&p->s, pass) - 1; i >= 0; i--)
        k.pack(packed, p->w, &p->s, pass, i);
    return packed;
}

/* Runs a pass into out (poisoned or holding what is accumulated on). */
static void run(check *t, const problem *p, lw_conv_pass pass, float *out, const float *packed,
                const lw_epilogue *e)
{
    struct lw_conv_kernels k = kernels_of(t);
    for (int64_t i = lw_conv_tasks(&p->s, pass) - 1; i >= 0; i--) {
        if (pass == LW_CONV_FORWARD)
            k.forward(out, p->x, packed, &p->s, e, i);
        else
            k.data_grad(out, p->dy, packed, &p->s, e, i);
    }
}

static void check_pass(check *t, const problem *p, lw_conv_pass pass)
{
    const lw_conv_shape *s = &p->s;
    bool fwd = pass == LW_CONV_FORWARD;
    ptrdiff_t pixels = (ptrdiff_t)s->B * (fwd ? s->OH * s->OW : s->H * s->W);
    ptrdiff_t n = fwd ? s->O : s->C, ld = fwd ? s->ldy : s->ldx;
    float *out = check_out(t, fwd ? p->ny : p->nx, 1);
    run(t, p, pass, out, pack(t, p, pass), NULL);
    for (ptrdiff_t i = 0; i < pixels; i++) {
        check_close(t, out + i * ld, (fwd ? p->y : p->dx) + i * n, n,
                    tol_of((int64_t)s->KH * s->KW * (fwd ? s->C : s->O)), "%s of %s, pixel %td",
                    fwd ? "y" : "dx", p->name, i);
        if (i + 1 < pixels)
            check_poisoned(t, out + i * ld + n, ld - n, "%s of %s", fwd ? "y" : "dx", p->name);
    }
}

static void check_weights(check *t, const problem *p, int accumulate)
{
    struct lw_conv_kernels k = kernels_of(t);
    const lw_conv_shape *s = &p->s;
    float *old = check_in(t, p->nw + s->O, 0, -1, 1);
    float *dw = accumulate ? check_copy(t, old, p->nw, 1) : check_out(t, p->nw, 1);
    float *db = accumulate ? check_copy(t, old + p->nw, s->O, 1) : check_out(t, s->O, 1);
    float *partials = check_out(t, lw_conv_weight_grad_partial_floats(s), 0);
    for (int64_t i = lw_conv_weight_grad_tasks(s) - 1; i >= 0; i--)
        k.weight_grad(dw, db, p->dy, p->x, s, accumulate, partials, i);
    for (int64_t i = lw_conv_weight_grad_combine_tasks(s) - 1; i >= 0; i--)
        k.weight_grad_combine(dw, db, s, accumulate, partials, i);
    double *want = check_doubles(t, p->nw + s->O);
    for (int64_t i = 0; i < p->nw + s->O; i++)
        want[i] = (i < p->nw ? p->dw[i] : p->db[i - p->nw]) + (accumulate ? (double)old[i] : 0.0);
    check_tol tol = tol_of((int64_t)s->B * s->OH * s->OW);
    check_close(t, dw, want, p->nw, tol, "dw of %s accumulate %d", p->name, accumulate);
    check_close(t, db, want + p->nw, s->O, tol, "db of %s accumulate %d", p->name, accumulate);
}

static void check_all(check *t, lw_conv_shape s, int accumulate)
{
    problem p = make(t, s, true);
    check_pass(t, &p, LW_CONV_FORWARD);
    check_pass(t, &p, LW_CONV_DATA_GRAD);
    check_weights(t, &p, accumulate);
    check_next(t);
}

static lw_conv_shape shape(int B, int H, int W, int C, int O, int K, int stride, int pad)
{
    return (lw_conv_shape){.B = B,
                           .H = H,
                           .W = W,
                           .C = C,
                           .O = O,
                           .KH = K,
                           .KW = K,
                           .stride = stride,
                           .pad_top = pad,
                           .pad_left = pad,
                           .pad_bottom = pad,
                           .pad_right = pad};
}

static void three_by_three(check *t)
{
    static const int sizes[][3] = {{1, 8, 8}, {2, 4, 4}, {9, 4, 4},  {1, 5, 7},
                                   {3, 1, 1}, {2, 2, 3}, {1, 16, 16}};
    static const int channels[][2] = {{16, 16}, {3, 16},  {16, 3},  {1, 1},
                                      {17, 33}, {32, 48}, {15, 31}, {40, 65}};
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
        for (int k = 1; k <= 5; k++)
            for (int way = 0; way < 4; way++) {
                lw_conv_shape s = shape(2, 6 + way, 9 - way, 5 + 6 * way, 20 - 3 * way, k, stride,
                                        0);
                s.KW = way == 3 ? 1 + k % 3 : k;
                s.pad_top = way & 1;
                s.pad_left = way >> 1;
                s.pad_bottom = k / 2;
                s.pad_right = (k + way) % 3;
                check_all(t, s, way & 1);
            }
    check_all(t, shape(1, 7, 7, 3, 8, 9, 1, 4), 0); /* more taps than fit one gather */
    check_all(t, shape(2, 2, 2, 4, 9, 5, 1, 4),
              0); /* a whole border of outputs sees nothing but corners */
}

static void pitches(check *t)
{
    for (int i = 0; i < 12; i++) {
        lw_conv_shape s = shape(1 + i % 3, 4 + i % 5, 4 + i % 4, 3 + 5 * i, 40 - 3 * i,
                                i % 2 ? 3 : 1, 1 + i / 6, i % 2);
        s.ldx = s.C + 1 + i % 7;
        s.ldy = s.O + i % 4;
        check_all(t, s, i & 1);
    }
}

/* Many tasks, blocks of taps with partial sums in memory, groups of images in the weight gradient.
 */
static void large(check *t)
{
    check_all(t, shape(1, 4, 4, 400, 70, 3, 1, 1), 0);
    check_all(t, shape(5, 32, 32, 16, 16, 3, 1, 1), 1);
    check_all(t, shape(64, 8, 8, 8, 24, 3, 1, 1), 0);
    check_all(t, shape(2, 16, 16, 48, 96, 3, 2, 1), 1);
    check_all(t, shape(8, 16, 16, 32, 96, 1, 1, 0), 0);
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
    for (int i = 0; i < 32; i++) {
        problem p = make(t, shape(3, 4, 5, 9, 37, i & 1 ? 3 : 1, 1, i & 1), true);
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
                         .accumulate = i >> 4,
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
        check_close(t, out, p.y, n, tol_of(100), "epilogue %d of %s", i, p.name);
        check_next(t);
    }
}

/* An image's bits are the same alone, in any batch, and at any pitch. */
static void batch_invariance(check *t)
{
    static const int sizes[][6] = {
        {19, 4, 4, 40, 33, 1}, {7, 8, 8, 20, 48, 1}, {3, 16, 16, 16, 16, 1}, {14, 4, 4, 350, 32, 1},
        {5, 9, 9, 24, 20, 2},  {11, 4, 4, 20, 3, 1}, {9, 5, 5, 4, 24, 1},    {6, 5, 1, 8, 8, 1}};
    for (size_t i = 0; i < LW_COUNT(sizes); i++)
        for (int pass = 0; pass < 2; pass++) {
            const int *z = sizes[i];
            problem p = make(t, shape(z[0], z[1], z[2], z[3], z[4], 3, z[5], 1), false);
            float *all = check_out(t, pass ? p.nx : p.ny, 0),
                  *packed = pack(t, &p, (lw_conv_pass)pass);
            run(t, &p, (lw_conv_pass)pass, all, packed, NULL);
            problem q = p;
            q.s.B = 1;
            ptrdiff_t in = (ptrdiff_t)q.s.H * q.s.W * q.s.C,
                      out = (ptrdiff_t)q.s.OH * q.s.OW * q.s.O;
            for (int b = 0; b < z[0]; b++, q.x += in, q.dy += out) {
                float *one = check_out(t, pass ? in : out, 1);
                run(t, &q, (lw_conv_pass)pass, one, packed, NULL);
                check_same(t, one, all + b * (pass ? in : out),
                           (size_t)(pass ? in : out) * sizeof *one, "image %d, pass %d of %s", b,
                           pass, p.name);
            }
            check_next(t);
        }
}

/* All passes give the same bits whatever the order of tasks and however many threads run them. */
typedef struct shared_run {
    struct lw_conv_kernels k;
    const problem *p;
    float *y, *dx, *dw, *db, *partials;
    const float *packed[2];
    int64_t tasks[3];
} shared_run;

static void shared_task(void *arg, int64_t i, int worker)
{
    shared_run *r = arg;
    (void)worker;
    if (i < r->tasks[0])
        r->k.forward(r->y, r->p->x, r->packed[0], &r->p->s, NULL, i);
    else if (i < r->tasks[0] + r->tasks[1])
        r->k.data_grad(r->dx, r->p->dy, r->packed[1], &r->p->s, NULL, i - r->tasks[0]);
    else
        r->k.weight_grad(r->dw, r->db, r->p->dy, r->p->x, &r->p->s, 0, r->partials,
                         i - r->tasks[0] - r->tasks[1]);
}

static void shared_combine(void *arg, int64_t i, int worker)
{
    shared_run *r = arg;
    (void)worker;
    r->k.weight_grad_combine(r->dw, r->db, &r->p->s, 0, r->partials, i);
}

static void thread_invariance(check *t)
{
    problem p = make(t, shape(33, 16, 16, 16, 40, 3, 1, 1), false);
    const lw_conv_shape *s = &p.s;
    float *first = NULL;
    int64_t n = p.ny + p.nx + p.nw + s->O;
    for (int threads = 1; threads <= 3; threads++) {
        lw_pool *pool = NULL;
        if (lw_pool_new(threads, &pool))
            LW_ASSERT(false, "%s", lw_errmsg());
        float *out = check_out(t, n, 0);
        shared_run r = {.k = kernels_of(t),
                        .p = &p,
                        .y = out,
                        .dx = out + p.ny,
                        .dw = out + p.ny + p.nx,
                        .db = out + n - s->O,
                        .packed = {pack(t, &p, LW_CONV_FORWARD), pack(t, &p, LW_CONV_DATA_GRAD)},
                        .partials = check_out(t, lw_conv_weight_grad_partial_floats(s), 0),
                        .tasks = {lw_conv_tasks(s, LW_CONV_FORWARD),
                                  lw_conv_tasks(s, LW_CONV_DATA_GRAD),
                                  lw_conv_weight_grad_tasks(s)}};
        lw_pool_run(pool, r.tasks[0] + r.tasks[1] + r.tasks[2], shared_task, &r);
        lw_pool_run(pool, lw_conv_weight_grad_combine_tasks(s), shared_combine, &r);
        lw_pool_free(&pool);
        first = first ? first : out;
        check_same(t, out, first, (size_t)n * sizeof *out, "%d threads, %s", threads, p.name);
    }
}

static void pitch_invariance(check *t)
{
    problem p = make(t, shape(2, 6, 6, 24, 40, 3, 1, 1), false), q = p;
    q.s.ldx = p.s.C + 5;
    q.x = check_in(t, 72 * q.s.ldx, 0, -1, 1);
    for (ptrdiff_t i = 0; i < 72; i++)
        memcpy(q.x + i * q.s.ldx, p.x + i * p.s.C, (size_t)p.s.C * sizeof *q.x);
    float *packed = pack(t, &p, LW_CONV_FORWARD), *one = check_out(t, p.ny, 0),
          *two = check_out(t, p.ny, 0);
    run(t, &p, LW_CONV_FORWARD, one, packed, NULL);
    run(t, &q, LW_CONV_FORWARD, two, packed, NULL);
    check_same(t, two, one, (size_t)p.ny * sizeof *one, "dense and pitched %s", p.name);
}

static void bad_shapes(check *t)
{
    lw_conv_shape s = shape(1, 2, 2, 1, 1, 5, 1, 1), z = shape(1, 4, 4, 0, 1, 3, 1, 1);
    int codes[2] = {lw_conv_shape_init(&s), lw_conv_shape_init(&z)},
        want[2] = {LW_ESHAPE, LW_ESHAPE};
    check_same(t, codes, want, sizeof want, "shapes that do not fit");
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"three_by_three", three_by_three},
        {"strides_and_pads", strides_and_pads},
        {"pitches", pitches},
        {"large", large},
        {"random_shapes", random_shapes},
        {"epilogues", epilogues},
        {"batch_invariance", batch_invariance},
        {"thread_invariance", thread_invariance},
        {"pitch_invariance", pitch_invariance},
        {"bad_shapes", bad_shapes},
    };
    return check_main(argc, argv, "conv", cases, LW_COUNT(cases));
}
