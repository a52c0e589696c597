/* SPDX-License-Identifier: Apache-2.0 */
/* Distances of all pairs of rows: every level against the double reference, gradients against
 * differences, and rows that do not depend on what is computed beside them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

static const lw_pairs_kernels *kernels_of(lw_isa isa)
{
    static lw_kernels k[LW_ISA_COUNT];
    lw_kernels_init(&k[isa], isa);
    return &k[isa].pairs;
}

static double *widen(check *t, const float *p, int64_t n)
{
    double *d = check_doubles(t, n);
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)p[i];
    return d;
}

static void one_shape(check *t, lw_pairs_shape s, ptrdiff_t m)
{
    const lw_pairs_kernels *k = kernels_of(t->isa);
    check_tol tol = {.abs = 2e-7 * (double)s.c, .rel = 2e-6};
    check_tol sums = {.abs = 4e-7 * (double)(s.n + m), .rel = 1e-5};
    float *x = check_in(t, m * s.c, s.c & 1, -1, 1), *y = check_in(t, s.n * s.c, 1, -1, 1),
          *g = check_in(t, m * s.n, 1, -1, 1), *d = check_out(t, m * s.n, 1),
          *dx = check_out(t, m * s.c, 0), *dy = check_out(t, s.n * s.c, 1);
    for (ptrdiff_t i = 0; i < s.c; i++) /* a pair without distance */
        y[i] = x[i];
    double *xd = widen(t, x, m * s.c), *yd = widen(t, y, s.n * s.c), *gd = widen(t, g, m * s.n),
           *dd = check_doubles(t, m * s.n), *dxd = check_doubles(t, m * s.c),
           *dyd = check_doubles(t, s.n * s.c);
    lw_pairs_shape back = {m, s.c, s.distance};
    lw_pairs_forward_f64(dd, xd, yd, &s, 0, m);
    k->forward(d, x, y, &s, 0, m);
    check_close(t, d, dd, m * s.n, tol, "d %d n=%td c=%td", (int)s.distance, s.n, s.c);
    lw_pairs_backward_f64(dxd, gd, dd, xd, yd, &s, s.n, 1, 0, m);
    lw_pairs_backward_f64(dyd, gd, dd, yd, xd, &back, 1, s.n, 0, s.n);
    k->backward(dx, g, d, x, y, &s, s.n, 1, 0, m);
    k->backward(dy, g, d, y, x, &back, 1, s.n, 0, s.n);
    check_close(t, dx, dxd, m * s.c, sums, "dx %d n=%td c=%td", (int)s.distance, s.n, s.c);
    check_close(t, dy, dyd, s.n * s.c, sums, "dy %d n=%td c=%td", (int)s.distance, s.n, s.c);
    check_next(t);
}

static void sizes(check *t)
{
    for (int kind = 0; kind <= LW_DISTANCE_MODULUS; kind++)
        for (ptrdiff_t c = 2; c <= 140; c += c < 70 ? 2 : 14)
            one_shape(t,
                      (lw_pairs_shape){1 + c % 7, c - (kind != LW_DISTANCE_MODULUS && c % 4 == 2),
                                       (lw_distance)kind},
                      1 + c % 3);
}

/* A task that does one row gives the bits of a task that does all, with more rows of y too. */
static void row_invariance(check *t)
{
    const lw_pairs_kernels *k = kernels_of(t->isa);
    enum { M = 5, N = 11, C = 38 };
    for (int kind = 0; kind <= LW_DISTANCE_MODULUS; kind++) {
        lw_pairs_shape s = {N, C, (lw_distance)kind}, less = {N - 2, C, (lw_distance)kind};
        float *x = check_in(t, M * C, 0, -1, 1), *y = check_in(t, N * C, 0, -1, 1),
              *g = check_in(t, M * N, 0, -1, 1), *all = check_out(t, M * N, 0),
              *one = check_out(t, M * N, 0), *few = check_out(t, M * (N - 2), 0),
              *dx = check_out(t, M * C, 0), *dx_one = check_out(t, M * C, 0);
        k->forward(all, x, y, &s, 0, M);
        k->forward(few, x, y, &less, 0, M);
        k->backward(dx, g, all, x, y, &s, N, 1, 0, M);
        for (ptrdiff_t i = 0; i < M; i++) {
            k->forward(one, x, y, &s, i, i + 1);
            k->backward(dx_one, g, all, x, y, &s, N, 1, i, i + 1);
            check_same(t, few + i * (N - 2), all + i * N, (N - 2) * sizeof *all, "row %td", i);
        }
        check_same(t, one, all, M * N * sizeof *all, "rows of d");
        check_same(t, dx_one, dx, M * C * sizeof *dx, "rows of dx");
        check_next(t);
    }
}

/* Slopes of sum g d(x, y) by central differences of the double reference. */
static void differences(check *t)
{
    enum { M = 2, N = 3, C = 6 };
    double x[M * C], y[N * C], g[M * N], d[M * N], dx[M * C], h = 1e-6;
    for (int i = 0; i < M * C; i++)
        x[i] = sin(1.7 * i);
    for (int i = 0; i < N * C; i++)
        y[i] = cos(2.3 * i + 0.1);
    for (int i = 0; i < M * N; i++)
        g[i] = sin(3.1 * i + 1);
    for (int kind = 0; kind <= LW_DISTANCE_MODULUS; kind++) {
        lw_pairs_shape s = {N, C, (lw_distance)kind};
        lw_pairs_forward_f64(d, x, y, &s, 0, M);
        lw_pairs_backward_f64(dx, g, d, x, y, &s, N, 1, 0, M);
        for (int i = 0; i < M * C; i++) {
            double was = x[i], sum[2] = {0, 0};
            for (int side = 0; side < 2; side++) {
                x[i] = was + (side ? -h : h);
                lw_pairs_forward_f64(d, x, y, &s, 0, M);
                for (int j = 0; j < M * N; j++)
                    sum[side] += g[j] * d[j];
            }
            x[i] = was;
            t->compared++;
            if (fabs((sum[0] - sum[1]) / (2 * h) - dx[i]) > 1e-8)
                fail_msg("kind %d element %d: difference %.12g, gradient %.12g", kind, i,
                         (sum[0] - sum[1]) / (2 * h), dx[i]);
        }
    }
}

/* Rows of a task, of which an empty one counts as well. */
static void rows_of_a_task(check *t)
{
    static const ptrdiff_t of[][3] = {{1, 1, 524288}, {0, 64, 1},     {8, 64, 1024},
                                      {1000, 524, 1}, {1024, 512, 1}, {1024, 513, 1}};
    for (size_t i = 0; i < LW_COUNT(of); i++) {
        const ptrdiff_t got = lw_pairs_rows(&(lw_pairs_shape){.n = of[i][0], .c = of[i][1]});
        check_same(t, &got, &of[i][2], sizeof got, "%td columns of %td", of[i][0], of[i][1]);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"sizes", sizes},
                                       {"row_invariance", row_invariance},
                                       {"differences", differences},
                                       {"rows_of_a_task", rows_of_a_task}};
    return check_main(argc, argv, "pairs", cases, LW_COUNT(cases));
}
