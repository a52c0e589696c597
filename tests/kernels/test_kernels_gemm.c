/* SPDX-License-Identifier: Apache-2.0 */
/* gemm of f32, also as sums of three bf16, of bf16 and of u8 x s8 against double loops over the rounded operands: sizes around
 * vector widths, pitches, epilogues, whole numbers exactly, row invariance. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/check.h"
#include "kernels/kernels.h"
#include "kernels/operands.h"

static struct lw_gemm_kernels kernels_of(const check *t)
{
    static lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k.gemm;
}

typedef struct product {
    ptrdiff_t m, n, k, pad; /* pad: extra words per row of a, extra floats per row of c */
    bool transposed;        /* w is [k][n] */
    bool bias, residual, accumulate;
    lw_act act;
    ptrdiff_t per; /* rows that are one row of draws, of which sums are dropped; 0: none */
} product;

/* Of draws that are every product's. */
static lw_drop drop_of(const check *t, product p)
{
    static int64_t ids[64];
    for (size_t i = 0; i < LW_COUNT(ids); i++)
        ids[i] = (int64_t)(i * i) << (i % 40);
    return (lw_drop){.key = lw_rng_key_of(t->seed, 7),
                     .step = 3,
                     .p = 0.3f,
                     .per = p.per,
                     .width = p.n,
                     .ids = ids};
}

static double kept(const lw_drop *d, ptrdiff_t m, ptrdiff_t n)
{
    uint64_t e = (uint64_t)(m % d->per * d->width + n);
    double u = lw_rng_uniform(d->key, d->step, (uint64_t)d->ids[m / d->per], e);
    return u >= (double)d->p ? 1.0 / (1.0 - (double)d->p) : 0.0;
}

/* Operands of one product and what it should give. */
typedef struct matrices {
    product p;
    lw_num num;
    ptrdiff_t lda, ldc, ldr;
    const void *a;
    float *w, *bias, *residual, *old, *c;
    lw_bf16 *residual_low; /* the same numbers */
    double *want;
    lw_quant q;
    void *packed;
} matrices;

static void pack_task(check *t, const matrices *o, void *packed, int64_t task)
{
    struct lw_gemm_kernels k = kernels_of(t);
    ptrdiff_t N = o->p.n, K = o->p.k;
    ptrdiff_t sn = o->p.transposed ? 1 : K, sk = o->p.transposed ? N : 1;
    if (o->num == LW_NUM_S8)
        k.pack_s8(packed, o->w, N, K, sn, sk, o->q.b_scale, task);
    else if (o->num == LW_NUM_F32)
        k.pack(packed, o->w, N, K, sn, sk, task);
    else if (o->num == LW_NUM_BF16X3)
        k.pack_bf16x3(packed, o->w, N, K, sn, sk, task);
    else
        k.pack_bf16(packed, o->w, N, K, sn, sk, task);
}

static void *pack(check *t, const matrices *o)
{
    void *packed = check_bytes(t, lw_gemm_packed_bytes(o->num, o->p.n, o->p.k), 0);
    for (int64_t i = lw_gemm_pack_tasks(o->p.n, o->p.k) - 1; i >= 0; i--)
        pack_task(t, o, packed, i);
    return packed;
}

static void forward(check *t, const matrices *o, float *c, const void *a, ptrdiff_t M,
                    const lw_epilogue *e)
{
    struct lw_gemm_kernels k = kernels_of(t);
    ptrdiff_t N = o->p.n, K = o->p.k;
    for (int64_t i = lw_gemm_tasks(t->isa, o->num, M, N, K) - 1; i >= 0; i--) {
        if (o->num == LW_NUM_S8)
            k.forward_u8(c, o->ldc, a, o->lda, o->packed, &o->q, M, N, K, e, i);
        else if (o->num == LW_NUM_F32)
            k.forward(c, o->ldc, a, o->lda, o->packed, M, N, K, e, i);
        else if (o->num == LW_NUM_BF16X3)
            k.forward_bf16x3(c, o->ldc, a, o->lda, o->packed, M, N, K, e, i);
        else
            k.forward_bf16(c, o->ldc, a, o->lda, o->packed, M, N, K, e, i);
    }
}

/* Values of w as [n][k]: rounded as the kernel should. */
static double *weights(check *t, matrices *o)
{
    product p = o->p;
    float *rows = check_out(t, p.n * p.k, 0);
    for (ptrdiff_t i = 0; i < p.n * p.k; i++)
        rows[i] = p.transposed ? o->w[i % p.k * p.n + i / p.k] : o->w[i];
    return operand_weights(t, o->num, rows, p.n, p.k, &o->q);
}

static matrices make(check *t, product p, lw_num num)
{
    ptrdiff_t per_word = lw_num_per_word(num);
    matrices o = {.p = p,
                  .num = num,
                  .lda = p.k + p.pad * per_word,
                  .ldc = p.n + p.pad,
                  .ldr = p.n + 2 * p.pad,
                  .q = {.a_scale = 0.0123f, .a_zero = (int32_t)check_below(t, 256)}};
    int shift = p.pad & 1;
    int64_t na = (p.m - 1) * o.lda + p.k;
    double *a;
    o.a = operands(t, num, na, shift, &o.q, &a);
    o.w = check_in(t, p.n * p.k, shift, -1, 1);
    double *w = weights(t, &o);
    o.bias = check_in(t, p.n, shift, -1, 1);
    o.residual_low = operands_added(t, (p.m - 1) * o.ldr + p.n, &o.residual);
    o.old = check_in(t, p.m * p.n, 0, -1, 1);
    o.c = check_out(t, (p.m - 1) * o.ldc + p.n, shift);
    o.want = check_doubles(t, p.m * p.n);
    lw_drop d = drop_of(t, p);
    for (ptrdiff_t m = 0; m < p.m; m++)
        for (ptrdiff_t n = 0; n < p.n; n++) {
            double sum = p.accumulate ? (double)o.old[m * p.n + n] : 0.0;
            for (ptrdiff_t i = 0; i < p.k; i++)
                sum += a[m * o.lda + i] * w[n * p.k + i];
            sum += p.bias ? (double)o.bias[n] : 0.0;
            sum *= p.per ? kept(&d, m, n) : 1.0;
            sum += p.residual ? (double)o.residual[m * o.ldr + n] : 0.0;
            o.want[m * p.n + n] = activated(sum, p.act);
            if (p.accumulate)
                o.c[m * o.ldc + n] = o.old[m * p.n + n];
        }
    o.packed = pack(t, &o);
    return o;
}

static void check_product(check *t, product p)
{
    for (lw_num num = LW_NUM_F32; num <= operand_last(t); num++) {
        product q = p;
        q.k = LW_ROUND_UP(p.k, lw_num_per_word(num));
        matrices o = make(t, q, num);
        lw_drop d = drop_of(t, q);
        lw_epilogue e = {.bias = q.bias ? o.bias : NULL,
                         .drop = q.per ? &d : NULL,
                         .residual = q.residual ? o.residual : NULL,
                         .ld_residual = o.ldr,
                         .accumulate = q.accumulate,
                         .act = q.act};
        bool plain = !q.bias && !q.residual && !q.accumulate && !q.act && !q.per;
        forward(t, &o, o.c, o.a, q.m, plain ? NULL : &e);
        for (ptrdiff_t m = 0; m < q.m; m++) {
            check_close(t, o.c + m * o.ldc, o.want + m * q.n, q.n, operand_tol(num, q.k),
                        "type %d M=%td N=%td K=%td row %td pad %td", num, q.m, q.n, q.k, m, q.pad);
            if (m + 1 < q.m)
                check_poisoned(t, o.c + m * o.ldc + q.n, q.pad, "M=%td N=%td K=%td row %td", q.m,
                               q.n, q.k, m);
        }
        check_next(t);
    }
}

static void sizes(check *t)
{
    static const ptrdiff_t n[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 65, 100};
    for (size_t i = 0; i < LW_COUNT(n); i++)
        for (ptrdiff_t m = 1; m < 30; m += m < 14 ? 1 : 5)
            check_product(t, (product){.m = m,
                                       .n = n[i],
                                       .k = 1 + check_below(t, 140),
                                       .pad = m % 3,
                                       .transposed = m & 1});
}

static void epilogues(check *t)
{
    for (int i = 0; i < 8 * LW_ACT_COUNT; i++)
        for (int way = 0; way < 2; way++)
            check_product(t, (product){.m = 17 + i,
                                       .n = 30 + 3 * i,
                                       .k = way ? 36 : 1,
                                       .pad = i % 3,
                                       .bias = i & 1,
                                       .residual = i & 2,
                                       .accumulate = i & 4,
                                       .act = (lw_act)(i / 8)});
}

/* Sums that are dropped, in every type and around vector widths; of f32 the bits are those of the
 * dropout kernel behind the product. */
static void dropped(check *t)
{
    static const ptrdiff_t n[] = {8, 12, 16, 20, 32, 36, 48, 64, 100, 132};
    lw_kernels all;
    lw_kernels_init(&all, t->isa);
    for (size_t i = 0; i < LW_COUNT(n); i++) {
        product p = {.per = 1 + (ptrdiff_t)i % 3 * 3, .n = n[i], .k = 2 + check_below(t, 40)};
        p.m = p.per * (1 + check_below(t, 12));
        p.bias = i & 1;
        p.residual = i & 2;
        p.act = i & 4 ? LW_ACT_QUICK_GELU : LW_ACT_NONE;
        check_product(t, p);
        p.pad = 0;
        p.bias = p.residual = false;
        p.act = LW_ACT_NONE;
        matrices o = make(t, p, LW_NUM_F32);
        lw_drop d = drop_of(t, p);
        float *plain = check_out(t, p.m * p.n, 0);
        forward(t, &o, o.c, o.a, p.m, &(lw_epilogue){.drop = &d});
        forward(t, &o, plain, o.a, p.m, NULL);
        all.random.dropout(plain, plain, d.p, d.ids, d.key, d.step, p.per * p.n, 0,
                           p.m / p.per * lw_random_blocks(p.per * p.n));
        if (t->isa != LW_ISA_REF) /* there sums are doubles until they are stored */
            check_same(t, o.c, plain, sizeof *plain * (size_t)(p.m * p.n), "N=%td", p.n);
        check_next(t);
    }
    check_product(t, (product){.m = 100, .n = 64, .k = 14002, .per = 50, .bias = true});
}

/* And bytes, those of a cast behind its floats. */
static void bytes_of(check *t, const matrices *o, lw_epilogue e)
{
    const product *p = &o->p;
    const size_t all = (size_t)(p->m * o->ldc);
    uint8_t *bytes = check_bytes(t, all, 1), gap[4] = {0x5a, 0x5a, 0x5a, 0x5a};
    float *floats = check_out(t, (int64_t)all, 0);
    char name[80];
    forward(t, o, floats, o->a, p->m, &e);
    memset(bytes, 0x5a, all);
    e.store = LW_NUM_S8;
    e.store_pair = operand_pairs[p->n & 1];
    forward(t, o, (float *)(void *)bytes, o->a, p->m, &e);
    for (ptrdiff_t m = 0; m < p->m; m++) {
        snprintf(name, sizeof name, "type %d M=%td N=%td K=%td act %d row %td", o->num, p->m, p->n,
                 p->k, p->act, m);
        check_cast(t, bytes + m * o->ldc, floats + m * o->ldc, p->n, &e, name);
        check_same(t, bytes + m * o->ldc + p->n, gap, (size_t)p->pad, "%s: the gap", name);
    }
}

/* A product of bf16 or bytes that writes bf16 writes what its floats would be rounded to, of whole vectors with
 * denormals dropped where the instruction rounds; gaps between rows stay as they are. Curves may be
 * approximated, each as good as bf16 can tell. */
static void rounded_of(check *t, product p, lw_num num)
{
    static const lw_bf16 gap[] = {0x5a5a, 0x5a5a};
    p.k = LW_ROUND_UP(p.k, lw_num_per_word(num));
    matrices o = make(t, p, num);
    const bool low_residual = p.n & 1;
    lw_epilogue e = {.bias = o.bias,
                     .residual = low_residual ? NULL : o.residual,
                     .residual_low = low_residual ? o.residual_low : NULL,
                     .ld_residual = o.ldr,
                     .act = p.act};
    lw_bf16 *low = check_bytes(t, (size_t)(p.m * o.ldc) * sizeof *low, p.pad & 1);
    float *got = check_out(t, p.n, 0);
    bytes_of(t, &o, e);
    memset(low, 0x5a, (size_t)(p.m * o.ldc) * sizeof *low);
    e.store = LW_NUM_BF16;
    forward(t, &o, (float *)(void *)low, o.a, p.m, &e);
    check_tol tol = operand_tol(num, p.k);
    tol.rel += 1.0 / 256;
    tol.abs += lw_act_is_curve(p.act) ? 5e-5 : 0.0;
    for (ptrdiff_t m = 0; m < p.m; m++) {
        for (ptrdiff_t n = 0; n < p.n; n++)
            got[n] = lw_bf16_to_f32(low[m * o.ldc + n]);
        check_close(t, got, o.want + m * p.n, p.n, tol, "type %d M=%td N=%td K=%td act %d row %td",
                    num, p.m, p.n, p.k, p.act, m);
        check_same(t, low + m * o.ldc + p.n, gap, (size_t)p.pad * sizeof *gap,
                   "M=%td N=%td row %td: the gap", p.m, p.n, m);
    }
    check_next(t);
}

static void rounded_product(check *t, product p)
{
    rounded_of(t, p, LW_NUM_BF16);
    rounded_of(t, p, LW_NUM_S8);
}

static void rounded(check *t)
{
    static const ptrdiff_t n[] = {1, 7, 16, 17, 31, 32, 33, 100};
    for (size_t i = 0; i < LW_COUNT(n); i++)
        for (int act = 0; act < LW_ACT_COUNT; act++)
            rounded_product(t, (product){.m = 1 + check_below(t, 30),
                                         .n = n[i],
                                         .k = 2 + 2 * check_below(t, 40),
                                         .pad = act % 3,
                                         .bias = true,
                                         .residual = true,
                                         .act = (lw_act)act});
    rounded_product(t, (product){.m = 15, .n = 40, .k = 14002, .bias = true, .residual = true});
}

/* The curves of rounded products, of sums that are their bias: off by 5e-5, 2e-5 of themselves and the
 * rounding, 2^-8. */
static void low_curves(check *t)
{
    enum { N = 4099 };
    struct lw_gemm_kernels k = kernels_of(t);
    float *w = check_in(t, 2 * N, 0, -1, 1), *x = check_in(t, N, 0, -12, 12);
    const float far[] = {-1e4f, -30.0f, -4.375f, 0.0f, 4.375f, 30.0f, 1e4f};
    const lw_bf16 zeros[2] = {0};
    memcpy(x, far, sizeof far);
    matrices o = {.p = {.n = N, .k = 2}, .num = LW_NUM_BF16, .w = w};
    const void *packed = pack(t, &o);
    const lw_act acts[] = {LW_ACT_SILU, LW_ACT_GELU, LW_ACT_GELU_TANH, LW_ACT_QUICK_GELU};
    for (size_t i = 0; i < LW_COUNT(acts); i++) {
        lw_bf16 *y = check_bytes(t, N * sizeof *y, 0);
        float *got = check_out(t, N, 0);
        double *want = check_doubles(t, N);
        lw_epilogue e = {.bias = x, .act = acts[i], .store = LW_NUM_BF16};
        for (int64_t task = lw_gemm_tasks(t->isa, LW_NUM_BF16, 1, N, 2) - 1; task >= 0; task--)
            k.forward_bf16(y, N, zeros, 2, packed, 1, N, 2, &e, task);
        for (ptrdiff_t n = 0; n < N; n++) {
            got[n] = lw_bf16_to_f32(y[n]);
            want[n] = activated((double)x[n], acts[i]);
        }
        check_close(t, got, want, N, (check_tol){.abs = 5e-5, .rel = 1.0 / 256 + 2e-5}, "act %d",
                    acts[i]);
    }
    check_next(t);
}

/* Several tasks, several blocks of k, many column groups. */
static void large(check *t)
{
    static const product p[] = {
        {.m = 5, .n = 70, .k = 14002, .bias = true, .residual = true, .pad = 1},
        {.m = 3, .n = 33, .k = 25000, .accumulate = true, .act = LW_ACT_SILU},
        {.m = 700, .n = 130, .k = 64, .bias = true},
        {.m = 64, .n = 1030, .k = 200, .act = LW_ACT_RELU},
        {.m = 40, .n = 70, .k = 300, .bias = true, .act = LW_ACT_RELU6}, /* sums beyond 6 */
        {.m = 9, .n = 3, .k = 300, .act = LW_ACT_RELU6},
        {.m = 1, .n = 2050, .k = 300, .pad = 1},
    };
    for (size_t i = 0; i < LW_COUNT(p); i++)
        check_product(t, p[i]);
}

/* Way 0: random, 1: the largest products, 2: the smallest. */
static void whole_number(check *t, ptrdiff_t M, ptrdiff_t K, int32_t zero, int way)
{
    enum { N = 37 };
    struct lw_gemm_kernels k = kernels_of(t);
    matrices o = {.p = {.n = N, .k = K}, .num = LW_NUM_S8, .lda = K, .ldc = N};
    o.q = (lw_quant){.a_scale = 1.0f, .a_zero = zero, .b_scale = check_in(t, N, 1, 1, 1)};
    double *a_values;
    uint8_t *a = operands_u8(t, M * K, 1, &o.q, &a_values);
    o.w = check_in(t, N * K, 0, -127, 128);
    float *c = check_out(t, M * N, 0), *want = check_out(t, M * N, 0);
    for (ptrdiff_t j = 0; j < N * K; j++)
        o.w[j] = way ? (way == 1 ? 127.0f : -127.0f) : floorf(o.w[j]);
    for (ptrdiff_t j = 0; j < M * K && way; j++)
        a[j] = 255;
    for (ptrdiff_t j = 0; j < M * N; j++) {
        int32_t sum = 0;
        for (ptrdiff_t d = 0; d < K; d++)
            sum += (a[j / N * K + d] - zero) * (int32_t)o.w[j % N * K + d];
        want[j] = (float)sum;
    }
    o.packed = pack(t, &o);
    for (int64_t j = 0; j < lw_gemm_tasks(t->isa, LW_NUM_S8, M, N, K); j++)
        k.forward_u8(c, N, a, K, o.packed, &o.q, M, N, K, NULL, j);
    check_same(t, c, want, sizeof(float) * (size_t)(M * N), "K %td, zero point %d, way %d", K, zero,
               way);
    check_next(t);
}

/* With scales of 1 the result is the whole sum itself, also where every product is the largest, in
 * several blocks, and at the greatest depth. */
static void whole_numbers(check *t)
{
    static const int32_t zero[] = {0, 1, 128, 255};
    for (size_t i = 0; i < LW_COUNT(zero); i++)
        for (int way = 0; way < 3; way++) {
            whole_number(t, 13, 260, zero[i], way);
            whole_number(t, 2, i & 1 ? 65532 : 12292, zero[i], way);
        }
}

static void special_values(check *t)
{
    struct lw_gemm_kernels k = kernels_of(t);
    float w[2 * 3] = {1, 0, 0, 0, 1, 0}, a[3] = {NAN, INFINITY, 0}, bias[2] = {0, -INFINITY};
    float *c = check_out(t, 2, 1);
    const float *packed = pack(t, &(matrices){.p = {.n = 2, .k = 3}, .w = w});
    lw_epilogue e = {.bias = bias, .act = LW_ACT_RELU};
    static const double want[2] = {(double)NAN, (double)NAN}; /* NaN * 0 reaches both columns */
    k.forward(c, 2, a, 3, packed, 1, 2, 3, &e, 0);
    check_close(t, c, want, 2, (check_tol){0}, "NaN row");
    float b[3] = {1e-41f, -1e38f, 0};
    static const double want2[2] = {1e-41, 0.0};
    k.forward(c, 2, b, 3, packed, 1, 2, 3, &e, 0);
    check_close(t, c, want2, 2, (check_tol){.abs = 1e-44}, "denormal, relu of -inf");
}

/* A row's bits do not depend on how many rows there are, nor where it stands. */
static void row_invariance(check *t)
{
    static const ptrdiff_t shapes[][2] = {{40, 33}, {128, 64}, {17, 8000}, {3, 4000}};
    for (size_t s = 0; s < LW_COUNT(shapes); s++)
        for (lw_num num = LW_NUM_F32; num <= operand_last(t); num++) {
            ptrdiff_t N = shapes[s][0], M = 61, K = LW_ROUND_UP(shapes[s][1], lw_num_per_word(num));
            matrices o = make(t, (product){.m = M, .n = N, .k = K}, num);
            float *one = check_out(t, N, 1);
            size_t row = (size_t)K * operand_bytes(num);
            lw_epilogue e = {.bias = o.w, .act = LW_ACT_SILU};
            forward(t, &o, o.c, o.a, M, &e);
            for (ptrdiff_t m = 0; m < M; m++) {
                forward(t, &o, one, (const char *)o.a + (size_t)m * row, 1, &e);
                check_same(t, one, o.c + m * N, (size_t)N * sizeof *one,
                           "type %d N=%td K=%td row %td", num, N, K, m);
            }
            check_next(t);
        }
}

/* Sums of bytes are exact, and what is done with them has the same bits at every level of vectors. */
static void bytes_alike(check *t)
{
    static const product shapes[] = {{.m = 61, .n = 40, .k = 36},
                                     {.m = 33, .n = 17, .k = 8000},
                                     {.m = 5, .n = 100, .k = 260, .pad = 1}};
    const lw_isa isa = t->isa;
    for (size_t s = 0; s < 2 * LW_COUNT(shapes); s++) {
        const product p = shapes[s / 2];
        float *c[2];
        matrices o = make(t, p, LW_NUM_S8);
        const ptrdiff_t n = (p.m - 1) * o.ldc + p.n;
        float *old = check_in(t, n, 0, -1, 1);
        const lw_epilogue e = {.bias = o.bias, .act = LW_ACT_SILU, .accumulate = s % 2};
        for (int i = 0; i < 2; i++) {
            t->isa = i ? LW_MIN(isa, LW_ISA_AVX2) : isa;
            c[i] = check_copy(t, old, n, 0);
            o.packed = pack(t, &o);
            forward(t, &o, c[i], o.a, p.m, &e);
        }
        t->isa = isa;
        check_same(t, c[0], c[1], (size_t)n * sizeof(float), "%s and avx2, N=%td K=%td",
                   lw_isa_name(isa), p.n, p.k);
        check_next(t);
    }
}

static void weight_grad_of(check *t, lw_num num, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K,
                           ptrdiff_t pad, int accumulate, bool bias)
{
    struct lw_gemm_kernels k = kernels_of(t);
    ptrdiff_t ldx = K + pad, ldy = N + 2 * pad;
    int shift = pad & 1;
    double *xd, *dyd;
    void *x = operands(t, num, (M - 1) * ldx + K, shift, NULL, &xd);
    void *dy = operands(t, num, (M - 1) * ldy + N, shift, NULL, &dyd);
    float *old = check_in(t, N * K + N, 0, -1, 1);
    float *dw = accumulate ? check_copy(t, old, N * K, shift) : check_out(t, N * K, shift);
    float *db = accumulate ? check_copy(t, old + N * K, N, shift) : check_out(t, N, shift);
    float *partials = check_out(t, lw_gemm_weight_grad_partial_floats(M, N, K), 0);
    double *want = check_doubles(t, N * K + N);
    for (ptrdiff_t i = 0; i < N * K + N; i++)
        want[i] = accumulate ? (double)old[i] : 0.0;
    for (ptrdiff_t m = 0; m < M; m++)
        for (ptrdiff_t n = 0; n < N; n++) {
            for (ptrdiff_t i = 0; i < K; i++)
                want[n * K + i] += dyd[m * ldy + n] * xd[m * ldx + i];
            want[N * K + n] += dyd[m * ldy + n];
        }
    for (int64_t i = lw_gemm_weight_grad_tasks(M, N, K) - 1; i >= 0; i--) {
        float *b = bias ? db : NULL;
        if (num == LW_NUM_F32)
            k.weight_grad(dw, b, dy, ldy, x, ldx, M, N, K, accumulate, partials, i);
        else
            k.weight_grad_bf16(dw, b, dy, ldy, x, ldx, M, N, K, accumulate, partials, i);
    }
    for (int64_t i = lw_gemm_weight_grad_combine_tasks(M, N, K) - 1; i >= 0; i--)
        k.weight_grad_combine(dw, bias ? db : NULL, M, N, K, accumulate, partials, i);
    check_close(t, dw, want, N * K, operand_tol(num, M),
                "dw M=%td N=%td K=%td pad %td accumulate %d", M, N, K, pad, accumulate);
    if (bias)
        check_close(t, db, want + N * K, N, operand_tol(num, M), "db M=%td N=%td K=%td pad %td", M,
                    N, K, pad);
    else if (!accumulate)
        check_poisoned(t, db, N, "db not wanted");
    check_next(t);
}

static void weight_grad_case(check *t, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, ptrdiff_t pad,
                             int accumulate, bool bias)
{
    for (lw_num num = LW_NUM_F32; num <= LW_NUM_BF16; num++)
        weight_grad_of(t, num, M, N, K, pad, accumulate, bias);
}

static void weight_grad(check *t)
{
    static const ptrdiff_t n[] = {1, 3, 8, 15, 17, 32, 37, 65};
    for (size_t i = 0; i < LW_COUNT(n); i++)
        for (size_t j = 0; j < LW_COUNT(n); j++)
            weight_grad_case(t, 1 + check_below(t, 200), n[i], n[j], (ptrdiff_t)(i + j) % 3,
                             (i ^ j) & 1, j % 3);
    weight_grad_case(t, 9001, 40, 33, 1, 1, true); /* several groups with partial sums */
    weight_grad_case(t, 8192, 16, 5, 0, 0, true);
    weight_grad_case(t, 6000, 100, 24, 0, 1, false);
    weight_grad_case(t, 300, 200, 300, 0, 0, true); /* several output ranges */
    weight_grad_case(t, 5000, 140, 200, 1, 1, true);
}

/* No two of several tasks write a byte of the packed weights: threads would race. */
static void packing_apart(check *t)
{
    for (lw_num num = LW_NUM_F32; num <= LW_NUM_S8; num++) {
        const matrices o = make(t, (product){.m = 1, .n = 300, .k = 1024}, num);
        const size_t bytes = lw_gemm_packed_bytes(num, 300, 1024);
        uint8_t *packed = check_bytes(t, bytes, 0), *writers = check_bytes(t, bytes, 0);
        memset(writers, 0, bytes);
        LW_ASSERT(lw_gemm_pack_tasks(300, 1024) == 3, "one task for each 128 columns");
        const size_t want[] = {304 * 1024 * 4, 304 * 1024 * 2, 304 * 1024 + 304 * 4};
        check_same(t, &bytes, &want[num], sizeof bytes, "bytes of type %d", num);
        for (int64_t i = 0; i < 3; i++) {
            memset(packed, 0xa5, bytes);
            pack_task(t, &o, packed, i);
            for (size_t b = 0; b < bytes; b++)
                if (t->compared++, writers[b] += packed[b] != 0xa5, writers[b] > 1)
                    fail_msg("type %d, task %lld: byte %zu is another task's", num, (long long)i,
                             b);
        }
        check_next(t);
    }
}

/* Tasks for 64 threads, but none of less work than microseconds: of f32, then of the types of tile registers, of the weight
 * gradient, which its bits hang on, and of its partial sums. */
static void tasks(check *t)
{
    static const struct {
        ptrdiff_t m, n, k;
        int64_t f32, bf16, s8, bf16x3, grad[2];
    } of[] = {
        {1, 4096, 4096, 128, 128, 128, 128, {22, 0}}, {1, 1000, 2048, 32, 32, 32, 32, {3, 0}},
        {33, 4100, 1024, 65, 16, 8, 65, {29, 0}},     {65, 1024, 1024, 80, 6, 3, 24, {22, 0}},
        {100, 520, 512, 39, 4, 4, 8, {22, 0}},        {257, 3080, 768, 150, 45, 27, 65, {65, 0}},
        {300, 2000, 12, 13, 13, 13, 4, {10, 0}},      {1000, 100, 200, 32, 4, 4, 8, {5, 0}},
        {4096, 320, 320, 64, 32, 32, 64, {28, 4}},    {16384, 128, 1152, 512, 64, 64, 64, {48, 19}},
        {100003, 3, 28, 16, 2, 16, 4, {12, 1}},       {4100, 3072, 768, 2064, 60, 52, 72, {128, 0}},
        {200, 32, 50000, 25, 7, 7, 7, {2, 0}},        {40000, 32, 64, 64, 8, 8, 32, {38, 1}}};
    for (size_t i = 0; i < LW_COUNT(of); i++) {
        const ptrdiff_t M = of[i].m, N = of[i].n, K = of[i].k;
        const int64_t got[] = {lw_gemm_tasks(t->isa, LW_NUM_F32, M, N, K),
                               lw_gemm_tasks(LW_ISA_AMX, LW_NUM_BF16, M, N, K),
                               lw_gemm_tasks(LW_ISA_AMX, LW_NUM_S8, M, N, K),
                               lw_gemm_tasks(LW_ISA_AMX, LW_NUM_BF16X3, M, N, K),
                               lw_gemm_weight_grad_tasks(M, N, K),
                               lw_gemm_weight_grad_combine_tasks(M, N, K)};
        check_same(t, got, &of[i].f32, sizeof got, "tasks of M=%td N=%td K=%td", M, N, K);
    }
}

/* At avx512bf16 and amx everything in f32, but products as sums of three bf16, is the function of avx512, and at avxvnni that
 * of avx2: the bits cannot differ. */
static void same_f32(check *t, lw_isa one, lw_isa two)
{
    lw_kernels wide, low;
    lw_kernels_init(&wide, one);
    lw_kernels_init(&low, two);
#define SAME(field) check_same(t, &low.field, &wide.field, sizeof wide.field, "%s", #field)
    SAME(attention.forward);
    SAME(attention.backward);
    SAME(cast);
    SAME(drift.run);
    SAME(ew);
    SAME(norm.forward);
    SAME(norm.rows);
    SAME(norm.backward);
    SAME(norm.rows_backward);
    SAME(optim);
    SAME(pairs);
    SAME(pooling);
    SAME(random);
    SAME(reduce);
    SAME(resample);
    SAME(softmax);
    SAME(stats);
    SAME(gemm.pack);
    SAME(gemm.forward);
    SAME(gemm.weight_grad);
    SAME(gemm.weight_grad_combine);
    SAME(conv.pack);
    SAME(conv.forward);
    SAME(conv.data_grad);
    SAME(conv.weight_grad);
    SAME(conv.weight_grad_combine);
    SAME(winograd.run);
    if (two == LW_ISA_AVXVNNI) {
        SAME(attention);
        SAME(drift);
        SAME(norm);
        SAME(winograd.pack_bf16);
        SAME(winograd.inputs_bf16);
        SAME(winograd.products_bf16);
        SAME(winograd.run_bf16);
        SAME(winograd.weight_grad);
        SAME(winograd.weight_grad_bf16);
        SAME(gemm.forward_bf16);
        SAME(gemm.weight_grad_bf16);
        SAME(conv.forward_bf16);
        SAME(conv.data_grad_bf16);
        SAME(conv.weight_grad_bf16);
    }
#undef SAME
}

static void f32_is_shared(check *t)
{
    same_f32(t, LW_ISA_AVX512, LW_ISA_AMX);
    same_f32(t, LW_ISA_AVX2, LW_ISA_AVXVNNI);
}

/* A processor with AVX-512 need not have AVX-VNNI. */
static void above_avxvnni(check *t)
{
    lw_kernels low, wide;
    lw_kernels_init(&low, LW_ISA_AVXVNNI);
    lw_kernels_init(&wide, LW_ISA_AVX512);
    if (!low.peak.int8 || wide.peak.int8 || wide.gemm.forward_u8 == low.gemm.forward_u8 ||
        wide.conv.forward_u8 == low.conv.forward_u8 ||
        wide.conv.data_grad_u8 == low.conv.data_grad_u8 ||
        wide.winograd.products_u8 == low.winograd.products_u8)
        fail_msg("a level above avxvnni has rows of it");
    if (low.isa != LW_ISA_AVXVNNI || wide.isa != LW_ISA_AVX512)
        fail_msg("a table that does not say its level");
    t->compared++;
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"sizes", sizes},
        {"epilogues", epilogues},
        {"dropped", dropped},
        {"rounded", rounded},
        {"low_curves", low_curves},
        {"large", large},
        {"special_values", special_values},
        {"whole_numbers", whole_numbers},
        {"row_invariance", row_invariance},
        {"bytes_alike", bytes_alike},
        {"weight_grad", weight_grad},
        {"packing_apart", packing_apart},
        {"tasks", tasks},
        {"f32_is_shared", f32_is_shared},
        {"above_avxvnni", above_avxvnni},
    };
    return check_main(argc, argv, "gemm", cases, LW_COUNT(cases));
}
