/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd convolutions of u8 x s8, which are exact: the bits of the direct kernels, at every level, size, pitch, epilogue,
 * layout, batch and number of threads, and at the largest bytes there are. */
#include "kernels/check.h"
#include "kernels/kernels.h"
#include "kernels/operands.h"
#include "kernels/winograd_methods.h"

#include <stdio.h>
#include <string.h>

typedef struct problem {
    lw_conv_shape s;
    int tile;
    uint8_t *x;
    float *w;
    lw_quant q;
    int64_t n_out;
    char name[160];
} problem;

static problem make(check *t, lw_conv_shape s, int tile, int32_t zero)
{
    double *values;
    if (lw_conv_shape_init(&s))
        LW_ASSERT(false, "%s", lw_errmsg());
    if (t->isa > LW_ISA_AVXVNNI) /* its panels are wider */
        tile &= ~LW_WINOGRAD_NARROW;
    problem p = {.s = s, .tile = tile, .q = {.a_scale = 0.0123f, .a_zero = zero}};
    const int64_t pixels = (int64_t)s.B * s.H * s.W, depth = 9 * (int64_t)s.C;
    p.n_out = ((int64_t)s.B * s.OH * s.OW - 1) * s.ldy + s.O;
    p.x = operands_u8(t, pixels * s.ldx, 1, &p.q, &values);
    p.w = check_in(t, s.O * depth, 1, -1, 1);
    p.q.b_scale = operand_scales(t, p.w, s.O, depth, &values);
    snprintf(p.name, sizeof p.name,
             "tile %d, B%d %dx%dx%d ldx %td, pads %d %d %d %d -> O%d ldy %td, zero %d", tile, s.B,
             s.H, s.W, s.C, s.ldx, s.pad_top, s.pad_left, s.pad_bottom, s.pad_right, s.O, s.ldy,
             zero);
    return p;
}

static struct lw_winograd_kernels tiles(lw_isa isa)
{
    lw_kernels all;
    lw_kernels_init(&all, isa);
    return all.winograd;
}

static float *pack(check *t, lw_isa isa, const problem *p)
{
    const struct lw_winograd_kernels k = tiles(isa);
    float *packed =
        check_out(t, lw_winograd_packed_words(LW_NUM_S8, &p->s, LW_CONV_FORWARD, p->tile), 0);
    int64_t i = lw_winograd_pack_tasks(LW_NUM_S8, &p->s, LW_CONV_FORWARD, p->tile);
    while (i-- > 0)
        k.pack_u8(packed, p->w, &p->s, LW_CONV_FORWARD, p->tile, &p->q, i);
    return packed;
}

/* Tasks in falling order, scratch poisoned: nothing may hang on what an earlier task left. */
static void run(check *t, lw_isa isa, const problem *p, void *out, const float *packed,
                const lw_epilogue *e)
{
    const struct lw_winograd_kernels k = tiles(isa);
    const lw_conv_shape *s = &p->s;
    const int64_t n = lw_winograd_scratch_words(LW_NUM_S8, s, LW_CONV_FORWARD, p->tile);
    float *scratch = check_out(t, n, 0),
          *shared = check_out(t, lw_winograd_shared_words(LW_NUM_S8, s, LW_CONV_FORWARD, p->tile),
                              0);
    int64_t i = lw_winograd_input_tasks(LW_NUM_S8, s, LW_CONV_FORWARD, p->tile);
    while (i-- > 0)
        k.inputs_u8(shared, p->x, s, LW_CONV_FORWARD, p->tile, &p->q, i);
    i = lw_winograd_product_tasks(LW_NUM_S8, s, LW_CONV_FORWARD, p->tile);
    while (i-- > 0)
        k.products_u8(shared, packed, s, LW_CONV_FORWARD, p->tile, i);
    i = lw_winograd_tasks(LW_NUM_S8, s, LW_CONV_FORWARD, p->tile);
    while (i-- > 0) {
        memset(scratch, 0xff, (size_t)n * sizeof *scratch);
        k.run_u8(out, p->x, packed, shared, s, LW_CONV_FORWARD, p->tile, &p->q, e, scratch, i);
    }
}

static void directly(check *t, const problem *p, void *out, const lw_epilogue *e)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    void *packed = check_bytes(t, lw_conv_packed_bytes(LW_NUM_S8, &p->s, LW_CONV_FORWARD), 0);
    for (int64_t i = lw_conv_pack_tasks(&p->s, LW_CONV_FORWARD); i-- > 0;)
        k.conv.pack_s8(packed, p->w, &p->s, LW_CONV_FORWARD, p->q.b_scale, i);
    for (int64_t i = lw_conv_tasks(t->isa, LW_NUM_S8, &p->s, LW_CONV_FORWARD); i-- > 0;)
        k.conv.forward_u8(out, p->x, packed, &p->q, &p->s, e, i);
}

/* What lies between pixels stays, too: check_out's poison is in both. */
static void check_equal(check *t, const problem *p, const lw_epilogue *e, const char *what)
{
    const size_t size = !e || e->store == LW_NUM_F32 ? sizeof(float)
                        : e->store == LW_NUM_BF16    ? sizeof(lw_bf16)
                                                     : sizeof(uint8_t),
                 bytes = size * (size_t)p->n_out;
    float *old = e && e->accumulate ? check_in(t, p->n_out, 0, -1, 1) : check_out(t, p->n_out, 0);
    float *want = check_copy(t, old, p->n_out, 0), *got = check_copy(t, old, p->n_out, 0);
    directly(t, p, want, e);
    run(t, t->isa, p, got, pack(t, t->isa, p), e);
    check_same(t, got, want, bytes, "%s%s", p->name, what);
    check_next(t);
}

static void sizes(check *t)
{
    static const int images[][3] = {{1, 8, 8}, {2, 4, 4}, {13, 4, 4},  {1, 5, 7}, {3, 1, 1},
                                    {2, 2, 3}, {1, 6, 1}, {1, 16, 16}, {2, 9, 10}};
    static const int channels[][2] = {{16, 16}, {4, 16}, {16, 3}, {4, 1}, {20, 33}, {40, 65}};
    for (size_t i = 0; i < LW_COUNT(images); i++)
        for (size_t j = 0; j < LW_COUNT(channels); j++) {
            const int *z = images[i], *c = channels[j];
            lw_conv_shape s = shape(z[0], z[1], z[2], c[0], c[1]);
            problem p = make(t, s, 4, (int32_t)(i * 37 + j) % 256);
            check_equal(t, &p, NULL, "");
            s.ldx = s.C + 4 + 4 * (int)(i % 3);
            s.ldy = s.O + 1 + (int)j;
            p = make(t, s, 4 | LW_WINOGRAD_ALONE, 255);
            check_equal(t, &p, NULL, "");
        }
}

/* Several blocks and groups of columns, divided points, and the deepest there are. */
static void large(check *t)
{
    static const int z[][5] = {{1, 4, 4, 400, 70},  {5, 16, 16, 32, 16}, {1, 12, 12, 96, 200},
                               {1, 5, 7, 800, 37},  {2, 3, 4, 36, 777},  {6, 32, 32, 24, 40},
                               {1, 8, 8, 260, 260}, {1, 7, 6, 1840, 70}};
    for (size_t i = 0; i < LW_COUNT(z); i++)
        for (int k = 0; k < 3; k++) {
            static const int layout[] = {0, LW_WINOGRAD_ALONE, LW_WINOGRAD_NARROW};
            problem p = make(t, shape(z[i][0], z[i][1], z[i][2], z[i][3], z[i][4]), 4 | layout[k],
                             77);
            check_equal(t, &p, NULL, "");
        }
}

static void pads(check *t)
{
    for (int i = 0; i < 81; i++) {
        const lw_conv_shape s = with_pads(shape(1 + i % 2, 3 + i % 7, 3 + i % 5, 8, 18), i % 3,
                                          i / 3 % 3, i / 9 % 3, i / 27);
        problem p = make(t, s, 4, 3 * i);
        check_equal(t, &p, NULL, "");
    }
}

static void random_shapes(check *t)
{
    for (int i = 0; i < 80; i++) {
        lw_conv_shape s = shape(1 + (int)check_below(t, 5), 1 + (int)check_below(t, 13),
                                1 + (int)check_below(t, 13), 4 + 4 * (int)check_below(t, 24),
                                1 + (int)check_below(t, 90));
        s.ldx = s.C + 4 * (ptrdiff_t)check_below(t, 2);
        s.ldy = s.O + (ptrdiff_t)check_below(t, 2);
        problem p = make(t, s, 4, (int32_t)check_below(t, 256));
        check_equal(t, &p, NULL, "");
    }
}

static void epilogues(check *t)
{
    for (int i = 0; i < 96 * LW_ACT_COUNT; i++) {
        static const lw_num stores[] = {LW_NUM_F32, LW_NUM_BF16, LW_NUM_S8};
        const lw_num store = stores[i / 32 % 3];
        const lw_act act = (lw_act)(i / 96);
        problem p = make(t, shape(3, 4, 5, 12, 37), 4, 100);
        const ptrdiff_t pixels = 60, ld_res = 40;
        float *res;
        lw_bf16 *low = operands_added(t, pixels * ld_res, &res);
        const lw_epilogue e = {.bias = i & 1 ? check_in(t, 37, 1, -1, 1) : NULL,
                               .image_bias = i & 2 ? check_in(t, 3 * 38, 1, -1, 1) : NULL,
                               .ld_image_bias = 38,
                               .residual = (i & 12) == 4 ? res : NULL,
                               .residual_low = (i & 12) == 8 ? low : NULL,
                               .ld_residual = ld_res,
                               .accumulate = (i & 16) && store == LW_NUM_F32,
                               .act = act,
                               .store = store,
                               .store_pair = operand_pairs[i & 1]};
        check_equal(t, &p, &e, ", an epilogue");
    }
}

/* Images and filters of two bytes, at the ends or at random: points are as large as they can be where signs are those of a
 * transform. Scales of 1: results are the sums. */
static void largest(check *t)
{
    static const int input[6][6] = {{2, 3, -4, -3, 2, 0}, {0, -2, -5, -1, 2, 0},
                                    {0, 2, 1, -5, 2, 0},  {0, -1, -2, 1, 2, 0},
                                    {0, 2, -1, -2, 1, 0}, {0, 2, 3, -4, -3, 2}};
    static const int filter[6][3] = {{1, 1, 1}, {-1, -1, -1}, {1, -1, 1},
                                     {1, 1, 1}, {-1, 1, -1},  {-1, 1, 1}};
    for (int i = 0; i < 4 * 36; i++) {
        const int row = i % 6, col = i / 6 % 6, signs = i / 36;
        problem p = make(t, shape(1, 6, 6, 1840, 4), 4, signs & 1 ? 255 : 0);
        float *scale = check_in(t, 4, 0, 1, 1);
        p.q.a_scale = 1.0f;
        p.q.b_scale = scale;
        for (int pixel = 0; pixel < 36; pixel++) {
            const int v = input[row][pixel / 6] * input[col][pixel % 6];
            memset(p.x + pixel * p.s.ldx, (v > 0) == !(signs & 2) ? 255 : 0, (size_t)p.s.C);
        }
        for (int n = 0; n < 4; n++)
            for (int tap = 0; tap < 9; tap++)
                for (int c = 0; c < p.s.C; c++)
                    p.w[(n * 9 + tap) * p.s.C + c] =
                        127.0f * (float)(filter[row][tap / 3] * filter[col][tap % 3]) *
                        (n & 1 ? -1.0f : 1.0f) * (n & 2 && c % 2 ? -1.0f : 1.0f);
        check_equal(t, &p, NULL, ", the largest");
    }
}

/* An image's bits are the same alone and in any batch. */
static void batch_invariance(check *t)
{
    static const int images[][5] = {{19, 4, 4, 40, 33},  {7, 8, 8, 20, 48},  {3, 16, 16, 16, 16},
                                    {11, 8, 8, 396, 70}, {3100, 1, 1, 8, 4}, {9, 20, 18, 32, 150}};
    for (size_t i = 0; i < LW_COUNT(images); i++) {
        const int *z = images[i];
        problem p = make(t, shape(z[0], z[1], z[2], z[3], z[4]), 4, 9);
        float *all = check_out(t, p.n_out, 0), *packed = pack(t, t->isa, &p);
        run(t, t->isa, &p, all, packed, NULL);
        problem q = p;
        q.s.B = 1;
        const ptrdiff_t in = (ptrdiff_t)z[1] * z[2] * z[3], out = (ptrdiff_t)z[1] * z[2] * z[4];
        for (int b = 0; b<z[0]; b += z[0]> 100 ? 97 : 1) {
            float *one = check_out(t, out, 1);
            q.x = p.x + b * in;
            run(t, t->isa, &q, one, packed, NULL);
            check_same(t, one, all + b * out, (size_t)out * sizeof *one, "image %d of %s", b,
                       p.name);
        }
        check_next(t);
    }
}

/* The same bits however many threads run the tasks. */
typedef struct threaded {
    struct lw_winograd_kernels k;
    const problem *p;
    float *out, *shared, *scratch;
    const float *packed;
    int64_t per_worker;
} threaded;

static void inputs_task(void *arg, int64_t task, int worker)
{
    const threaded *r = arg;
    (void)worker;
    r->k.inputs_u8(r->shared, r->p->x, &r->p->s, LW_CONV_FORWARD, r->p->tile, &r->p->q, task);
}
static void products_task(void *arg, int64_t task, int worker)
{
    const threaded *r = arg;
    (void)worker;
    r->k.products_u8(r->shared, r->packed, &r->p->s, LW_CONV_FORWARD, r->p->tile, task);
}
static void run_task(void *arg, int64_t task, int worker)
{
    const threaded *r = arg;
    r->k.run_u8(r->out, r->p->x, r->packed, r->shared, &r->p->s, LW_CONV_FORWARD, r->p->tile,
                &r->p->q, NULL, r->scratch + worker * r->per_worker, task);
}

static void thread_invariance(check *t)
{
    const int deep = t->isa == LW_ISA_REF ? 40 : 800;
    const lw_conv_shape shapes[] = {shape(3, 20, 18, 40, 150), shape(1, 7, 6, deep, 774)};
    for (size_t i = 0; i < LW_COUNT(shapes); i++) {
        problem p = make(t, shapes[i], 4, 128);
        const lw_conv_shape *s = &p.s;
        threaded r = {.k = tiles(t->isa), .p = &p, .packed = pack(t, t->isa, &p)};
        float *first = check_out(t, p.n_out, 0);
        r.per_worker = LW_ROUND_UP(lw_winograd_scratch_words(LW_NUM_S8, s, LW_CONV_FORWARD, p.tile),
                                   16);
        r.scratch = check_out(t, 5 * r.per_worker, 0);
        run(t, t->isa, &p, first, r.packed, NULL);
        const phase phases[] = {
            {lw_winograd_input_tasks(LW_NUM_S8, s, LW_CONV_FORWARD, p.tile), inputs_task},
            {lw_winograd_product_tasks(LW_NUM_S8, s, LW_CONV_FORWARD, p.tile), products_task},
            {lw_winograd_tasks(LW_NUM_S8, s, LW_CONV_FORWARD, p.tile), run_task}};
        for (int threads = 1; threads <= 5; threads += 2) {
            r.out = check_out(t, p.n_out, 0);
            r.shared = check_out(t, lw_winograd_shared_words(LW_NUM_S8, s, LW_CONV_FORWARD, p.tile),
                                 0);
            run_phases(threads, phases, LW_COUNT(phases), &r);
            check_same(t, r.out, first, (size_t)p.n_out * sizeof *first, "%d threads, %s", threads,
                       p.name);
        }
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"sizes", sizes},
        {"large", large},
        {"pads", pads},
        {"random_shapes", random_shapes},
        {"epilogues", epilogues},
        {"largest", largest},
        {"batch_invariance", batch_invariance},
        {"thread_invariance", thread_invariance},
    };
    return check_main(argc, argv, "winograd_u8", cases, LW_COUNT(cases));
}
