/* SPDX-License-Identifier: Apache-2.0 */
/* Rescaling convolutions, both directions, against a double-precision loop nest over the 3x3 filters; batch, pitch and
 * thread invariance to the bit; where they apply and when they are chosen. */
#include "kernels/check.h"
#include "kernels/kernels.h"
#include "kernels/operands.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The bound that is promised: as that of F(4x4) in test_winograd.c, three quarters of it. */
static check_tol tol_of(int64_t chain)
{
    return (check_tol){.abs = 6e-6 * ceil(sqrt((double)chain)), .rel = 2e-7};
}

/* in -> out: its operands and what it should give, [pixels][channels], dense. */
typedef struct problem {
    lw_conv_shape s;
    lw_conv_pass pass;
    bool up;
    ptrdiff_t K, N, in_H, in_W, out_H, out_W, ld_in, ld_out;
    int64_t n_in, n_out;
    float *in, *three, *w; /* three: the filters of 3x3, [N][3][3][K] */
    double *want;
    char name[160];
} problem;

static void oracle(check *t, problem *p)
{
    const lw_conv_shape *s = &p->s;
    p->want = check_doubles(t, (int64_t)s->B * p->out_H * p->out_W * p->N);
    double *to = p->want;
    for (ptrdiff_t b = 0; b < s->B; b++)
        for (ptrdiff_t i = 0; i < p->out_H * p->out_W; i++)
            for (ptrdiff_t n = 0; n < p->N; n++, to++)
                for (int tap = 0; tap < 9; tap++) {
                    const ptrdiff_t oy = i / p->out_W, ox = i % p->out_W;
                    ptrdiff_t y = p->up ? oy + tap / 3 - 1 : 2 * oy + tap / 3 - s->pad_top,
                              x = p->up ? ox + tap % 3 - 1 : 2 * ox + tap % 3 - s->pad_left;
                    if (y < 0 || x < 0 || (p->up && (y >= p->out_H || x >= p->out_W)))
                        continue;
                    y /= p->up ? 2 : 1;
                    x /= p->up ? 2 : 1;
                    if (y >= p->in_H || x >= p->in_W)
                        continue;
                    const float *in = p->in + ((b * p->in_H + y) * p->in_W + x) * p->ld_in,
                                *w = p->three + (n * 9 + tap) * p->K;
                    for (ptrdiff_t k = 0; k < p->K; k++)
                        *to += (double)in[k] * (double)w[k];
                }
}

/* in_H, in_W, K, N: of the input. */
typedef struct sizes {
    int B, H, W, K, N;
    int pad_y, pad_x;      /* before; of what shrinks */
    int more_in, more_out; /* of the pitches */
    int after;             /* pads behind, of what shrinks */
} sizes;

static problem make(check *t, sizes z, bool up, bool with_oracle)
{
    problem p = {.up = up, .pass = up ? LW_CONV_DATA_GRAD : LW_CONV_FORWARD, .K = z.K, .N = z.N};
    p.s = up ? (lw_conv_shape){.B = z.B,
                               .H = 2 * z.H,
                               .W = 2 * z.W,
                               .C = z.N,
                               .O = z.K,
                               .KH = 4,
                               .KW = 4,
                               .stride = 2,
                               .pad_top = 1,
                               .pad_left = 1,
                               .pad_bottom = 1,
                               .pad_right = 1,
                               .ldx = z.N + z.more_out,
                               .ldy = z.K + z.more_in,
                               .upsampling = true}
             : (lw_conv_shape){.B = z.B,
                               .H = z.H,
                               .W = z.W,
                               .C = z.K,
                               .O = z.N,
                               .KH = 3,
                               .KW = 3,
                               .stride = 2,
                               .pad_top = z.pad_y,
                               .pad_left = z.pad_x,
                               .pad_bottom = z.after,
                               .pad_right = z.after,
                               .ldx = z.K + z.more_in,
                               .ldy = z.N + z.more_out};
    if (lw_conv_shape_init(&p.s))
        LW_ASSERT(false, "%s", lw_errmsg());
    p.in_H = z.H;
    p.in_W = z.W;
    p.out_H = up ? 2 * z.H : p.s.OH;
    p.out_W = up ? 2 * z.W : p.s.OW;
    p.ld_in = z.K + z.more_in;
    p.ld_out = z.N + z.more_out;
    p.n_in = ((int64_t)z.B * z.H * z.W - 1) * p.ld_in + z.K;
    p.n_out = ((int64_t)z.B * p.out_H * p.out_W - 1) * p.ld_out + z.N;
    const int shift = z.more_in & 1;
    p.in = check_in(t, p.n_in, shift, -1, 1);
    p.w = p.three = check_in(t, (int64_t)9 * z.K * z.N, shift, -1, 1);
    if (up) {
        p.w = check_out(t, (int64_t)16 * z.K * z.N, shift);
        lw_upconv_weight_ref(p.w, p.three, z.N, z.K, 0, z.K);
    }
    snprintf(p.name, sizeof p.name, "%s B%d %dx%dx%d +%d pads %d %d %d -> %d +%d",
             up ? "up" : "down", z.B, z.H, z.W, z.K, z.more_in, z.pad_y, z.pad_x, z.after, z.N,
             z.more_out);
    if (!lw_rescale_applies(&p.s, p.pass))
        LW_ASSERT(false, "%s", p.name);
    if (with_oracle)
        oracle(t, &p);
    return p;
}

static struct lw_rescale_kernels kernels_of(lw_isa isa)
{
    lw_kernels all;
    lw_kernels_init(&all, isa);
    return all.rescale;
}

static float *pack(check *t, const problem *p)
{
    const struct lw_rescale_kernels k = kernels_of(t->isa);
    float *packed = check_out(t, lw_rescale_packed_floats(&p->s, p->pass), 0);
    for (int64_t i = lw_rescale_pack_tasks(&p->s, p->pass) - 1; i >= 0; i--)
        k.pack(packed, p->w, &p->s, p->pass, i);
    return packed;
}

/* Tasks in falling order, scratch poisoned: nothing may hang on what an earlier task left. */
static void run(check *t, const problem *p, float *out, const float *packed, const lw_epilogue *e)
{
    const struct lw_rescale_kernels k = kernels_of(t->isa);
    const int64_t n = lw_rescale_scratch_floats(&p->s, p->pass);
    float *scratch = check_out(t, n, 0),
          *shared = check_out(t, lw_rescale_shared_floats(&p->s, p->pass), 0);
    for (int64_t i = lw_rescale_input_tasks(&p->s, p->pass) - 1; i >= 0; i--)
        k.inputs(shared, p->in, &p->s, p->pass, i);
    for (int64_t i = lw_rescale_product_tasks(&p->s, p->pass) - 1; i >= 0; i--)
        k.products(shared, packed, &p->s, p->pass, i);
    for (int64_t i = lw_rescale_tasks(&p->s, p->pass) - 1; i >= 0; i--) {
        memset(scratch, 0xff, (size_t)n * sizeof *scratch);
        k.run(out, p->in, packed, shared, &p->s, p->pass, e, scratch, i);
    }
}

static void check_one(check *t, sizes z, bool up)
{
    problem p = make(t, z, up, true);
    float *out = check_out(t, p.n_out, z.more_out & 1);
    run(t, &p, out, pack(t, &p), NULL);
    const ptrdiff_t pixels = z.B * p.out_H * p.out_W;
    for (ptrdiff_t i = 0; i < pixels; i++) {
        check_close(t, out + i * p.ld_out, p.want + i * p.N, p.N, tol_of(9 * p.K), "%s, pixel %td",
                    p.name, i);
        if (i + 1 < pixels)
            check_poisoned(t, out + i * p.ld_out + p.N, p.ld_out - p.N, "%s", p.name);
    }
    check_next(t);
}

static void sizes_at(check *t, bool up)
{
    static const int images[][3] = {{1, 8, 8},  {2, 4, 4},  {13, 4, 4}, {1, 5, 7},
                                    {3, 1, 1},  {2, 2, 3},  {1, 6, 1},  {1, 16, 16},
                                    {2, 9, 10}, {1, 3, 70}, {1, 37, 18}};
    static const int channels[][2] = {{16, 16}, {3, 16}, {16, 3}, {1, 1}, {17, 33}, {40, 65}};
    for (size_t i = 0; i < LW_COUNT(images); i++)
        for (size_t j = 0; j < LW_COUNT(channels); j++) {
            const sizes z = {images[i][0],
                             images[i][1],
                             images[i][2],
                             channels[j][0],
                             channels[j][1],
                             .pad_y = (int)(i + j) & 1,
                             .pad_x = (int)(i + j) / 2 & 1,
                             .after = (int)(i + 2 * j) % 3};
            if (up || (z.H + z.pad_y + z.after > 2 && z.W + z.pad_x + z.after > 2))
                check_one(t, z, up);
        }
}
static void sizes_up(check *t)
{
    sizes_at(t, true);
}
static void sizes_down(check *t)
{
    sizes_at(t, false);
}

/* Pitches, many channels, several blocks, groups of columns, and parts. */
static void large(check *t)
{
    for (int up = 0; up < 2; up++) {
        check_one(t, (sizes){1, 4, 4, 400, 70, 1, 1, 0, 0, 1}, up);
        check_one(t, (sizes){5, 16, 16, 32, 16, 0, 0, 0, 0, 1}, up);
        check_one(t, (sizes){1, 12, 12, 96, 200, 1, 0, 0, 0, 1}, up);
        check_one(t, (sizes){1, 5, 7, 801, 37, 1, 1, 0, 0, 1},
                  up); /* so few tiles that numbers are divided */
        check_one(t, (sizes){2, 3, 4, 35, 777, 0, 1, 0, 0, 1}, up);
        check_one(t, (sizes){9, 40, 33, 13, 40, 1, 1, 0, 0, 1},
                  up); /* blocks enough that each transforms for itself */
    }
}

static void random_shapes(check *t)
{
    for (int i = 0; i < 60; i++) {
        const sizes z = {1 + (int)check_below(t, 5),  3 + (int)check_below(t, 20),
                         3 + (int)check_below(t, 20), 1 + (int)check_below(t, 70),
                         1 + (int)check_below(t, 70), (int)check_below(t, 2),
                         (int)check_below(t, 2),      (int)check_below(t, 3),
                         (int)check_below(t, 3),      (int)check_below(t, 4)};
        check_one(t, z, i & 1);
    }
}

static void epilogues(check *t)
{
    for (int i = 0; i < 32 * LW_ACT_COUNT; i++) {
        problem p = make(t, (sizes){3, 4, 5, 10, 37, 1, 1, 0, 0, 1}, i & 1, true);
        const ptrdiff_t plane = p.out_H * p.out_W, pixels = 3 * plane, n = pixels * 37, ld_res = 40,
                        ld_ib = 38;
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
        check_close(t, out, p.want, n, tol_of(100), "epilogue %d of %s", i, p.name);
        check_next(t);
    }
}

/* A batch without pictures writes nothing. */
static void no_pictures(check *t)
{
    for (int i = 0; i < 4; i++) {
        problem p = make(t, (sizes){1, 8, 8, i & 2 ? 256 : 16, 48, 1, 1, 0, 0, 1}, i & 1, false);
        float *packed = pack(t, &p), *out = check_out(t, p.n_out, 0);
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
    static const sizes images[] = {
        {19, 4, 4, 40, 33, 1, 1, 0, 0, 1},  {7, 8, 8, 20, 48, 0, 1, 0, 0, 1},
        {3, 16, 16, 16, 16, 1, 1, 0, 0, 1}, {14, 4, 4, 350, 32, 1, 0, 0, 0, 1},
        {11, 4, 4, 20, 3, 1, 1, 0, 0, 1},   {6, 5, 2, 8, 8, 1, 1, 0, 0, 1},
        {11, 8, 8, 390, 70, 1, 1, 0, 0, 1}, /* one alone: numbers are divided */
        {3100, 2, 2, 8, 4, 0, 0, 0, 0, 1}}; /* tasks enough of blocks */
    for (size_t i = 0; i < 2 * LW_COUNT(images); i++) {
        const sizes z = images[i / 2];
        if (t->isa == LW_ISA_REF && z.K > 100) /* divides nothing, and takes seconds */
            continue;
        problem p = make(t, z, i & 1, false), q = p;
        float *all = check_out(t, p.n_out, 0), *packed = pack(t, &p);
        run(t, &p, all, packed, NULL);
        q.s.B = 1;
        const ptrdiff_t in = p.in_H * p.in_W * p.K, out = p.out_H * p.out_W * p.N;
        for (int b = 0; b < z.B; b++, q.in += in) {
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
    for (int up = 0; up < 2; up++) {
        problem p = make(t, (sizes){2, 6, 6, 24, 40, 1, 1, 0, 0, 1}, up, false), q = p;
        *(up ? &q.s.ldy : &q.s.ldx) += 5;
        q.in = check_in(t, 72 * 29, 0, -1, 1);
        for (ptrdiff_t i = 0; i < 72; i++)
            memcpy(q.in + i * 29, p.in + i * 24, 24 * sizeof *q.in);
        float *packed = pack(t, &p), *one = check_out(t, p.n_out, 0),
              *two = check_out(t, p.n_out, 0);
        run(t, &p, one, packed, NULL);
        run(t, &q, two, packed, NULL);
        check_same(t, two, one, (size_t)p.n_out * sizeof *one, "dense and pitched %s", p.name);
        check_next(t);
    }
}

/* The same bits whatever the order of tasks and however many threads run them. */
typedef struct shared_run {
    struct lw_rescale_kernels k;
    const problem *p;
    float *out, *shared, *scratch;
    const float *packed;
    int64_t per_worker;
} shared_run;

static void inputs_task(void *arg, int64_t task, int worker)
{
    const shared_run *r = arg;
    (void)worker;
    r->k.inputs(r->shared, r->p->in, &r->p->s, r->p->pass, task);
}
static void products_task(void *arg, int64_t task, int worker)
{
    const shared_run *r = arg;
    (void)worker;
    r->k.products(r->shared, r->packed, &r->p->s, r->p->pass, task);
}
static void run_task(void *arg, int64_t task, int worker)
{
    const shared_run *r = arg;
    r->k.run(r->out, r->p->in, r->packed, r->shared, &r->p->s, r->p->pass, NULL,
             r->scratch + worker * r->per_worker, task);
}

static void thread_invariance(check *t)
{
    static const sizes of[] = {{3, 20, 18, 40, 150, 1, 1, 0, 0, 1},
                               {1, 7, 6, 800, 770, 1, 1, 0, 0, 1},
                               {9, 40, 33, 13, 40, 1, 1, 0, 0, 1}};
    for (size_t i = 0; i < 2 * LW_COUNT(of); i++) {
        if (t->isa == LW_ISA_REF && i >= 2) /* the same path */
            break;
        problem p = make(t, of[i / 2], i & 1, false);
        shared_run r = {.k = kernels_of(t->isa), .p = &p, .packed = pack(t, &p)};
        r.per_worker = LW_ROUND_UP(lw_rescale_scratch_floats(&p.s, p.pass), 16);
        r.scratch = check_out(t, 5 * r.per_worker, 0);
        float *first = check_out(t, p.n_out, 0);
        run(t, &p, first, r.packed, NULL);
        const phase phases[] = {{lw_rescale_input_tasks(&p.s, p.pass), inputs_task},
                                {lw_rescale_product_tasks(&p.s, p.pass), products_task},
                                {lw_rescale_tasks(&p.s, p.pass), run_task}};
        static const int threads[] = {1, 2, 5};
        for (size_t k = 0; k < LW_COUNT(threads); k++) {
            r.out = check_out(t, p.n_out, 0);
            r.shared = check_out(t, lw_rescale_shared_floats(&p.s, p.pass), 0);
            run_phases(threads[k], phases, LW_COUNT(phases), &r);
            check_same(t, r.out, first, (size_t)p.n_out * sizeof *first, "%d threads, %s",
                       threads[k], p.name);
        }
        check_next(t);
    }
}

static void holds(check *t, bool x, const char *what, const char *name)
{
    const bool yes = true;
    check_same(t, &x, &yes, sizeof x, "%s: %s", name, what);
}

/* Tasks of each phase: products for 64 threads, or as many as there are blocks and columns; what comes before and behind them for
 * some, of one small picture for eight. */
static void tasks_enough(check *t)
{
    static const struct {
        sizes z;
        int inputs, products, back;
    } of[] = {{{1, 16, 16, 256, 256, 1, 1, 0, 0, 1}, 4, 32, 8},
              {{1, 8, 8, 256, 256, 1, 1, 0, 0, 1}, 1, 32, 8},
              {{8, 16, 16, 256, 256, 1, 1, 0, 0, 1}, 32, 32, 32},
              {{1, 32, 32, 128, 128, 1, 1, 0, 0, 1}, 16, 16, 8},
              {{16, 32, 32, 32, 32, 1, 1, 0, 0, 1}, 0, 64, 64}};
    for (size_t i = 0; i < 2 * LW_COUNT(of); i++) {
        const problem p = make(t, of[i / 2].z, i & 1, false);
        const int64_t products = lw_rescale_product_tasks(&p.s, p.pass),
                      back = lw_rescale_tasks(&p.s, p.pass);
        holds(t, lw_rescale_input_tasks(&p.s, p.pass) >= of[i / 2].inputs, "tasks of inputs",
              p.name);
        holds(t, (products ? products : back) >= of[i / 2].products, "tasks of products", p.name);
        holds(t, back >= of[i / 2].back, "tasks back", p.name);
        check_next(t);
    }
}

/* The first two tasks: of the same pixels, or, of weights that are more than the transformed inputs, of the same columns. */
static void order_of_tasks(check *t)
{
    for (int N = 36; N <= 64; N += 28) {
        const problem p = make(t, (sizes){1, 16, 16, 32, N, 1, 1, 0, 0, 1}, true, false);
        const struct lw_rescale_kernels k = kernels_of(t->isa);
        float *packed = pack(t, &p),
              *scratch = check_out(t, lw_rescale_scratch_floats(&p.s, p.pass), 0),
              *shared = check_out(t, lw_rescale_shared_floats(&p.s, p.pass), 0),
              *out = check_out(t, p.n_out, 0);
        memset(out, 0xff, (size_t)p.n_out * sizeof *out);
        for (int64_t i = lw_rescale_input_tasks(&p.s, p.pass) - 1; i >= 0; i--)
            k.inputs(shared, p.in, &p.s, p.pass, i);
        for (int64_t i = 0; i < 2; i++)
            k.run(out, p.in, packed, shared, &p.s, p.pass, NULL, scratch, i);
        const bool more_weights = N > 36;
        const float *last = out + (p.out_H * p.out_W - 1) * p.ld_out;
        holds(t, !isnan(out[0]) && isnan(out[32]) == more_weights, "the first pixel", p.name);
        holds(t, isnan(last[0]) != more_weights, "the last pixel", p.name);
        check_next(t);
    }
}

/* Where it applies, and where it is chosen. */
static void rule(check *t)
{
    const lw_conv_shape down = make(t, (sizes){1, 32, 32, 64, 64, 1, 1, 0, 0, 1}, false, false).s,
                        up = make(t, (sizes){1, 16, 16, 64, 64, 1, 1, 0, 0, 1}, true, false).s;
    lw_conv_shape s = down;
    holds(t, !lw_rescale_applies(&down, LW_CONV_DATA_GRAD), "the gradient of stride 2", "rule");
    s.pad_left = 2;
    holds(t, !lw_rescale_applies(&s, LW_CONV_FORWARD), "two pads", "rule");
    s = down;
    s.stride = 1;
    holds(t, !lw_rescale_applies(&s, LW_CONV_FORWARD), "stride 1", "rule");
    s = up;
    s.upsampling = false;
    holds(t, !lw_rescale_applies(&s, LW_CONV_DATA_GRAD), "filters that are no sums", "rule");
    s = up;
    s.O = LW_RESCALE_MAX_DEPTH + 1;
    holds(t, !lw_rescale_applies(&s, LW_CONV_DATA_GRAD), "too deep", "rule");
    const bool avx2 = lw_isa_is_avx2(t->isa),
               avx512 = t->isa == LW_ISA_AVX512 || t->isa == LW_ISA_AVX512BF16;
    for (int i = 0; i < 2; i++) {
        const bool chosen = avx2 || (avx512 && i);
        const lw_conv_pass pass = i ? LW_CONV_DATA_GRAD : LW_CONV_FORWARD;
        s = i ? up : down;
        holds(t, lw_rescale_pays(&s, pass, t->isa, LW_CONV_MODE_AUTO) == chosen, "64 channels",
              "rule");
        holds(t, lw_rescale_pays(&s, pass, t->isa, LW_CONV_MODE_WINOGRAD), "asked for", "rule");
        holds(t, !lw_rescale_pays(&s, pass, t->isa, LW_CONV_MODE_DIRECT), "not wanted", "rule");
        s.C = !i ? 63 : avx2 ? 15 : 31;
        holds(t, !lw_rescale_pays(&s, pass, t->isa, LW_CONV_MODE_AUTO), "few channels", "rule");
        for (int side = 1; side <= 20; side++) {
            s = i ? up : down;
            s.OH = s.OW = side;
            s.H = s.W = 2 * side;
            const bool saves = side == 4 || side == 7 || side == 8 || side == 11 || side == 12 ||
                               side >= 14 || (i && (side == 3 || side == 13)),
                       pays = lw_rescale_pays(&s, pass, t->isa, LW_CONV_MODE_AUTO);
            check_same(t, &pays, &(bool){chosen && saves}, sizeof pays, "%d x %d, pass %d", side,
                       side, i);
        }
        s.OH = s.OW = 4;
        s.H = s.W = 8;
        s.C = s.O = 256;
        holds(t, !lw_rescale_pays(&s, pass, t->isa, LW_CONV_MODE_AUTO), "one tile", "rule");
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"sizes_up", sizes_up},
        {"sizes_down", sizes_down},
        {"large", large},
        {"random_shapes", random_shapes},
        {"epilogues", epilogues},
        {"no_pictures", no_pictures},
        {"batch_invariance", batch_invariance},
        {"pitch_invariance", pitch_invariance},
        {"thread_invariance", thread_invariance},
        {"tasks_enough", tasks_enough},
        {"order_of_tasks", order_of_tasks},
        {"rule", rule},
    };
    return check_main(argc, argv, "rescale", cases, LW_COUNT(cases));
}
