/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd convolutions, both tile sizes, both passes, f32 and bf16, against one double-precision loop nest,
 * bf16 against the reference that rounds at the same places too; batch, pitch, order and thread invariance to the bit. Where they
 * apply and when they are chosen: test_winograd_rule.c. */
#include "kernels/check.h"
#include "kernels/kernels.h"
#include "kernels/operands.h"
#include "kernels/winograd_methods.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* One in turns. */
static method method_of(int i)
{
    const method all[] = {F2,   F4,      LOW,  LOW4,    PLAIN,          PLAIN2,     ALONE,  NARROW,
                          ROW7, COLUMN7, ROW3, COLUMN3, COLUMN7_NARROW, ROW7_ALONE, SQUARE5};
    return all[i % METHODS];
}

/*
 * The bound that is promised. One output is a sum of `chain` = taps x channels products of operands in
 * [-1, 1]; its rounding errors grow like the root of that, times what the transforms amplify. Points of bf16 are
 * off by 2^-9 of sums of four inputs.
 */
static check_tol tol_of(method m, int64_t chain)
{
    double root = 1.0;
    while (root * root < (double)chain)
        root += 1.0;
    const bool low = m.num == LW_NUM_BF16;
    const double each = m.kh * m.kw == 7 ? 24e-6
                        : m.kh == 5      ? 8e-6
                        : m.tile & 4     ? (low ? 40e-3 : 8e-6)
                                         : (low ? 12e-3 : 2e-6);
    return (check_tol){.abs = each * root, .rel = 2e-7};
}

/* in -> out by a pass: its operands and what it should give, [pixels][channels], dense. */
typedef struct problem {
    lw_conv_shape s;
    lw_conv_pass pass;
    method m;
    ptrdiff_t K, N, ld_in, ld_out;
    int64_t pixels, n_in, n_out; /* pixels: that it makes */
    float *in, *w;               /* in: values that bf16 has, where that is the type */
    lw_bf16 *low;                /* then the same */
    double *want;
    char name[160];
} problem;

/* The weights of input k of each tap, as doubles: [tap][n][k]. */
static const double *weights(check *t, const problem *p)
{
    bool forward = p->pass == LW_CONV_FORWARD;
    const int taps = p->s.KH * p->s.KW;
    double *w = check_doubles(t, taps * p->N * p->K), *to = w;
    for (int tap = 0; tap < taps; tap++)
        for (ptrdiff_t n = 0; n < p->N; n++)
            for (ptrdiff_t k = 0; k < p->K; k++) {
                ptrdiff_t o = forward ? n : k, c = forward ? k : n;
                *to++ = (double)p->w[(o * taps + tap) * p->s.C + c];
            }
    return w;
}

static double dot(const float *x, const double *w, ptrdiff_t n)
{
    double sum = 0.0;
    for (ptrdiff_t k = 0; k < n; k++)
        sum += (double)x[k] * w[k];
    return sum;
}

static void oracle(check *t, problem *p)
{
    const lw_conv_shape *s = &p->s;
    const double *w = weights(t, p);
    const bool forward = p->pass == LW_CONV_FORWARD;
    for (ptrdiff_t i = 0; i < (ptrdiff_t)s->B * s->OH * s->OW; i++)
        for (int tap = 0; tap < s->KH * s->KW; tap++) {
            const ptrdiff_t image = i / s->OW / s->OH,
                            y = i / s->OW % s->OH + tap / s->KW - s->pad_top,
                            x = i % s->OW + tap % s->KW - s->pad_left;
            if (y < 0 || y >= s->H || x < 0 || x >= s->W)
                continue;
            const ptrdiff_t pixel = (image * s->H + y) * s->W + x, from = forward ? pixel : i,
                            to = forward ? i : pixel;
            for (ptrdiff_t n = 0; n < p->N; n++)
                p->want[to * p->N + n] += dot(p->in + from * p->ld_in, w + (tap * p->N + n) * p->K,
                                              p->K);
        }
}

static const void *input(const problem *p)
{
    return p->low ? (const void *)p->low : p->in;
}

static void round_input(check *t, problem *p)
{
    p->low = check_bytes(t, (size_t)p->n_in * sizeof *p->low, 0);
    for (int64_t i = 0; i < p->n_in; i++) {
        p->low[i] = lw_bf16_of_f32(p->in[i]);
        p->in[i] = lw_bf16_to_f32(p->low[i]);
    }
}

static problem make(check *t, lw_conv_shape s, lw_conv_pass pass, method m, bool with_oracle)
{
    bool forward = pass == LW_CONV_FORWARD;
    s = of_method(s, m);
    if (lw_conv_shape_init(&s))
        LW_ASSERT(false, "%s", lw_errmsg());
    if (t->isa > LW_ISA_AVXVNNI) /* its panels are wider */
        m.tile &= ~LW_WINOGRAD_NARROW;
    problem p = {.s = s, .pass = pass, .m = m};
    p.K = forward ? s.C : s.O;
    p.N = forward ? s.O : s.C;
    p.ld_in = forward ? s.ldx : s.ldy;
    p.ld_out = forward ? s.ldy : s.ldx;
    const int64_t x = (int64_t)s.B * s.H * s.W, y = (int64_t)s.B * s.OH * s.OW;
    p.pixels = forward ? y : x;
    int shift = (int)(p.ld_in & 1);
    p.n_in = ((forward ? x : y) - 1) * p.ld_in + p.K;
    p.n_out = (p.pixels - 1) * p.ld_out + p.N;
    p.in = check_in(t, p.n_in, shift, -1, 1);
    p.w = check_in(t, (int64_t)s.O * s.KH * s.KW * s.C, shift, -1, 1);
    snprintf(p.name, sizeof p.name,
             "F(%d) %dx%d%s %s B%d %dx%dx%d ldx %td, pads %d %d %d %d -> O%d ldy %td", m.tile, s.KH,
             s.KW, m.num == LW_NUM_BF16 ? " bf16" : "", forward ? "y" : "dx", s.B, s.H, s.W, s.C,
             s.ldx, s.pad_top, s.pad_left, s.pad_bottom, s.pad_right, s.O, s.ldy);
    if (m.num == LW_NUM_BF16)
        round_input(t, &p);
    if (with_oracle) {
        p.want = check_doubles(t, p.pixels * p.N);
        oracle(t, &p);
    }
    return p;
}

/* The kernels of its type, in the places of f32. */
static struct lw_winograd_kernels tiles_of(lw_isa isa, const problem *p)
{
    lw_kernels all;
    lw_kernels_init(&all, isa);
    const struct lw_winograd_kernels k = all.winograd;
    if (p->m.num == LW_NUM_F32)
        return k;
    return (struct lw_winograd_kernels){.pack = k.pack_bf16,
                                        .inputs = k.inputs_bf16,
                                        .products = k.products_bf16,
                                        .run = k.run_bf16};
}

static float *pack(check *t, lw_isa isa, const problem *p)
{
    struct lw_winograd_kernels k = tiles_of(isa, p);
    float *packed = check_out(t, lw_winograd_packed_words(p->m.num, &p->s, p->pass, p->m.tile), 0);
    for (int64_t i = lw_winograd_pack_tasks(p->m.num, &p->s, p->pass, p->m.tile) - 1; i >= 0; i--)
        k.pack(packed, p->w, &p->s, p->pass, p->m.tile, NULL, i);
    return packed;
}

/* Tasks in falling order, scratch poisoned: nothing may hang on what an earlier task left. */
static void run_at(check *t, lw_isa isa, const problem *p, float *out, const float *packed,
                   const lw_epilogue *e)
{
    struct lw_winograd_kernels k = tiles_of(isa, p);
    int64_t n = lw_winograd_scratch_words(p->m.num, &p->s, p->pass, p->m.tile);
    float *scratch = check_out(t, n, 0),
          *shared = check_out(t, lw_winograd_shared_words(p->m.num, &p->s, p->pass, p->m.tile), 0);
    for (int64_t i = lw_winograd_input_tasks(p->m.num, &p->s, p->pass, p->m.tile) - 1; i >= 0; i--)
        k.inputs(shared, input(p), &p->s, p->pass, p->m.tile, NULL, i);
    for (int64_t i = lw_winograd_product_tasks(p->m.num, &p->s, p->pass, p->m.tile) - 1; i >= 0;
         i--)
        k.products(shared, packed, &p->s, p->pass, p->m.tile, i);
    for (int64_t i = lw_winograd_tasks(p->m.num, &p->s, p->pass, p->m.tile) - 1; i >= 0; i--) {
        memset(scratch, 0xff, (size_t)n * sizeof *scratch);
        k.run(out, input(p), packed, shared, &p->s, p->pass, p->m.tile, NULL, e, scratch, i);
    }
}

static void run(check *t, const problem *p, float *out, const float *packed, const lw_epilogue *e)
{
    run_at(t, t->isa, p, out, packed, e);
}

/* bf16: the reference has the same points to the bit. */
static void check_reference(check *t, const problem *p, const float *out)
{
    float *want = check_out(t, p->n_out, 0);
    run_at(t, LW_ISA_REF, p, want, pack(t, LW_ISA_REF, p), NULL);
    for (ptrdiff_t i = 0; i < p->pixels; i++)
        for (ptrdiff_t n = 0; n < p->N; n++)
            p->want[i * p->N + n] = (double)want[i * p->ld_out + n];
    for (ptrdiff_t i = 0; i < p->pixels; i++)
        check_close(t, out + i * p->ld_out, p->want + i * p->N, p->N,
                    tol_of((method){.tile = p->m.tile}, 9 * p->K), "%s, pixel %td of the reference",
                    p->name, i);
}

static void check_one(check *t, lw_conv_shape s, lw_conv_pass pass, method m)
{
    if (m.num == LW_NUM_BF16) { /* whole words */
        *(pass == LW_CONV_FORWARD ? &s.C : &s.O) += (pass == LW_CONV_FORWARD ? s.C : s.O) & 1;
        s.ldx = s.ldx ? LW_MAX(s.ldx, s.C) : 0;
        s.ldy = s.ldy ? LW_MAX(s.ldy, s.O) : 0;
    }
    problem p = make(t, s, pass, m, true);
    float *out = check_out(t, p.n_out, (int)(p.ld_out & 1));
    run(t, &p, out, pack(t, t->isa, &p), NULL);
    for (ptrdiff_t i = 0; i < p.pixels; i++) {
        check_close(t, out + i * p.ld_out, p.want + i * p.N, p.N,
                    tol_of(m, (int64_t)p.s.KH * p.s.KW * p.K), "%s, pixel %td", p.name, i);
        if (i + 1 < p.pixels)
            check_poisoned(t, out + i * p.ld_out + p.N, p.ld_out - p.N, "%s", p.name);
    }
    if (m.num == LW_NUM_BF16)
        check_reference(t, &p, out);
    check_next(t);
}

static void check_all(check *t, lw_conv_shape s, method m)
{
    check_one(t, s, LW_CONV_FORWARD, m);
    check_one(t, s, LW_CONV_DATA_GRAD, m);
}

static void sizes(check *t, method m)
{
    static const int images[][3] = {{1, 8, 8}, {2, 4, 4}, {13, 4, 4},  {1, 5, 7}, {3, 1, 1},
                                    {2, 2, 3}, {1, 6, 1}, {1, 16, 16}, {2, 9, 10}};
    static const int channels[][2] = {{16, 16}, {3, 16}, {16, 3}, {1, 1}, {17, 33}, {40, 65}};
    for (size_t i = 0; i < LW_COUNT(images); i++)
        for (size_t j = 0; j < LW_COUNT(channels); j++)
            check_all(
                t, shape(images[i][0], images[i][1], images[i][2], channels[j][0], channels[j][1]),
                m);
}

static void sizes_4x4(check *t)
{
    sizes(t, F4);
}
static void sizes_lines(check *t)
{
    sizes(t, ROW7);
    sizes(t, COLUMN7);
    sizes(t, ROW3);
    sizes(t, COLUMN3);
}
static void sizes_5x5(check *t)
{
    sizes(t, SQUARE5);
}
static void sizes_plain(check *t)
{
    sizes(t, PLAIN);
    sizes(t, PLAIN2);
}
static void sizes_2x2(check *t)
{
    sizes(t, F2);
}
static void sizes_bf16(check *t)
{
    sizes(t, LOW);
    sizes(t, LOW4);
}

/* Pitches, many channels, several blocks and groups of columns. */
static void large(check *t)
{
    for (int k = 0; k < METHODS; k++) {
        const method m = method_of(k);
        check_all(t, shape(1, 4, 4, 400, 70), m);
        check_all(t, shape(5, 16, 16, 32, 16), m);
        check_all(t, shape(1, 12, 12, 96, 200), m);
        check_all(t, shape(1, 5, 7, 801, 37), m); /* so few tiles that points are divided */
        check_all(t, shape(2, 3, 4, 35, 777), m);
        for (int i = 0; i < 8; i++) {
            lw_conv_shape s = shape(1 + i % 3, 4 + i % 5, 4 + i % 4, 3 + 5 * i, 40 - 3 * i);
            s.ldx = s.C + 1 + i % 7;
            s.ldy = s.O + i % 4;
            check_all(t, s, m);
        }
    }
}

/* Pictures that shrink, grow, or move. */
static void pads(check *t)
{
    for (int i = 0; i < 81 * 2; i++) {
        const int way = i % 81;
        const lw_conv_shape s = with_pads(shape(1 + i % 2, 3 + i % 7, 3 + i % 5, 6, 18), way % 3,
                                          way / 3 % 3, way / 9 % 3, way / 27);
        check_one(t, s, (lw_conv_pass)(i / 81), method_of(way));
    }
    for (int i = 0; i < 2 * METHODS; i++) {
        const int pad = i / METHODS * 2;
        check_all(t, with_pads(shape(2, 13, 18, 40, 70), pad, pad, pad, pad), method_of(i));
    }
}

static void random_shapes(check *t)
{
    for (int i = 0; i < 60; i++) {
        lw_conv_shape s = shape(1 + (int)check_below(t, 5), 1 + (int)check_below(t, 13),
                                1 + (int)check_below(t, 13), 1 + (int)check_below(t, 70),
                                1 + (int)check_below(t, 70));
        s.ldx = s.C + (ptrdiff_t)check_below(t, 2);
        s.ldy = s.O + (ptrdiff_t)check_below(t, 2);
        check_one(t, s, (lw_conv_pass)(i & 1), method_of(i / 2));
    }
}

static void epilogues(check *t)
{
    for (int i = 0; i < 32 * LW_ACT_COUNT; i++) {
        problem p = make(t, shape(3, 4, 5, 10, 37), LW_CONV_FORWARD, method_of(i), true);
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
        run(t, &p, out, pack(t, t->isa, &p), &e);
        check_close(t, out, p.want, n, tol_of(p.m, 100), "epilogue %d of %s", i, p.name);
        check_next(t);
    }
}

/* Tiles that write bf16 or bytes write what their floats are rounded to. */
static void rounded(check *t)
{
    for (int i = 0; i < 48; i++) {
        const lw_conv_pass pass = (lw_conv_pass)(i & 1);
        const int many = i % 3 ? 0 : 390;
        problem p = make(t, shape(3, 4 + i % 3, 5, 10 + many, 36), pass, LOW, false);
        const ptrdiff_t pixels = (ptrdiff_t)p.s.B * p.s.H * p.s.W, ld_res = p.N + 3;
        float *res, *out = check_out(t, p.n_out, 0);
        lw_bf16 *res_low = operands_added(t, pixels * ld_res, &res),
                *low = check_bytes(t, (size_t)p.n_out * sizeof *low, 1);
        lw_epilogue e = {.bias = i & 2 ? check_in(t, p.N, 1, -1, 1) : NULL,
                         .image_bias = i & 4 ? check_in(t, p.s.B * p.N, 1, -1, 1) : NULL,
                         .ld_image_bias = p.N,
                         .residual = i & 24 ? res : NULL,
                         .ld_residual = ld_res,
                         .act = i < LW_ACT_COUNT ? (lw_act)i : LW_ACT_NONE};
        const float *packed = pack(t, t->isa, &p);
        run(t, &p, out, packed, &e);
        e.store = LW_NUM_BF16;
        if (i & 16) {
            e.residual = NULL;
            e.residual_low = res_low;
        }
        run(t, &p, (float *)(void *)low, packed, &e);
        check_rounded(t, low, out, p.n_out, e.act, p.name);
        e.store = LW_NUM_S8;
        e.store_pair = operand_pairs[i & 1];
        run(t, &p, (float *)(void *)low, packed, &e);
        check_cast(t, (const uint8_t *)low, out, p.n_out, &e, p.name);
        check_next(t);
    }
}

/* A batch without pictures writes nothing. */
static void no_pictures(check *t)
{
    for (int i = 0; i < METHODS; i++)
        for (int channels = 16; channels <= 256; channels *= 16) {
            problem p = make(t, shape(1, 8, 8, channels, 16), LW_CONV_FORWARD, method_of(i), false);
            float *packed = pack(t, t->isa, &p), *out = check_out(t, p.n_out, 0);
            p.s.B = 0;
            run(t, &p, out, packed, NULL);
            check_poisoned(t, out, p.n_out, "%s", p.name);
            t->compared++;
            check_next(t);
        }
}

/* An image's bits are the same alone, in any batch, and at any pitch. */
static void batch_invariance(check *t)
{
    static const int images[][5] = {{19, 4, 4, 40, 33},  {7, 8, 8, 20, 48}, {3, 16, 16, 16, 16},
                                    {14, 4, 4, 350, 32}, {11, 4, 4, 20, 3}, {6, 5, 1, 8, 8},
                                    {11, 8, 8, 390, 70}, /* one alone: points are divided */
                                    {3100, 1, 1, 8, 4}}; /* tasks enough of blocks */
    for (size_t i = 0; i < LW_COUNT(images) * 2 * METHODS; i++) {
        const int *z = images[i / (2 * METHODS)];
        const lw_conv_pass pass = (lw_conv_pass)(i & 1);
        const method m = method_of((int)i / 2 % METHODS);
        if (m.num == LW_NUM_BF16 && z[pass == LW_CONV_FORWARD ? 3 : 4] % 2)
            continue;
        if (t->isa == LW_ISA_REF && z[3] > 100) /* divides nothing, and takes seconds */
            continue;
        problem p = make(t, shape(z[0], z[1], z[2], z[3], z[4]), pass, m, false);
        float *all = check_out(t, p.n_out, 0), *packed = pack(t, t->isa, &p);
        run(t, &p, all, packed, NULL);
        problem q = p;
        q.s.B = 1;
        ptrdiff_t in = (ptrdiff_t)q.s.H * q.s.W * p.K, out = (ptrdiff_t)q.s.H * q.s.W * p.N;
        for (int b = 0; b < z[0]; b++) {
            float *one = check_out(t, out, 1);
            run(t, &q, one, packed, NULL);
            check_same(t, one, all + b * out, (size_t)out * sizeof *one, "image %d of %s", b,
                       p.name);
            q.in += in;
            if (q.low)
                q.low += in;
        }
        check_next(t);
    }
}

static void pitch_invariance(check *t)
{
    problem p = make(t, shape(2, 6, 6, 24, 40), LW_CONV_FORWARD, F4, false), q = p;
    q.s.ldx = p.s.C + 5;
    q.in = check_in(t, 72 * q.s.ldx, 0, -1, 1);
    for (ptrdiff_t i = 0; i < 72; i++)
        memcpy(q.in + i * q.s.ldx, p.in + i * p.s.C, (size_t)p.s.C * sizeof *q.in);
    float *packed = pack(t, t->isa, &p), *one = check_out(t, p.n_out, 0),
          *two = check_out(t, p.n_out, 0);
    run(t, &p, one, packed, NULL);
    run(t, &q, two, packed, NULL);
    check_same(t, two, one, (size_t)p.n_out * sizeof *one, "dense and pitched %s", p.name);
}

/* No layout shows in the bits. */
static void layouts(check *t)
{
    static const int shapes[][5] = {{1, 8, 7, 130, 70}, {3, 4, 4, 93, 161}, {2, 16, 9, 50, 17},
                                    {1, 5, 5, 512, 33}, {1, 3, 8, 40, 800}, {9, 8, 8, 5, 3}};
    const method ways[][2] = {{F4, PLAIN}, {F2, PLAIN2}, {F4, ALONE}, {ROW7, ROW7_ALONE}};
    for (size_t i = 0; i < 2 * LW_COUNT(ways) * LW_COUNT(shapes); i++) {
        const int *z = shapes[i / (2 * LW_COUNT(ways))];
        const method *m = ways[i / 2 % LW_COUNT(ways)];
        problem p = make(t, shape(z[0], z[1], z[2], z[3], z[4]), (lw_conv_pass)(i & 1), m[0],
                         false),
                q = p;
        q.m = m[1];
        float *usual = check_out(t, p.n_out, 0), *other = check_out(t, p.n_out, 0);
        run(t, &p, usual, pack(t, t->isa, &p), NULL);
        run(t, &q, other, pack(t, t->isa, &q), NULL);
        double *want = check_doubles(t, p.n_out);
        for (int64_t k = 0; k < p.n_out; k++)
            want[k] = (double)usual[k];
        if (t->isa == LW_ISA_REF) /* in double but for what is packed */
            check_close(t, other, want, p.n_out, tol_of(m[0], 9 * p.K), "%s, layout %d", p.name,
                        m[1].tile);
        else
            check_same(t, other, usual, (size_t)p.n_out * sizeof *other, "%s, layout %d", p.name,
                       m[1].tile);
        check_next(t);
    }
}

/* The same bits whatever the order of tasks and however many threads run them. */
typedef struct shared_run {
    struct lw_winograd_kernels k;
    const problem *p;
    float *out, *inputs, *scratch;
    const float *packed;
    int64_t per_worker;
} shared_run;

static void shared_task(void *arg, int64_t task, int worker)
{
    const shared_run *r = arg;
    r->k.run(r->out, input(r->p), r->packed, r->inputs, &r->p->s, r->p->pass, r->p->m.tile, NULL,
             NULL, r->scratch + worker * r->per_worker, task);
}

static void inputs_task(void *arg, int64_t task, int worker)
{
    const shared_run *r = arg;
    (void)worker;
    r->k.inputs(r->inputs, input(r->p), &r->p->s, r->p->pass, r->p->m.tile, NULL, task);
}

static void products_task(void *arg, int64_t task, int worker)
{
    const shared_run *r = arg;
    (void)worker;
    r->k.products(r->inputs, r->packed, &r->p->s, r->p->pass, r->p->m.tile, task);
}

static void thread_invariance(check *t)
{
    const int cases = t->isa == LW_ISA_REF
                          ? 6
                          : 6 + 2 * (METHODS - 3); /* of the reference each has the same path */
    for (int i = 0; i < cases; i++) {
        problem p = make(t, i < 6 ? shape(3, 20, 18, 40, 150) : shape(1, 7, 6, 800, 774),
                         (lw_conv_pass)(i & 1), method_of(i / 2), false);
        shared_run r = {.k = tiles_of(t->isa, &p), .p = &p, .packed = pack(t, t->isa, &p)};
        r.per_worker = LW_ROUND_UP(lw_winograd_scratch_words(p.m.num, &p.s, p.pass, p.m.tile), 16);
        r.scratch = check_out(t, 5 * r.per_worker, 0);
        float *first = check_out(t, p.n_out, 0);
        run(t, &p, first, r.packed, NULL);
        const phase phases[] = {
            {lw_winograd_input_tasks(p.m.num, &p.s, p.pass, p.m.tile), inputs_task},
            {lw_winograd_product_tasks(p.m.num, &p.s, p.pass, p.m.tile), products_task},
            {lw_winograd_tasks(p.m.num, &p.s, p.pass, p.m.tile), shared_task}};
        static const int threads[] = {1, 2, 5};
        for (size_t k = 0; k < LW_COUNT(threads); k++) {
            r.out = check_out(t, p.n_out, 0);
            r.inputs = check_out(t, lw_winograd_shared_words(p.m.num, &p.s, p.pass, p.m.tile), 0);
            run_phases(threads[k], phases, LW_COUNT(phases), &r);
            check_same(t, r.out, first, (size_t)p.n_out * sizeof *first, "%d threads, %s",
                       threads[k], p.name);
        }
        check_next(t);
    }
}

/* The first two tasks: of the same pixels, or, of weights that are more than the transformed inputs, of the same columns. */
static void order_of_tasks(check *t)
{
    for (int N = 64; N <= 96; N += 32) {
        const problem p = make(t, shape(1, 32, 32, 16, N), LW_CONV_FORWARD, F4, false);
        const struct lw_winograd_kernels k = tiles_of(t->isa, &p);
        const int64_t n = lw_winograd_scratch_words(p.m.num, &p.s, p.pass, p.m.tile);
        float *packed = pack(t, t->isa, &p), *scratch = check_out(t, n, 0),
              *shared = check_out(t, lw_winograd_shared_words(p.m.num, &p.s, p.pass, p.m.tile), 0),
              *out = check_out(t, p.n_out, 0);
        memset(out, 0xff, (size_t)p.n_out * sizeof *out);
        for (int64_t i = lw_winograd_input_tasks(p.m.num, &p.s, p.pass, p.m.tile) - 1; i >= 0; i--)
            k.inputs(shared, p.in, &p.s, p.pass, p.m.tile, NULL, i);
        for (int64_t i = 0; i < 2; i++)
            k.run(out, p.in, packed, shared, &p.s, p.pass, p.m.tile, NULL, NULL, scratch, i);
        const bool more_weights = N > 64;
        const float *next_block = out + 8 * 32 * p.ld_out;
        const int got[] = {!isnan(out[0]), !isnan(out[32]), !isnan(next_block[0])},
                  want[] = {1, !more_weights, more_weights};
        check_same(t, got, want, sizeof want, "what two tasks write, %s", p.name);
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"sizes_4x4", sizes_4x4},
        {"sizes_plain", sizes_plain},
        {"sizes_lines", sizes_lines},
        {"sizes_5x5", sizes_5x5},
        {"sizes_2x2", sizes_2x2},
        {"sizes_bf16", sizes_bf16},
        {"large", large},
        {"pads", pads},
        {"random_shapes", random_shapes},
        {"rounded", rounded},
        {"epilogues", epilogues},
        {"no_pictures", no_pictures},
        {"batch_invariance", batch_invariance},
        {"layouts", layouts},
        {"pitch_invariance", pitch_invariance},
        {"thread_invariance", thread_invariance},
        {"order_of_tasks", order_of_tasks},
    };
    return check_main(argc, argv, "winograd", cases, LW_COUNT(cases));
}
