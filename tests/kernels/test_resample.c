/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The float passes that networks use: values worked out by hand, fast against reference, and the
 * passes under transposed weights against <dy, A x> = <A' dy, x>.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

static lw_kernels table(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k;
}

static void row(check *t, const lw_resample_axis_spec *s, const double *want)
{
    static const float x[4] = {0, 1, 2, 3};
    lw_kernels k = table(t);
    lw_resample_axis a = {0};
    float y[8];
    assert_int_equal(lw_resample_axis_init(&a, s), 0);
    lw_resample_pass p = {&a, 1, 1, 1};
    k.resample.down_f32(y, x + a.first, &p, 0, s->to);
    check_close(t, y, want, s->to, (check_tol){.abs = 2e-7}, "%td to %td", s->from, s->to);
    lw_resample_axis_clear(&a);
}

static void by_hand(check *t)
{
#define ROW(form, filter, from, to, scale, ...)                                                  \
    row(t,                                                                                       \
        &(lw_resample_axis_spec){LW_RESAMPLE_##form, LW_FILTER_##filter, from, to, 0, 0, scale}, \
        (const double[]){__VA_ARGS__})
    ROW(TORCH, BILINEAR, 4, 2, 0, 0.5, 2.5);
    ROW(TORCH, BILINEAR, 2, 4, 0, 0, 0.25, 0.75, 1);
    ROW(TORCH, BILINEAR, 3, 2, 0, 0.25, 1.75);
    ROW(TORCH, BILINEAR, 2, 1, 0, 0.5);
    ROW(TORCH, BILINEAR, 4, 2, 0.625, 0.3, 1.9); /* 1.6 (o + 1/2) - 1/2 */
    ROW(FLOAT_AA, BILINEAR, 4, 2, 0, (0.75 + 2 * 0.25) / 1.75, (0.25 + 2 * 0.75 + 3 * 0.75) / 1.75);
    ROW(TORCH, BICUBIC, 4, 2, 0, 0.40625, 2.59375); /* -3/32, 19/32, 19/32, -3/32 */
    ROW(FLOAT_AA, BICUBIC, 2, 1, 0, 0.5);
#undef ROW
}

/* A random axis and what it is called. */
static lw_resample_axis_spec random_axis(check *t)
{
    lw_resample_axis_spec s = {.from = 1 + check_below(t, 14), .to = 1 + check_below(t, 20)};
    s.form = check_below(t, 2) ? LW_RESAMPLE_TORCH : LW_RESAMPLE_FLOAT_AA;
    s.filter = check_below(t, 2) ? LW_FILTER_BILINEAR : LW_FILTER_BICUBIC;
    if (check_below(t, 3) == 0)
        s.scale = ((double)s.to + 0.1) / (double)s.from;
    return s;
}

/* y [n][c] = the axis applied to x, by these kernels and by the reference. */
static void apply(check *t, const lw_resample_axis *a, float *y, const float *x, ptrdiff_t c)
{
    lw_kernels k = table(t), ref;
    lw_kernels_init(&ref, LW_ISA_REF);
    lw_resample_pass p = {a, c, c, c};
    float *want = check_out(t, a->n * c, 0);
    for (ptrdiff_t o = a->n - 1; o >= 0; o--)
        k.resample.down_f32(y, x + a->first * c, &p, o, o + 1);
    ref.resample.down_f32(want, x + a->first * c, &p, 0, a->n);
    check_close_f(t, y, want, a->n * c, (check_tol){.abs = 4e-6}, "%td taps of %td", a->taps, c);
    void *room = check_bytes(t, lw_resample_across_scratch(a, c, 4), 0);
    float *line = check_out(t, a->n * c, 1);
    lw_resample_pass across = {a, c, 0, 0};
    k.resample.across_f32(line, x + a->first * c, &across, 0, 1, room);
    check_same(t, line, y, (size_t)(a->n * c) * 4, "across a line of pixels as down their column");
}

static double dot(const float *a, const float *b, int64_t n, double *scale)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) {
        sum += (double)a[i] * (double)b[i];
        *scale += fabs((double)a[i] * (double)b[i]);
    }
    return sum;
}

static void transposes(check *t)
{
    static const int channels[] = {1, 3, 8, 16, 17, 40};
    for (int round = 0; round < 200; round++) {
        lw_resample_axis_spec s = random_axis(t);
        lw_resample_axis a = {0}, turned = {0};
        ptrdiff_t c = channels[check_below(t, 6)], nx = s.from * c, ny = s.to * c;
        assert_int_equal(lw_resample_axis_init(&a, &s), 0);
        assert_int_equal(lw_resample_axis_transpose(&turned, &a, s.from), 0);
        assert_int_equal(turned.copy, a.copy);
        float *x = check_in(t, nx, 1, -1, 1), *dy = check_in(t, ny, 1, -1, 1);
        float *y = check_out(t, ny, 1), *dx = check_out(t, nx, 1);
        if (!a.copy) {
            apply(t, &a, y, x, c);
            apply(t, &turned, dx, dy, c);
            double scale = 1.0, forth = dot(y, dy, ny, &scale), back = dot(x, dx, nx, &scale);
            float got = (float)((forth - back) / scale);
            const double zero = 0.0;
            check_close(t, &got, &zero, 1, (check_tol){.abs = 5e-7}, "%s %s %td to %td",
                        lw_resample_form_name[s.form], lw_filter_name[s.filter], s.from, s.to);
        }
        lw_resample_axis_clear(&a);
        lw_resample_axis_clear(&turned);
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"by_hand", by_hand}, {"transposes", transposes}};
    return check_main(argc, argv, "resample", cases, LW_COUNT(cases));
}
