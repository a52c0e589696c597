/* SPDX-License-Identifier: Apache-2.0 */
/* gemm against a double-precision oracle: sizes around vector widths, pitches, epilogues, row
 * invariance. */
#include "kernels/check.h"
#include "kernels/kernels.h"

#include <math.h>

static struct lw_gemm_kernels kernels_of(const check *t)
{
    static lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k.gemm;
}

/* Rounding of a chain of K products of numbers below 1: grows like a random walk of the partial
 * sums. */
static check_tol tol_of(ptrdiff_t K)
{
    return (check_tol){.abs = 1e-6 + 1e-7 * (double)K, .rel = 2e-7};
}

static double act_of(double v, lw_act act)
{
    if (act == LW_ACT_RELU)
        return v > 0.0 ? v : 0.0;
    return act == LW_ACT_SILU ? v / (1.0 + exp(-v)) : v;
}

static float *pack(check *t, const struct lw_gemm_kernels *k, const float *w, ptrdiff_t N,
                   ptrdiff_t K, ptrdiff_t stride_n, ptrdiff_t stride_k)
{
    float *p = check_out(t, lw_gemm_packed_floats(N, K), 0);
    for (int64_t i = lw_gemm_pack_tasks(N, K) - 1; i >= 0; i--)
        k->pack(p, w, N, K, stride_n, stride_k, i);
    return p;
}

typedef struct product {
    ptrdiff_t M, N, K, pad; /* pad: extra floats per row of every matrix */
    bool transposed;        /* w is [K][N] */
    bool bias, residual, accumulate;
    lw_act act;
} product;

static void check_product(check *t, product p)
{
    struct lw_gemm_kernels k = kernels_of(t);
    ptrdiff_t lda = p.K + p.pad, ldc = p.N + p.pad, ldr = p.N + 2 * p.pad;
    int shift = p.pad & 1;
    float *a = check_in(t, (p.M - 1) * lda + p.K, shift, -1, 1),
          *w = check_in(t, p.N * p.K, shift, -1, 1);
    float *bias = check_in(t, p.N, shift, -1, 1),
          *res = check_in(t, (p.M - 1) * ldr + p.N, shift, -1, 1);
    float *old = check_in(t, p.M * p.N, 0, -1, 1);
    float *c = check_out(t, (p.M - 1) * ldc + p.N, shift);
    double *want = check_doubles(t, p.M * p.N);
    ptrdiff_t sn = p.transposed ? 1 : p.K, sk = p.transposed ? p.N : 1;
    for (ptrdiff_t m = 0; m < p.M; m++)
        for (ptrdiff_t n = 0; n < p.N; n++) {
            double sum = p.accumulate ? (double)old[m * p.N + n] : 0.0;
            for (ptrdiff_t i = 0; i < p.K; i++)
                sum += (double)a[m * lda + i] * (double)w[n * sn + i * sk];
            sum += (p.bias ? (double)bias[n] : 0.0) + (p.residual ? (double)res[m * ldr + n] : 0.0);
            want[m * p.N + n] = act_of(sum, p.act);
            if (p.accumulate)
                c[m * ldc + n] = old[m * p.N + n];
        }
    lw_epilogue e = {.bias = p.bias ? bias : NULL,
                     .residual = p.residual ? res : NULL,
                     .ld_residual = ldr,
                     .accumulate = p.accumulate,
                     .act = p.act};
    float *packed = pack(t, &k, w, p.N, p.K, sn, sk);
    bool plain = !p.bias && !p.residual && !p.accumulate && !p.act;
    for (int64_t i = lw_gemm_tasks(p.M, p.N, p.K) - 1; i >= 0; i--)
        k.forward(c, ldc, a, lda, packed, p.M, p.N, p.K, plain ? NULL : &e, i);
    for (ptrdiff_t m = 0; m < p.M; m++) {
        check_close(t, c + m * ldc, want + m * p.N, p.N, tol_of(p.K),
                    "M=%td N=%td K=%td row %td pad %td", p.M, p.N, p.K, m, p.pad);
        if (m + 1 < p.M)
            check_poisoned(t, c + m * ldc + p.N, p.pad, "M=%td N=%td K=%td row %td", p.M, p.N, p.K,
                           m);
    }
    check_next(t);
}

static void sizes(check *t)
{
    static const ptrdiff_t n[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 48, 63, 65, 100};
    for (size_t i = 0; i < LW_COUNT(n); i++)
        for (ptrdiff_t m = 1; m < 30; m += m < 14 ? 1 : 5)
            check_product(t, (product){.M = m,
                                       .N = n[i],
                                       .K = 1 + check_below(t, 70),
                                       .pad = m % 3,
                                       .transposed = m & 1});
}

static void epilogues(check *t)
{
    for (int i = 0; i < 24; i++)
        for (int way = 0; way < 2; way++)
            check_product(t, (product){.M = 17 + i,
                                       .N = 30 + 3 * i,
                                       .K = way ? 33 : 1,
                                       .pad = i % 3,
                                       .bias = i & 1,
                                       .residual = i & 2,
                                       .accumulate = i & 4,
                                       .act = (lw_act)(i / 8)});
}

/* Several tasks, several blocks of k, many column groups. */
static void large(check *t)
{
    static const product p[] = {
        {.M = 5, .N = 70, .K = 7001, .bias = true, .residual = true, .pad = 1},
        {.M = 3, .N = 33, .K = 3073, .accumulate = true, .act = LW_ACT_SILU},
        {.M = 700, .N = 130, .K = 64, .bias = true},
        {.M = 64, .N = 1030, .K = 200, .act = LW_ACT_RELU},
        {.M = 1, .N = 2050, .K = 300, .pad = 1},
    };
    for (size_t i = 0; i < LW_COUNT(p); i++)
        check_product(t, p[i]);
}

static void special_values(check *t)
{
    struct lw_gemm_kernels k = kernels_of(t);
    float w[2 * 3] = {1, 0, 0, 0, 1, 0}, a[3] = {NAN, INFINITY, 0}, bias[2] = {0, -INFINITY};
    float *c = check_out(t, 2, 1), *packed = pack(t, &k, w, 2, 3, 3, 1);
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
    static const ptrdiff_t shapes[][2] = {{40, 33}, {128, 64}, {17, 4000}, {3, 4000}};
    struct lw_gemm_kernels k = kernels_of(t);
    for (size_t s = 0; s < LW_COUNT(shapes); s++) {
        ptrdiff_t N = shapes[s][0], K = shapes[s][1], M = 61;
        float *a = check_in(t, M * K, 0, -1, 1), *w = check_in(t, N * K, 0, -1, 1);
        float *all = check_out(t, M * N, 0), *one = check_out(t, N, 1),
              *packed = pack(t, &k, w, N, K, K, 1);
        lw_epilogue e = {.bias = w, .act = LW_ACT_SILU};
        for (int64_t i = 0; i < lw_gemm_tasks(M, N, K); i++)
            k.forward(all, N, a, K, packed, M, N, K, &e, i);
        for (ptrdiff_t m = 0; m < M; m++) {
            for (int64_t i = 0; i < lw_gemm_tasks(1, N, K); i++)
                k.forward(one, N, a + m * K, K, packed, 1, N, K, &e, i);
            check_same(t, one, all + m * N, (size_t)N * sizeof *one, "N=%td K=%td row %td", N, K,
                       m);
        }
        check_next(t);
    }
}

static void weight_grad_case(check *t, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K, ptrdiff_t pad,
                             int accumulate, bool bias)
{
    struct lw_gemm_kernels k = kernels_of(t);
    ptrdiff_t ldx = K + pad, ldy = N + 2 * pad;
    int shift = pad & 1;
    float *x = check_in(t, (M - 1) * ldx + K, shift, -1, 1),
          *dy = check_in(t, (M - 1) * ldy + N, shift, -1, 1);
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
                want[n * K + i] += (double)dy[m * ldy + n] * (double)x[m * ldx + i];
            want[N * K + n] += (double)dy[m * ldy + n];
        }
    for (int64_t i = lw_gemm_weight_grad_tasks(M, N, K) - 1; i >= 0; i--)
        k.weight_grad(dw, bias ? db : NULL, dy, ldy, x, ldx, M, N, K, accumulate, partials, i);
    for (int64_t i = lw_gemm_weight_grad_combine_tasks(M, N, K) - 1; i >= 0; i--)
        k.weight_grad_combine(dw, bias ? db : NULL, M, N, K, accumulate, partials, i);
    check_close(t, dw, want, N * K, tol_of(M), "dw M=%td N=%td K=%td pad %td accumulate %d", M, N,
                K, pad, accumulate);
    if (bias)
        check_close(t, db, want + N * K, N, tol_of(M), "db M=%td N=%td K=%td pad %td", M, N, K,
                    pad);
    else if (!accumulate)
        check_poisoned(t, db, N, "db not wanted");
    check_next(t);
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
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"sizes", sizes},
        {"epilogues", epilogues},
        {"large", large},
        {"special_values", special_values},
        {"row_invariance", row_invariance},
        {"weight_grad", weight_grad},
    };
    return check_main(argc, argv, "gemm", cases, LW_COUNT(cases));
}
