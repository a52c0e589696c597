/* SPDX-License-Identifier: Apache-2.0 */
/* pixels: the same bytes as the reference at every size, the reference against the formulas of
 * BT.601 and BT.709, and frames that come back. */
#include <math.h>
#include <string.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

static struct lw_pixels_kernels kernels_of(lw_isa isa)
{
    static lw_kernels k;
    lw_kernels_init(&k, isa);
    return k.pixels;
}

static uint8_t *noise(check *t, size_t n)
{
    uint8_t *x = check_bytes(t, n, 0);
    for (size_t i = 0; i < n; i++)
        x[i] = (uint8_t)check_below(t, 256);
    return x;
}

static uint8_t *blank(check *t, size_t n)
{
    uint8_t *x = check_bytes(t, n, 0);
    memset(x, 77, n);
    return x;
}

/* Both ways, bytes and floats, in two ranges of bands, of which the second leaves the first alone. */
static void same(check *t, const lw_pixels *p)
{
    struct lw_pixels_kernels k = kernels_of(t->isa), ref = kernels_of(LW_ISA_REF);
    const size_t frame = lw_pixels_bytes(p), rgb = (size_t)(p->w * p->h * 3);
    const ptrdiff_t cut = p->bands / 2, before = cut * p->lines * p->w * 3;
    uint8_t *x = noise(t, frame), *got = blank(t, rgb), *want = blank(t, rgb);
    float *got_f = check_out(t, (int64_t)rgb, 1), *want_f = check_out(t, (int64_t)rgb, 0);
    k.to_u8(got, x, p, cut, p->bands);
    check_same(t, got, want, (size_t)before, "still blank, form %d", (int)p->form);
    k.to_u8(got, x, p, 0, cut);
    ref.to_u8(want, x, p, 0, p->bands);
    check_same(t, got, want, rgb, "to u8, form %d, %td x %td", (int)p->form, p->w, p->h);
    k.to_f32(got_f, x, p, cut, p->bands);
    check_poisoned(t, got_f, before, "still poisoned, form %d", (int)p->form);
    k.to_f32(got_f, x, p, 0, cut);
    ref.to_f32(want_f, x, p, 0, p->bands);
    check_same(t, got_f, want_f, rgb * sizeof *got_f, "to f32, form %d, %td x %td", (int)p->form,
               p->w, p->h);
    uint8_t *back = blank(t, frame), *want_back = blank(t, frame), *y = noise(t, rgb);
    k.from_u8(back, y, p, 0, cut);
    k.from_u8(back, y, p, cut, p->bands);
    ref.from_u8(want_back, y, p, 0, p->bands);
    check_same(t, back, want_back, frame, "from u8, form %d, %td x %td", (int)p->form, p->w, p->h);
    float *f = check_in(t, (int64_t)rgb, 1, -1.2, 1.2);
    for (size_t i = 0; i < rgb; i += 7)
        f[i] = (float[]){NAN, INFINITY, -INFINITY, 1.0f / 255, -1.0f}[i % 5]; /* 1/255: a half */
    k.from_f32(back, f, p, 0, cut);
    k.from_f32(back, f, p, cut, p->bands);
    ref.from_f32(want_back, f, p, 0, p->bands);
    check_same(t, back, want_back, frame, "from f32, form %d, %td x %td", (int)p->form, p->w, p->h);
    check_next(t);
}

static void sizes(check *t)
{
    static const int16_t widths[] = {1, 2, 3, 15, 16, 17, 31, 32, 33, 47, 64, 71, 130};
    for (int form = 0; form < LW_PIXELS_FORMS; form++)
        for (size_t i = 0; i < LW_COUNT(widths); i++)
            for (ptrdiff_t h = 1; h < 6; h++) {
                lw_pixels p;
                lw_pixels_init(&p, (lw_pixels_form)form, i & 1 ? LW_MATRIX_709 : LW_MATRIX_601,
                               (h & 1) != 0, widths[i], h);
                same(t, &p);
            }
}

/* What a triple of YUV is in RGB, unrounded, by the definition. */
static void by_definition(double rgb[3], const double yuv[3], double kr, double kb, bool full)
{
    double y = full ? yuv[0] : (yuv[0] - 16) * 255 / 219;
    double u = (yuv[1] - 128) * (full ? 1 : 255.0 / 224), v = (yuv[2] - 128);
    v *= full ? 1 : 255.0 / 224;
    rgb[0] = y + 2 * (1 - kr) * v;
    rgb[2] = y + 2 * (1 - kb) * u;
    rgb[1] = (y - kr * rgb[0] - kb * rgb[2]) / (1 - kr - kb);
}

static void formula(check *t)
{
    enum { N = 997 };
    struct lw_pixels_kernels k = kernels_of(t->isa);
    for (int i = 0; i < 4; i++) {
        const bool full = i & 1, hd = i & 2;
        const double kr = hd ? 0.2126 : 0.299, kb = hd ? 0.0722 : 0.114;
        lw_pixels p;
        lw_pixels_init(&p, LW_PIXELS_444, hd ? LW_MATRIX_709 : LW_MATRIX_601, full, N, 1);
        const uint8_t *x = noise(t, (size_t)3 * N);
        uint8_t *rgb = blank(t, (size_t)3 * N), *back = blank(t, (size_t)3 * N);
        float *got = check_out(t, (int64_t)3 * N, 0);
        double *want = check_doubles(t, (int64_t)3 * N);
        k.to_u8(rgb, x, &p, 0, 1);
        for (int j = 0; j < N; j++) {
            const double yuv[3] = {x[j], x[N + j], x[2 * N + j]};
            by_definition(want + (ptrdiff_t)3 * j, yuv, kr, kb, full);
        }
        for (int j = 0; j < 3 * N; j++) {
            want[j] = fmin(fmax(want[j], 0), 255);
            got[j] = (float)rgb[j];
        }
        check_close(t, got, want, 3 * N, (check_tol){.abs = 0.51}, "to RGB, case %d", i);
        /* and back: where these bytes are, before rounding */
        k.from_u8(back, rgb, &p, 0, 1);
        for (int j = 0; j < N; j++) {
            const uint8_t *c = rgb + (ptrdiff_t)3 * j;
            double y = kr * c[0] + (1 - kr - kb) * c[1] + kb * c[2];
            double s = full ? 1 : 224.0 / 255;
            want[j] = full ? y : 16 + y * 219 / 255;
            want[N + j] = fmin(128 + s * (c[2] - y) / (2 * (1 - kb)), 255);
            want[2 * N + j] = fmin(128 + s * (c[0] - y) / (2 * (1 - kr)), 255);
        }
        for (int j = 0; j < 3 * N; j++)
            got[j] = (float)back[j];
        check_close(t, got, want, 3 * N, (check_tol){.abs = 0.51}, "from RGB, case %d", i);
        check_next(t);
    }
}

/* Black, white and red as every table of limited BT.601 has them. */
static void known(check *t)
{
    static const uint8_t yuv[9] = {16, 235, 81, 128, 128, 90, 128, 128, 240};
    static const uint8_t rgb[9] = {0, 0, 0, 255, 255, 255, 254, 0, 0};
    struct lw_pixels_kernels k = kernels_of(t->isa);
    lw_pixels p;
    lw_pixels_init(&p, LW_PIXELS_444, LW_MATRIX_601, false, 3, 1);
    uint8_t *got = blank(t, 9);
    k.to_u8(got, yuv, &p, 0, 1);
    check_same(t, got, rgb, 9, "black, white, red");
}

/* A frame within what RGB can say comes back within a level, whatever shares differences. */
static void round_trip(check *t)
{
    struct lw_pixels_kernels k = kernels_of(t->isa);
    for (int form = 0; form < LW_PIXELS_GRAY; form++)
        for (int full = 0; full < 2; full++) {
            lw_pixels p;
            lw_pixels_init(&p, (lw_pixels_form)form, LW_MATRIX_709, full, 70, 6);
            const size_t n = lw_pixels_bytes(&p);
            uint8_t *x = check_bytes(t, n, 0), *rgb = blank(t, (size_t)70 * 6 * 3);
            uint8_t *back = blank(t, n);
            float *a = check_out(t, (int64_t)n, 0), *b = check_out(t, (int64_t)n, 0);
            for (size_t i = 0; i < n; i++)
                x[i] = (uint8_t)(110 + check_below(t, 36));
            k.to_u8(rgb, x, &p, 0, p.bands);
            k.from_u8(back, rgb, &p, 0, p.bands);
            for (size_t i = 0; i < n; i++) {
                a[i] = (float)back[i];
                b[i] = (float)x[i];
            }
            check_close_f(t, a, b, (int64_t)n, (check_tol){.abs = 1}, "form %d", form);
            check_next(t);
        }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"sizes", sizes}, {"formula", formula}, {"known", known}, {"round_trip", round_trip}};
    return check_main(argc, argv, "pixels", cases, LW_COUNT(cases));
}
