/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and cross-entropy: every level against the double reference, gradients against
 * differences. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

static const lw_softmax_kernels *kernels_of(lw_isa isa)
{
    static lw_kernels k[LW_ISA_COUNT];
    lw_kernels_init(&k[isa], isa);
    return &k[isa].softmax;
}

static double *widen(check *t, const float *p, int64_t n)
{
    double *d = check_doubles(t, n);
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)p[i];
    return d;
}

enum { ROWS = 3 };
static const check_tol tol = {.abs = 1e-6, .rel = 2e-6};

static void softmax(check *t)
{
    const lw_softmax_kernels *k = kernels_of(t->isa);
    for (ptrdiff_t n = 1; n <= 70; n++)
        for (ptrdiff_t gap = 0; gap <= 3; gap += 3) {
            ptrdiff_t pitch = n + gap, total = (ROWS - 1) * pitch + n;
            float *x = check_in(t, total, n & 1, -20, 20), *dy = check_in(t, total, n & 1, -1, 1);
            float *y = check_out(t, total, 1), *dx = check_in(t, total, 1, -1, 1),
                  *lse = check_out(t, ROWS, 0);
            double *x_d = widen(t, x, total), *y_d = check_doubles(t, total),
                   *lse_d = check_doubles(t, ROWS);
            double *dx_d = widen(t, dx, total);
            lw_softmax_forward_f64(y_d, x_d, ROWS, n, pitch, pitch);
            lw_softmax_lse_f64(lse_d, x_d, ROWS, n, pitch);
            k->forward(y, x, ROWS, n, pitch, pitch);
            k->lse(lse, x, ROWS, n, pitch);
            check_close(t, lse, lse_d, ROWS, tol, "lse n=%td", n);
            for (ptrdiff_t r = 0; r < ROWS; r++) {
                check_close(t, y + r * pitch, y_d + r * pitch, n, tol, "y n=%td", n);
                if (r + 1 < ROWS)
                    check_poisoned(t, y + r * pitch + n, gap, "gap of y n=%td", n);
            }
            int add = gap > 0;
            lw_softmax_backward_f64(dx_d, y_d, widen(t, dy, total), ROWS, n, pitch, add);
            k->backward(dx, y, dy, ROWS, n, pitch, add);
            for (ptrdiff_t r = 0; r < ROWS; r++)
                check_close(t, dx + r * pitch, dx_d + r * pitch, n, tol, "dx n=%td add=%d", n, add);
            k->forward(x, x, ROWS, n, pitch, pitch);
            for (ptrdiff_t r = 0; r < ROWS; r++)
                check_same(t, x + r * pitch, y + r * pitch, (size_t)n * sizeof(float),
                           "in place n=%td", n);
            check_next(t);
        }
}

static void extremes(check *t)
{
    const lw_softmax_kernels *k = kernels_of(t->isa);
    for (ptrdiff_t n = 2; n <= 40; n += 19) {
        float *x = check_in(t, n, 1, -1, 1), *y = check_out(t, n, 0), *lse = check_out(t, 1, 0);
        double *want = check_doubles(t, n);
        for (ptrdiff_t j = 0; j < n; j++)
            x[j] += 1e4f; /* far beyond the range of exp */
        x[0] = -HUGE_VALF;
        lw_softmax_forward_f64(want, widen(t, x, n), 1, n, n, n);
        k->forward(y, x, 1, n, n, n);
        k->lse(lse, x, 1, n, n);
        check_close(t, y, want, n, tol, "large n=%td", n);
        double sum = 0, l = 0;
        for (ptrdiff_t j = 0; j < n; j++)
            sum += (double)y[j];
        lw_softmax_lse_f64(&l, widen(t, x, n), 1, n, n);
        check_close(t, lse, &l, 1, tol, "large lse n=%td", n);
        check_close(t, &(float){(float)sum}, &(double){1.0}, 1, (check_tol){.abs = 2e-6},
                    "sum of y n=%td", n);
        check_next(t);
    }
}

/* The log of n is nothing beside 1e20, and yet each has its share of 1. */
static void equal_and_huge(check *t)
{
    const lw_softmax_kernels *k = kernels_of(t->isa);
    static const float huge[] = {1e8f, 1e20f, 3e38f, -1e20f};
    for (size_t i = 0; i < LW_COUNT(huge); i++)
        for (ptrdiff_t n = 1; n <= 40; n += 13) {
            float *x = check_out(t, n, 1), *y = check_out(t, n, 0);
            double *want = check_doubles(t, n), *x_d, *y_d = check_doubles(t, n);
            for (ptrdiff_t j = 0; j < n; j++) {
                x[j] = huge[i];
                want[j] = 1.0 / (double)n;
            }
            x_d = widen(t, x, n);
            k->forward(y, x, 1, n, n, n);
            check_close(t, y, want, n, tol, "%g, n=%td", (double)huge[i], n);
            lw_softmax_forward_f64(y_d, x_d, 1, n, n, n);
            for (ptrdiff_t j = 0; j < n; j++)
                y[j] = (float)y_d[j];
            check_close(t, y, want, n, tol, "in double, %g, n=%td", (double)huge[i], n);
            if (t->isa == LW_ISA_REF) { /* the others keep the sum's log in a float of this size */
                const double log_n = log((double)n);
                float loss, lse;
                k->xent_forward(&loss, &lse, x, &(int32_t){0}, 1, n, n);
                check_close(t, &loss, &log_n, 1, tol, "loss, %g, n=%td", (double)huge[i], n);
            }
            check_next(t);
        }
}

static void cross_entropy(check *t)
{
    const lw_softmax_kernels *k = kernels_of(t->isa);
    for (ptrdiff_t n = 1; n <= 70; n++) {
        ptrdiff_t pitch = n + 2, total = (ROWS - 1) * pitch + n;
        float *x = check_in(t, total, n & 1, -10, 10), *loss = check_out(t, ROWS, 1),
              *lse = check_out(t, ROWS, 0);
        float *dloss = check_in(t, ROWS, 1, 0.5, 2), *dx = check_in(t, total, 1, -1, 1);
        double *x_d = widen(t, x, total), *loss_d = check_doubles(t, ROWS),
               *lse_d = check_doubles(t, ROWS);
        double *dx_d = widen(t, dx, total);
        int32_t label[ROWS];
        int add = (int)(n & 1);
        for (int r = 0; r < ROWS; r++)
            label[r] = r == 1 && n % 3 == 0 ? -1 : (int32_t)check_below(t, (uint32_t)n);
        lw_softmax_xent_forward_f64(loss_d, lse_d, x_d, label, ROWS, n, pitch);
        k->xent_forward(loss, lse, x, label, ROWS, n, pitch);
        check_close(t, loss, loss_d, ROWS, (check_tol){.abs = 3e-6, .rel = 2e-6}, "loss n=%td", n);
        lw_softmax_xent_backward_f64(dx_d, widen(t, dloss, ROWS), lse_d, x_d, label, ROWS, n, pitch,
                                     pitch, add);
        k->xent_backward(dx, dloss, lse, x, label, ROWS, n, pitch, pitch, add);
        for (ptrdiff_t r = 0; r < ROWS; r++)
            check_close(t, dx + r * pitch, dx_d + r * pitch, n,
                        (check_tol){.abs = 3e-6, .rel = 2e-6}, "dx n=%td", n);
        check_next(t);
    }
}

/* A label that names no column: NaN in its row alone, and nothing outside the row is touched. */
static void no_column(check *t)
{
    const lw_softmax_kernels *k = kernels_of(t->isa);
    for (ptrdiff_t n = 1; n <= 40; n++)
        for (int add = 0; add <= 1; add++) {
            const ptrdiff_t pitch = n + 1, total = (ROWS - 1) * pitch + n;
            const int32_t good[ROWS] = {0, 0, (int32_t)n - 1};
            const int32_t label[ROWS] = {0, n % 2 ? (int32_t)n : INT32_MAX, (int32_t)n - 1};
            float *x = check_in(t, total, 1, -3, 3), *dloss = check_in(t, ROWS, 0, 0.5, 2);
            float *loss[2], *lse[2], *dx[2], *was = check_in(t, total, 0, -1, 1);
            for (int i = 0; i < 2; i++) {
                loss[i] = check_out(t, ROWS, 0);
                lse[i] = check_out(t, ROWS, 0);
                dx[i] = check_out(t, total, 0);
                memcpy(dx[i], was, (size_t)total * sizeof *was);
                k->xent_forward(loss[i], lse[i], x, i ? label : good, ROWS, n, pitch);
                k->xent_backward(dx[i], dloss, lse[i], x, i ? label : good, ROWS, n, pitch, pitch,
                                 add);
            }
            check_same(t, lse[1], lse[0], ROWS * sizeof(float), "lse n=%td", n);
            for (ptrdiff_t r = 0; r < ROWS; r++)
                for (ptrdiff_t j = 0; j < pitch && r * pitch + j < total; j++) {
                    const ptrdiff_t i = r * pitch + j;
                    const int bad = r == 1 && j < n;
                    t->compared++;
                    if (bad ? !isnan(dx[1][i]) : memcmp(&dx[1][i], &dx[0][i], sizeof(float)) != 0)
                        fail_msg("%s: row %td, column %td of %td: dx %g", lw_isa_name(t->isa), r, j,
                                 n, (double)dx[1][i]);
                }
            if (!isnan(loss[1][1]) || loss[1][0] != loss[0][0] || loss[1][2] != loss[0][2])
                fail_msg("%s: losses of %td columns: %g %g %g", lw_isa_name(t->isa), n,
                         (double)loss[1][0], (double)loss[1][1], (double)loss[1][2]);
            check_next(t);
        }
}

/* Slopes of sum g . softmax(x) and of the cross-entropy by central differences. */
static void differences(check *t)
{
    enum { N = 7 };
    double x[N], g[N], y[N], dx[N], de[N], lse, loss, one = 1.0, h = 1e-5;
    int32_t label = 3;
    for (int j = 0; j < N; j++) {
        x[j] = sin(1.7 * j);
        g[j] = cos(2.3 * j);
    }
    lw_softmax_forward_f64(y, x, 1, N, N, N);
    lw_softmax_backward_f64(dx, y, g, 1, N, N, 0);
    lw_softmax_xent_forward_f64(&loss, &lse, x, &label, 1, N, N);
    lw_softmax_xent_backward_f64(de, &one, &lse, x, &label, 1, N, N, N, 0);
    for (int j = 0; j < N; j++) {
        double was = x[j], dot[2] = {0, 0}, l[2];
        for (int side = 0; side < 2; side++) {
            x[j] = was + (side ? -h : h);
            lw_softmax_forward_f64(y, x, 1, N, N, N);
            lw_softmax_xent_forward_f64(&l[side], &lse, x, &label, 1, N, N);
            for (int i = 0; i < N; i++)
                dot[side] += g[i] * y[i];
        }
        x[j] = was;
        t->compared++;
        if (fabs((dot[0] - dot[1]) / (2 * h) - dx[j]) > 1e-9 ||
            fabs((l[0] - l[1]) / (2 * h) - de[j]) > 1e-9)
            fail_msg("element %d: differences %.12g %.12g, gradients %.12g %.12g", j,
                     (dot[0] - dot[1]) / (2 * h), (l[0] - l[1]) / (2 * h), dx[j], de[j]);
    }
}

/* Rows of a task, of which one longer than a task's work counts as well, and one of nothing. */
static void rows_of_a_task(check *t)
{
    static const ptrdiff_t of[][2] = {{0, 16384}, {1, 16384}, {64, 256},
                                      {5461, 3},  {16384, 1}, {16385, 1}};
    for (size_t i = 0; i < LW_COUNT(of); i++) {
        const ptrdiff_t got = lw_softmax_rows(of[i][0]);
        check_same(t, &got, &of[i][1], sizeof got, "rows of %td", of[i][0]);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"softmax", softmax},
                                       {"extremes", extremes},
                                       {"equal_and_huge", equal_and_huge},
                                       {"cross_entropy", cross_entropy},
                                       {"no_column", no_column},
                                       {"differences", differences},
                                       {"rows_of_a_task", rows_of_a_task}};
    return check_main(argc, argv, "softmax", cases, LW_COUNT(cases));
}
