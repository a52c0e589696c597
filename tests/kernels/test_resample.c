/* SPDX-License-Identifier: Apache-2.0 */
/* Bilinear resizing: values worked out by hand, fast against reference, gradient against <dy, A x>
 * = <A' dy, x>. */
#include <math.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

static lw_kernels table(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k;
}

static void by_hand(check *t)
{
    lw_kernels k = table(t);
    static const float row[4] = {0, 1, 2, 3}, square[4] = {0, 1, 2, 3};
    float y[16];
    k.resample.bilinear(y, row, &(lw_resize_shape){.h = 1, .w = 4, .c = 1, .oh = 1, .ow = 2}, 0, 1);
    check_close(t, y, (const double[]){0.5, 2.5}, 2, (check_tol){0}, "4 to 2");
    k.resample.bilinear(y, row, &(lw_resize_shape){.h = 1, .w = 2, .c = 1, .oh = 1, .ow = 4}, 0, 1);
    check_close(t, y, (const double[]){0, 0.25, 0.75, 1}, 4, (check_tol){0}, "2 to 4");
    k.resample.bilinear(y, row, &(lw_resize_shape){.h = 1, .w = 3, .c = 1, .oh = 1, .ow = 2}, 0, 1);
    check_close(t, y, (const double[]){0.25, 1.75}, 2, (check_tol){0}, "3 to 2");
    k.resample.bilinear(y, square, &(lw_resize_shape){.h = 2, .w = 2, .c = 1, .oh = 4, .ow = 4}, 0,
                        4);
    check_close(t, y,
                (const double[]){0, 0.25, 0.75, 1, 0.5, 0.75, 1.25, 1.5, 1.5, 1.75, 2.25, 2.5, 2,
                                 2.25, 2.75, 3},
                16, (check_tol){0}, "2x2 to 4x4");
    k.resample.bilinear(y, square, &(lw_resize_shape){.h = 2, .w = 2, .c = 1, .oh = 1, .ow = 1}, 0,
                        1);
    check_close(t, y, (const double[]){1.5}, 1, (check_tol){0}, "2x2 to 1x1");
}

static void sizes(check *t)
{
    static const int channels[] = {1, 3, 8, 16, 17, 40};
    lw_kernels k = table(t);
    for (int round = 0; round < 80; round++) {
        lw_resize_shape s = {1 + check_below(t, 12), 1 + check_below(t, 12),
                             channels[check_below(t, 6)], 1 + check_below(t, 20),
                             1 + check_below(t, 20)};
        if (round % 8 == 0)
            s.oh = s.h, s.ow = s.w;
        int64_t b = 2, nx = b * s.h * s.w * s.c, ny = b * s.oh * s.ow * s.c;
        float *x = check_in(t, nx, 1, -1, 1), *dy = check_in(t, ny, 1, -1, 1);
        float *y = check_out(t, ny, 1), *want = check_out(t, ny, 0);
        float *dx = check_out(t, nx, 1), *dwant = check_out(t, nx, 0);
        for (int64_t r = b * s.oh - 1; r >= 0; r--)
            k.resample.bilinear(y, x, &s, r, r + 1);
        lw_bilinear_ref(want, x, &s, 0, b * s.oh);
        check_close_f(t, y, want, ny, (check_tol){.abs = 1e-6}, "%tdx%td to %tdx%td", s.h, s.w,
                      s.oh, s.ow);
        if (round % 8 == 0)
            check_close_f(t, y, x, nx, (check_tol){0}, "the same size copies");
        k.resample.bilinear_grad(dx, dy, &s, 1, 2);
        k.resample.bilinear_grad(dx, dy, &s, 0, 1);
        lw_bilinear_grad_ref(dwant, dy, &s, 0, b);
        check_close_f(t, dx, dwant, nx, (check_tol){.abs = 2e-5, .rel = 1e-6},
                      "grad %tdx%td to %tdx%td", s.h, s.w, s.oh, s.ow);
        double a = 0.0, c = 0.0, scale = 1.0;
        for (int64_t i = 0; i < ny; i++)
            a += (double)y[i] * (double)dy[i], scale += fabs((double)y[i] * (double)dy[i]);
        for (int64_t i = 0; i < nx; i++)
            c += (double)x[i] * (double)dx[i];
        float got = (float)((a - c) / scale);
        const double zero = 0.0;
        check_close(t, &got, &zero, 1, (check_tol){.abs = 2e-6}, "gradient is the transpose");
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"by_hand", by_hand}, {"sizes", sizes}};
    return check_main(argc, argv, "resample", cases, LW_COUNT(cases));
}
