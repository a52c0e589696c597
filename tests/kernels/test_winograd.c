/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd convolutions, both tile sizes and both passes, against one double-precision loop nest;
 * batch, pitch, order and thread invariance to the bit; where they apply and when they
 * are chosen. */
#include "kernels/check.h"
#include "kernels/kernels.h"
#include "kernels/operands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static lw_kernels kernels_of(const check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k;
}

/*
 * The bound that is promised. One output is a sum of `chain` = 9 x channels products of operands in
 * [-1, 1]; its rounding errors grow like the root of that, times what the transforms amplify.
 */
static check_tol tol_of(int tile, int64_t chain)
{
    double root = 1.0;
    while (root * root < (double)chain)
        root += 1.0;
    return (check_tol){.abs = (tile == 4 ? 6e-6 : 2e-6) * root, .rel = 2e-7};
}

/* in -> out by a pass: its operands and what it should give, [pixels][channels], dense. */
typedef struct problem {
    lw_conv_shape s;
    lw_conv_pass pass;
    int tile;
    ptrdiff_t K, N, ld_in, ld_out;
    int64_t n_in, n_out;
    float *in, *w;
    double *want;
    char name[160];
} problem;

static float weight(const problem *p, ptrdiff_t n, ptrdiff_t k, int tap)
{
    bool forward = p->pass == LW_CONV_FORWARD;
    ptrdiff_t o = forward ? n : k, c = forward ? k : n;
    return p->w[(o * 9 + (forward ? tap : 8 - tap)) * p->s.C + c];
}

static void oracle(problem *p)
{
    const lw_conv_shape *s = &p->s;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)s->B * s->H * s->W; i++)
        for (int tap = 0; tap < 9; tap++) {
            ptrdiff_t y = i / s->W % s->H + tap / 3 - 1, x = i % s->W + tap % 3 - 1;
            if (y < 0 || y >= s->H || x < 0 || x >= s->W)
                continue;
            const float *in = p->in + (i + (tap / 3 - 1) * s->W + tap % 3 - 1) * p->ld_in;
            for (ptrdiff_t n = 0; n < p->N; n++)
                for (ptrdiff_t k = 0; k < p->K; k++)
                    p->want[i * p->N + n] += (double)in[k] * (double)weight(p, n, k, tap);
        }
}

static lw_conv_shape shape(int B, int H, int W, int C, int O)
{
    return (lw_conv_shape){.B = B,
                           .H = H,
                           .W = W,
                           .C = C,
                           .O = O,
                           .KH = 3,
                           .KW = 3,
                           .stride = 1,
                           .pad_top = 1,
                           .pad_left = 1,
                           .pad_bottom = 1,
                           .pad_right = 1};
}

static problem make(check *t, lw_conv_shape s, lw_conv_pass pass, int tile, bool with_oracle)
{
    bool forward = pass == LW_CONV_FORWARD;
    if (lw_conv_shape_init(&s))
        LW_ASSERT(false, "%s", lw_errmsg());
    problem p = {.s = s, .pass = pass, .tile = tile};
    p.K = forward ? s.C : s.O;
    p.N = forward ? s.O : s.C;
    p.ld_in = forward ? s.ldx : s.ldy;
    p.ld_out = forward ? s.ldy : s.ldx;
    int64_t pixels = (int64_t)s.B * s.H * s.W;
    int shift = (int)(p.ld_in & 1);
    p.n_in = (pixels - 1) * p.ld_in + p.K;
    p.n_out = (pixels - 1) * p.ld_out + p.N;
    p.in = check_in(t, p.n_in, shift, -1, 1);
    p.w = check_in(t, (int64_t)s.O * 9 * s.C, shift, -1, 1);
    snprintf(p.name, sizeof p.name, "F(%d) %s B%d %dx%dx%d ldx %td -> O%d ldy %td", tile,
             forward ? "y" : "dx", s.B, s.H, s.W, s.C, s.ldx, s.O, s.ldy);
    if (with_oracle) {
        p.want = check_doubles(t, pixels * p.N);
        oracle(&p);
    }
    return p;
}

static float *pack(check *t, const problem *p)
{
    lw_kernels k = kernels_of(t);
    float *packed = check_out(t, lw_winograd_packed_floats(&p->s, p->pass, p->tile), 0);
    for (int64_t i = lw_winograd_pack_tasks(&p->s, p->pass, p->tile) - 1; i >= 0; i--)
        k.winograd.pack(packed, p->w, &p->s, p->pass, p->tile, i);
    return packed;
}

/* Tasks in falling order, scratch poisoned: nothing may hang on what an earlier task left. */
static void run(check *t, const problem *p, float *out, const float *packed, const lw_epilogue *e)
{
    lw_kernels k = kernels_of(t);
    int64_t n = lw_winograd_scratch_floats(&p->s, p->pass, p->tile);
    float *scratch = check_out(t, n, 0),
          *shared = check_out(t, lw_winograd_input_floats(&p->s, p->pass, p->tile), 0);
    for (int64_t i = lw_winograd_input_tasks(&p->s, p->pass, p->tile) - 1; i >= 0; i--)
        k.winograd.inputs(shared, p->in, &p->s, p->pass, p->tile, i);
    for (int64_t i = lw_winograd_tasks(&p->s, p->pass, p->tile) - 1; i >= 0; i--) {
        memset(scratch, 0xff, (size_t)n * sizeof *scratch);
        k.winograd.run(out, p->in, packed, shared, &p->s, p->pass, p->tile, e, scratch, i);
    }
}

static void check_one(check *t, lw_conv_shape s, lw_conv_pass pass, int tile)
{
    problem p = make(t, s, pass, tile, true);
    float *out = check_out(t, p.n_out, (int)(p.ld_out & 1));
    run(t, &p, out, pack(t, &p), NULL);
    ptrdiff_t pixels = (ptrdiff_t)s.B * s.H * s.W;
    for (ptrdiff_t i = 0; i < pixels; i++) {
        check_close(t, out + i * p.ld_out, p.want + i * p.N, p.N, tol_of(tile, 9 * p.K),
                    "%s, pixel %td", p.name, i);
        if (i + 1 < pixels)
            check_poisoned(t, out + i * p.ld_out + p.N, p.ld_out - p.N, "%s", p.name);
    }
    check_next(t);
}

static void check_all(check *t, lw_conv_shape s, int tile)
{
    check_one(t, s, LW_CONV_FORWARD, tile);
    check_one(t, s, LW_CONV_DATA_GRAD, tile);
}

static void sizes(check *t, int tile)
{
    static const int images[][3] = {{1, 8, 8}, {2, 4, 4}, {13, 4, 4},  {1, 5, 7}, {3, 1, 1},
                                    {2, 2, 3}, {1, 6, 1}, {1, 16, 16}, {2, 9, 10}};
    static const int channels[][2] = {{16, 16}, {3, 16}, {16, 3}, {1, 1}, {17, 33}, {40, 65}};
    for (size_t i = 0; i < LW_COUNT(images); i++)
        for (size_t j = 0; j < LW_COUNT(channels); j++)
            check_all(
                t, shape(images[i][0], images[i][1], images[i][2], channels[j][0], channels[j][1]),
                tile);
}

static void sizes_4x4(check *t)
{
    sizes(t, 4);
}
static void sizes_2x2(check *t)
{
    sizes(t, 2);
}

/* Pitches, many channels, several blocks and groups of columns. */
static void large(check *t)
{
    for (int tile = 2; tile <= 4; tile += 2) {
        check_all(t, shape(1, 4, 4, 400, 70), tile);
        check_all(t, shape(5, 16, 16, 32, 16), tile);
        check_all(t, shape(1, 12, 12, 96, 200), tile);
        for (int i = 0; i < 8; i++) {
            lw_conv_shape s = shape(1 + i % 3, 4 + i % 5, 4 + i % 4, 3 + 5 * i, 40 - 3 * i);
            s.ldx = s.C + 1 + i % 7;
            s.ldy = s.O + i % 4;
            check_all(t, s, tile);
        }
    }
}

static void random_shapes(check *t)
{
    for (int i = 0; i < 40; i++) {
        lw_conv_shape s = shape(1 + (int)check_below(t, 5), 1 + (int)check_below(t, 13),
                                1 + (int)check_below(t, 13), 1 + (int)check_below(t, 70),
                                1 + (int)check_below(t, 70));
        s.ldx = s.C + (ptrdiff_t)check_below(t, 2);
        s.ldy = s.O + (ptrdiff_t)check_below(t, 2);
        check_one(t, s, (lw_conv_pass)(i & 1), i & 2 ? 4 : 2);
    }
}

static double finished(double s, const lw_epilogue *e, double old, ptrdiff_t image, ptrdiff_t row,
                       ptrdiff_t n)
{
    s += e->accumulate ? old : 0.0;
    s += e->bias ? (double)e->bias[n] : 0.0;
    s += e->image_bias ? (double)e->image_bias[image * e->ld_image_bias + n] : 0.0;
    s += e->residual ? (double)e->residual[row * e->ld_residual + n] : 0.0;
    return activated(s, e->act);
}

static void epilogues(check *t)
{
    for (int i = 0; i < 32 * LW_ACT_COUNT; i++) {
        problem p = make(t, shape(3, 4, 5, 9, 37), LW_CONV_FORWARD, i & 1 ? 4 : 2, true);
        ptrdiff_t plane = 20, pixels = 3 * plane, n = pixels * 37, ld_res = 40, ld_ib = 38;
        float *bias = check_in(t, 37, 1, -1, 1), *ib = check_in(t, 3 * ld_ib, 1, -1, 1);
        float *res = check_in(t, pixels * ld_res, 1, -1, 1), *old = check_in(t, n, 1, -1, 1);
        lw_epilogue e = {.bias = i & 2 ? bias : NULL,
                         .image_bias = i & 4 ? ib : NULL,
                         .ld_image_bias = ld_ib,
                         .residual = i & 8 ? res : NULL,
                         .ld_residual = ld_res,
                         .accumulate = i >> 4 & 1,
                         .act = (lw_act)(i / 32)};
        float *out = e.accumulate ? check_copy(t, old, n, 1) : check_out(t, n, 1);
        for (ptrdiff_t j = 0; j < n; j++)
            p.want[j] = finished(p.want[j], &e, (double)old[j], j / 37 / plane, j / 37, j % 37);
        run(t, &p, out, pack(t, &p), &e);
        check_close(t, out, p.want, n, tol_of(p.tile, 100), "epilogue %d of %s", i, p.name);
        check_next(t);
    }
}

/* An image's bits are the same alone, in any batch, and at any pitch. */
static void batch_invariance(check *t)
{
    static const int images[][5] = {{19, 4, 4, 40, 33},  {7, 8, 8, 20, 48}, {3, 16, 16, 16, 16},
                                    {14, 4, 4, 350, 32}, {11, 4, 4, 20, 3}, {6, 5, 1, 8, 8},
                                    {3100, 1, 1, 8, 3}}; /* the last: tasks enough of blocks */
    for (size_t i = 0; i < LW_COUNT(images) * 4; i++) {
        const int *z = images[i / 4];
        problem p = make(t, shape(z[0], z[1], z[2], z[3], z[4]), (lw_conv_pass)(i & 1),
                         i & 2 ? 4 : 2, false);
        float *all = check_out(t, p.n_out, 0), *packed = pack(t, &p);
        run(t, &p, all, packed, NULL);
        problem q = p;
        q.s.B = 1;
        ptrdiff_t in = (ptrdiff_t)q.s.H * q.s.W * p.K, out = (ptrdiff_t)q.s.H * q.s.W * p.N;
        for (int b = 0; b < z[0]; b++, q.in += in) {
            float *one = check_out(t, out, 1);
            run(t, &q, one, packed, NULL);
            check_same(t, one, all + b * out, (size_t)out * sizeof *one, "image %d of %s", b,
                       p.name);
        }
        check_next(t);
    }
}

static void pitch_invariance(check *t)
{
    problem p = make(t, shape(2, 6, 6, 24, 40), LW_CONV_FORWARD, 4, false), q = p;
    q.s.ldx = p.s.C + 5;
    q.in = check_in(t, 72 * q.s.ldx, 0, -1, 1);
    for (ptrdiff_t i = 0; i < 72; i++)
        memcpy(q.in + i * q.s.ldx, p.in + i * p.s.C, (size_t)p.s.C * sizeof *q.in);
    float *packed = pack(t, &p), *one = check_out(t, p.n_out, 0), *two = check_out(t, p.n_out, 0);
    run(t, &p, one, packed, NULL);
    run(t, &q, two, packed, NULL);
    check_same(t, two, one, (size_t)p.n_out * sizeof *one, "dense and pitched %s", p.name);
}

/* The same bits whatever the order of tasks and however many threads run them. */
typedef struct shared_run {
    lw_kernels k;
    const problem *p;
    float *out, *inputs, *scratch;
    const float *packed;
    int64_t per_worker;
} shared_run;

static void shared_task(void *arg, int64_t task, int worker)
{
    const shared_run *r = arg;
    r->k.winograd.run(r->out, r->p->in, r->packed, r->inputs, &r->p->s, r->p->pass, r->p->tile,
                      NULL, r->scratch + worker * r->per_worker, task);
}

static void inputs_task(void *arg, int64_t task, int worker)
{
    const shared_run *r = arg;
    (void)worker;
    r->k.winograd.inputs(r->inputs, r->p->in, &r->p->s, r->p->pass, r->p->tile, task);
}

static void thread_invariance(check *t)
{
    for (int i = 0; i < 4; i++) {
        problem p = make(t, shape(3, 20, 18, 40, 150), (lw_conv_pass)(i & 1), i & 2 ? 4 : 2, false);
        shared_run r = {.k = kernels_of(t), .p = &p, .packed = pack(t, &p)};
        r.per_worker = LW_ROUND_UP(lw_winograd_scratch_floats(&p.s, p.pass, p.tile), 16);
        r.scratch = check_out(t, 5 * r.per_worker, 0);
        float *first = check_out(t, p.n_out, 0);
        run(t, &p, first, r.packed, NULL);
        static const int threads[] = {1, 2, 5};
        for (size_t k = 0; k < LW_COUNT(threads); k++) {
            lw_pool *pool = NULL;
            if (lw_pool_new(threads[k], &pool))
                LW_ASSERT(false, "%s", lw_errmsg());
            r.out = check_out(t, p.n_out, 0);
            r.inputs = check_out(t, lw_winograd_input_floats(&p.s, p.pass, p.tile), 0);
            lw_pool_run(pool, lw_winograd_input_tasks(&p.s, p.pass, p.tile), inputs_task, &r);
            lw_pool_run(pool, lw_winograd_tasks(&p.s, p.pass, p.tile), shared_task, &r);
            check_same(t, r.out, first, (size_t)p.n_out * sizeof *first, "%d threads, %s",
                       threads[k], p.name);
            lw_pool_free(&pool);
        }
        check_next(t);
    }
}

/* Where tiles apply, and that the choice looks at neither batch nor pitch. */
static void choice(check *t)
{
    lw_conv_shape s = shape(1, 16, 16, 128, 128), stride = s, wide = s, pad = s;
    stride.stride = 2;
    wide.KW = 5;
    pad.pad_right = 0;
    const int got[] = {
        lw_winograd_applies(&s, LW_CONV_FORWARD),
        lw_winograd_applies(&stride, LW_CONV_FORWARD),
        lw_winograd_applies(&wide, LW_CONV_FORWARD),
        lw_winograd_applies(&pad, LW_CONV_FORWARD),
        lw_winograd_tile(&s, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_DIRECT),
        lw_winograd_tile(&s, LW_CONV_DATA_GRAD, t->isa, LW_CONV_MODE_WINOGRAD) > 0,
        lw_winograd_tile(&stride, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_WINOGRAD),
    };
    static const int want[] = {1, 0, 0, 0, 0, 1, 0};
    check_same(t, got, want, sizeof want, "where Winograd applies");
    for (int side = 1; side <= 64; side *= 2)
        for (int c = 1; c <= 512; c *= 2)
            for (int o = 1; o <= 512; o *= 2) {
                lw_conv_shape one = shape(1, side, side, c, o), many = shape(37, side, side, c, o);
                many.ldx = c + 3;
                int a = lw_winograd_tile(&one, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_AUTO);
                int b = lw_winograd_tile(&many, LW_CONV_FORWARD, t->isa, LW_CONV_MODE_AUTO);
                check_same(t, &a, &b, sizeof a, "choice for %d -> %d at %d", c, o, side);
            }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"sizes_4x4", sizes_4x4},
        {"sizes_2x2", sizes_2x2},
        {"large", large},
        {"random_shapes", random_shapes},
        {"epilogues", epilogues},
        {"batch_invariance", batch_invariance},
        {"pitch_invariance", pitch_invariance},
        {"thread_invariance", thread_invariance},
        {"choice", choice},
    };
    return check_main(argc, argv, "winograd", cases, LW_COUNT(cases));
}
