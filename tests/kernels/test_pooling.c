/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling, upsampling and copies: fast against reference, gradients against <dy, A x> = <A' dy, x>,
 * known values. */
#include <math.h>
#include <string.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

static lw_kernels table(check *t)
{
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    return k;
}

static double dot(const float *a, const float *b, int64_t n)
{
    double s = 0.0;
    for (int64_t i = 0; i < n; i++)
        s += (double)a[i] * (double)b[i];
    return s;
}

/* <a, b> must equal <c, d>. */
static void check_dots(check *t, const float *a, const float *b, int64_t n, const float *c,
                       const float *d, int64_t m, const char *what)
{
    double want = dot(c, d, m), scale = sqrt(dot(a, a, n) * dot(b, b, n)) + 1.0;
    float got = (float)((dot(a, b, n) - want) / scale);
    const double zero = 0.0;
    check_close(t, &got, &zero, 1, (check_tol){.abs = 2e-6}, "%s is the transpose of its gradient",
                what);
}

static lw_pooling_shape random_shape(check *t)
{
    static const int channels[] = {1, 3, 8, 16, 17, 31, 33, 64};
    lw_pooling_shape s = {.h = 3 + check_below(t, 9),
                          .w = 3 + check_below(t, 9),
                          .c = channels[check_below(t, LW_COUNT(channels))],
                          .k = 1 + check_below(t, 3),
                          .stride = 1 + check_below(t, 3)};
    s.pad = check_below(t, 2) && s.k > 1 ? s.k / 2 : 0;
    s.inside = check_below(t, 2);
    s.oh = (s.h + 2 * s.pad - s.k) / s.stride + 1;
    s.ow = (s.w + 2 * s.pad - s.k) / s.stride + 1;
    return s;
}

static void average(check *t)
{
    lw_kernels k = table(t);
    for (int round = 0; round < 60; round++) {
        lw_pooling_shape s = random_shape(t);
        int64_t b = 2, nx = b * s.h * s.w * s.c, ny = b * s.oh * s.ow * s.c;
        float *x = check_in(t, nx, 1, -1, 1), *dy = check_in(t, ny, 0, -1, 1);
        float *y = check_out(t, ny, 1), *want = check_out(t, ny, 0);
        float *dx = check_out(t, nx, 1), *dwant = check_out(t, nx, 0);
        for (int64_t r = b * s.oh - 1; r >= 0; r--)
            k.pooling.avg(y, x, &s, r, r + 1);
        lw_pooling_avg_ref(want, x, &s, 0, b * s.oh);
        check_close_f(t, y, want, ny, (check_tol){.abs = 1e-6}, "avg k%td s%td p%td", s.k, s.stride,
                      s.pad);
        k.pooling.avg_grad(dx, dy, &s, s.h / 2, b * s.h);
        k.pooling.avg_grad(dx, dy, &s, 0, s.h / 2);
        lw_pooling_avg_grad_ref(dwant, dy, &s, 0, b * s.h);
        check_close_f(t, dx, dwant, nx, (check_tol){.abs = 1e-6}, "avg_grad k%td s%td p%td", s.k,
                      s.stride, s.pad);
        check_dots(t, y, dy, ny, x, dx, nx, "avg");
        check_next(t);
    }
}

static void maximum(check *t)
{
    lw_kernels k = table(t);
    for (int round = 0; round < 60; round++) {
        lw_pooling_shape s = random_shape(t);
        int64_t b = 2, nx = b * s.h * s.w * s.c, ny = b * s.oh * s.ow * s.c;
        float *x = check_in(t, nx, 1, -1, 1), *dy = check_in(t, ny, 0, -1, 1);
        for (int64_t i = 0; i < nx; i++) /* ties, and some special values */
            x[i] = check_below(t, 40) ? floorf(x[i] * 4.0f) : check_below(t, 2) ? NAN : -INFINITY;
        float *y = check_out(t, ny, 1), *want = check_out(t, ny, 0);
        float *dx = check_out(t, nx, 1), *dwant = check_out(t, nx, 0);
        for (int64_t r = b * s.oh - 1; r >= 0; r--)
            k.pooling.max(y, x, &s, r, r + 1);
        lw_pooling_max_ref(want, x, &s, 0, b * s.oh);
        check_close_f(t, y, want, ny, (check_tol){0}, "max k%td s%td p%td", s.k, s.stride, s.pad);
        lw_bf16 *x_low = check_bytes(t, (size_t)nx * sizeof *x_low, 1), *low, *low_want;
        low = check_bytes(t, (size_t)ny * sizeof *low, 1);
        low_want = check_bytes(t, (size_t)ny * sizeof *low, 0);
        uint8_t *x_byte = check_bytes(t, (size_t)nx, 1), *byte = check_bytes(t, (size_t)ny, 1);
        uint8_t *byte_want = check_bytes(t, (size_t)ny, 0);
        for (int64_t i = 0; i < nx; i++) {
            x_low[i] = lw_bf16_of_f32(x[i]);
            x_byte[i] = (uint8_t)check_below(t, 256);
        }
        for (int64_t r = b * s.oh - 1; r >= 0; r--) {
            k.pooling.max_bf16(low, x_low, &s, r, r + 1);
            k.pooling.max_u8(byte, x_byte, &s, r, r + 1);
        }
        lw_pooling_max_bf16_ref(low_want, x_low, &s, 0, b * s.oh);
        lw_pooling_max_u8_ref(byte_want, x_byte, &s, 0, b * s.oh);
        check_same(t, low, low_want, (size_t)ny * sizeof *low, "max of bf16");
        check_same(t, byte, byte_want, (size_t)ny, "max of bytes");
        for (int64_t i = 0; i < ny; i++) /* numbers of few bits: what f32 gives */
            if (!isnan(want[i]))
                check_same(t, &low[i], &(lw_bf16){lw_bf16_of_f32(want[i])}, sizeof *low,
                           "max of f32");
        k.pooling.max_grad(dx, dy, x, &s, 1, 2);
        k.pooling.max_grad(dx, dy, x, &s, 0, 1);
        lw_pooling_max_grad_ref(dwant, dy, x, &s, 0, b);
        check_close_f(t, dx, dwant, nx, (check_tol){0}, "max_grad k%td s%td p%td", s.k, s.stride,
                      s.pad);
        check_next(t);
    }
}

/* One 3x3 image worked out by hand: k 2, stride 1. */
static void by_hand(check *t)
{
    lw_kernels k = table(t);
    static const float x[9] = {1, 5, 2, 5, 4, 0, -1, 7, 3}, dy[4] = {1, 10, 100, 1000};
    const lw_pooling_shape s = {.h = 3, .w = 3, .c = 1, .oh = 2, .ow = 2, .k = 2, .stride = 1};
    float y[4], dx[9];
    k.pooling.max(y, x, &s, 0, 2);
    check_close(t, y, (const double[]){5, 5, 7, 7}, 4, (check_tol){0}, "max");
    k.pooling.max_grad(dx, dy, x, &s, 0, 1);
    check_close(t, dx, (const double[]){0, 11, 0, 0, 0, 0, 0, 1100, 0}, 9, (check_tol){0},
                "max_grad");
    k.pooling.avg(y, x, &s, 0, 2);
    check_close(t, y, (const double[]){3.75, 2.75, 3.75, 3.5}, 4, (check_tol){0}, "avg");
    k.pooling.avg_grad(dx, dy, &s, 0, 3);
    check_close(t, dx, (const double[]){0.25, 2.75, 2.5, 25.25, 277.75, 252.5, 25, 275, 250}, 9,
                (check_tol){0}, "avg_grad");
}

static void upsampling(check *t)
{
    lw_kernels k = table(t);
    static const int channels[] = {1, 3, 16, 17, 40};
    for (size_t i = 0; i < LW_COUNT(channels); i++) {
        for (int64_t f = 1; f < 4; f++) {
            int64_t h = 3, w = 5, c = channels[i], b = 2, nx = b * h * w * c, ny = nx * f * f;
            float *x = check_in(t, nx, 1, -1, 1), *dy = check_in(t, ny, 1, -1, 1);
            float *y = check_out(t, ny, 1), *dx = check_out(t, nx, 1), *want = check_out(t, nx, 0);
            for (int64_t r = b * h - 1; r >= 0; r--) {
                k.pooling.upsample(y, x, h, w, c, f, r, r + 1);
                k.pooling.upsample_grad(dx, dy, h, w, c, f, r, r + 1);
            }
            for (int64_t e = 0; e < ny; e++) {
                int64_t ch = e % c, col = e / c % (w * f) / f, row = e / c / (w * f) / f;
                check_same(t, &y[e], &x[(row * w + col) * c + ch], 4, "upsample %lld",
                           (long long)f);
            }
            lw_upsample_grad_ref(want, dy, h, w, c, f, 0, b * h);
            check_close_f(t, dx, want, nx, (check_tol){.abs = 1e-6}, "upsample_grad %lld",
                          (long long)f);
            check_dots(t, y, dy, ny, x, dx, nx, "upsample");
            check_next(t);
        }
    }
}

static void padding(check *t)
{
    lw_kernels k = table(t);
    for (int round = 0; round < 100; round++) {
        int64_t b = 2;
        lw_pad_shape s = {.h = 3 + check_below(t, 4),
                          .w = 3 + check_below(t, 4),
                          .c = 3 + check_below(t, 20)},
                     back;
        for (int d = 0; d < 3; d++)
            s.lo[d] = (ptrdiff_t)check_below(t, 4) - 1, s.hi[d] = (ptrdiff_t)check_below(t, 4) - 1;
        int64_t oh = s.h + s.lo[0] + s.hi[0], ow = s.w + s.lo[1] + s.hi[1],
                oc = s.c + s.lo[2] + s.hi[2];
        back = (lw_pad_shape){.h = oh, .w = ow, .c = oc};
        for (int d = 0; d < 3; d++)
            back.lo[d] = -s.lo[d], back.hi[d] = -s.hi[d];
        int64_t nx = b * s.h * s.w * s.c, ny = b * oh * ow * oc;
        float *x = check_in(t, nx, 1, 1, 2), *y = check_out(t, ny, 1);
        float *dy = check_in(t, ny, 0, -1, 1), *dx = check_out(t, nx, 0);
        for (int64_t r = b * oh - 1; r >= 0; r--)
            k.pooling.pad(y, x, &s, r, r + 1);
        k.pooling.pad(dx, dy, &back, 0, b * s.h);
        for (int64_t e = 0; e < ny; e++) {
            int64_t ch = e % oc - s.lo[2], j = e / oc % ow - s.lo[1],
                    i = e / oc / ow % oh - s.lo[0], q = e / oc / ow / oh;
            int inside = ch >= 0 && ch < s.c && j >= 0 && j < s.w && i >= 0 && i < s.h;
            float want = inside ? x[((q * s.h + i) * s.w + j) * s.c + ch] : 0.0f;
            check_same(t, &y[e], &want, 4, "pad at %lld", (long long)e);
        }
        check_dots(t, y, dy, ny, x, dx, nx, "pad");
        check_next(t);
    }
}

static void subsampling(check *t)
{
    lw_kernels k = table(t);
    for (int64_t h = 1; h < 8; h++) {
        for (int64_t f = 1; f < 4; f++) {
            int64_t w = 9 - h, c = 5, b = 2, oh = (h + f - 1) / f, ow = (w + f - 1) / f;
            int64_t nx = b * h * w * c, ny = b * oh * ow * c;
            float *x = check_in(t, nx, 1, -1, 1), *dy = check_in(t, ny, 1, -1, 1);
            float *y = check_out(t, ny, 1), *dx = check_out(t, nx, 1);
            k.pooling.subsample(y, x, h, w, c, f, 0, b * oh);
            k.pooling.subsample_grad(dx, dy, h, w, c, f, 0, b * h);
            for (int64_t e = 0; e < ny; e++) {
                int64_t j = e / c % ow, i = e / c / ow % oh, q = e / c / ow / oh;
                check_same(t, &y[e], &x[((q * h + i * f) * w + j * f) * c + e % c], 4,
                           "subsample h%lld s%lld", (long long)h, (long long)f);
            }
            check_dots(t, y, dy, ny, x, dx, nx, "subsample");
            check_next(t);
        }
    }
}

static void row_copies(check *t)
{
    lw_kernels k = table(t);
    for (int64_t n = 1; n < 80; n += 1 + n / 6) {
        int64_t rows = 5, px = n + 3, py = n + 2;
        float *x = check_in(t, rows * px, 1, -1, 1), *y = check_out(t, rows * py, 1);
        k.pooling.copy_rows(y, py, x, px, n, 2, rows);
        k.pooling.copy_rows(y, py, x, px, n, 0, 2);
        for (int64_t r = 0; r < rows; r++) {
            check_same(t, y + r * py, x + r * px, (size_t)n * 4, "copy n=%lld", (long long)n);
            check_poisoned(t, y + r * py + n, 2, "gap after row %lld", (long long)r);
        }
        float *sum = check_in(t, rows * py, 0, -1, 1), *old = check_copy(t, sum, rows * py, 0);
        k.pooling.add_rows(sum, py, x, px, n, 0, rows);
        for (int64_t e = 0; e < rows * py; e++) {
            float want = e % py < n ? old[e] + x[e / py * px + e % py] : old[e];
            check_same(t, &sum[e], &want, 4, "add n=%lld", (long long)n);
        }
        check_next(t);
    }
}

static void embedding(check *t)
{
    lw_kernels k = table(t);
    enum { B = 40, V = 7 };
    for (int64_t c = 1; c < 40; c += 5) {
        int32_t ids[B];
        for (int i = 0; i < B; i++)
            ids[i] = (int32_t)check_below(t, V);
        ids[4] = -1, ids[9] = V; /* out of range: zeros, ignored */
        float *table_in = check_in(t, V * c, 1, -1, 1), *y = check_out(t, B * c, 1);
        float *dy = check_in(t, B * c, 1, -1, 1), *dt = check_out(t, V * c, 1);
        k.pooling.gather(y, table_in, ids, V, c, 20, B);
        k.pooling.gather(y, table_in, ids, V, c, 0, 20);
        double *want = check_doubles(t, V * c), *out = check_doubles(t, B * c);
        for (int64_t e = 0; e < B * c; e++) {
            int32_t id = ids[e / c];
            if (id < 0 || id >= V)
                continue;
            out[e] = (double)table_in[id * c + e % c];
            want[id * c + e % c] += (double)dy[e];
        }
        check_close(t, y, out, B * c, (check_tol){0}, "gather");
        int64_t cut = c / 2;
        k.pooling.scatter(dt, dy, ids, B, V, c, 0, cut, c);
        k.pooling.scatter(dt, dy, ids, B, V, c, 0, 0, cut);
        check_close(t, dt, want, V * c, (check_tol){.abs = 1e-5}, "scatter");
        k.pooling.scatter(dt, dy, ids, B, V, c, 1, 0, c);
        for (int64_t e = 0; e < V * c; e++)
            want[e] *= 2.0;
        check_close(t, dt, want, V * c, (check_tol){.abs = 2e-5}, "scatter twice");
        check_next(t);
    }
}

/* Ids of a bag: pads, repeats and ids outside the table among them. */
static void bag(check *t)
{
    lw_kernels k = table(t);
    static const int widths[] = {1, 3, 15, 16, 17, 64, 100, 128, 129, 250, 256, 300};
    enum { R = 9, V = 11 };
    for (size_t i = 0; i < LW_COUNT(widths); i++) {
        int64_t c = widths[i], n = 1 + (int64_t)i % 7;
        lw_bag_shape s = {V, c, n, 1 + (ptrdiff_t)i % 3, (uint32_t)i};
        int32_t ids[R * 7];
        for (int e = 0; e < R * n; e++)
            ids[e] = (int32_t)check_below(t, V + 3) - 1;
        float *table_in = check_in(t, V * c, 1, -1, 1), *base = check_in(t, R * c, 1, -1, 1);
        float *dy = check_in(t, R * c, 1, -1, 1);
        float *y = check_out(t, R * c, 1), *z = check_out(t, R * c, 1);
        float *dt = check_out(t, V * c, 1), *dz = check_out(t, V * c, 1);
        double *want = check_doubles(t, R * c), *dwant = check_doubles(t, V * c);
        for (int64_t e = 0; e < R * c; e++) {
            want[e] = i % 2 ? (double)base[e] : 0.0;
            for (int64_t j = 0; j < n; j++) {
                int32_t id = ids[e / c * n + j];
                double sign = s.minus >> j % s.period & 1 ? -1.0 : 1.0;
                if (id <= 0 || id >= V)
                    continue;
                want[e] += sign * (double)table_in[id * c + e % c];
                dwant[id * c + e % c] += sign * (double)dy[e];
            }
        }
        k.pooling.bag(y, i % 2 ? base : NULL, table_in, ids, &s, 4, R);
        k.pooling.bag(y, i % 2 ? base : NULL, table_in, ids, &s, 0, 4);
        k.pooling.bag(z, i % 2 ? base : NULL, table_in, ids, &s, 0, R);
        check_close(t, y, want, R * c, (check_tol){.abs = 2e-6}, "bag of %lld", (long long)c);
        check_same(t, y, z, (size_t)(R * c) * 4, "bag in ranges");
        k.pooling.bag_grad(dt, dy, ids, R, &s, c / 2, c);
        k.pooling.bag_grad(dt, dy, ids, R, &s, 0, c / 2);
        k.pooling.bag_grad(dz, dy, ids, R, &s, 0, c);
        check_close(t, dt, dwant, V * c, (check_tol){.abs = 1e-5}, "bag_grad %lld", (long long)c);
        check_same(t, dt, dz, (size_t)(V * c) * 4, "bag_grad in ranges");
        check_next(t);
    }
}

/* Sums of taps over the input pixel they fall on: tap a of output parity p reads pixel (p + a - 1)
 * / 2, rounded down, of its own; the transposed filter's index there is p + 1 - 2 (that pixel). */
static void upconv_weights(check *t)
{
    lw_kernels k = table(t);
    static const int64_t sizes[][2] = {{1, 1}, {3, 17}, {16, 16}, {19, 33}, {40, 5}};
    for (size_t i = 0; i < LW_COUNT(sizes); i++) {
        int64_t o = sizes[i][0], c = sizes[i][1], nw = o * 9 * c, ny = c * 16 * o;
        float *w = check_in(t, nw, 1, -1, 1), *dy = check_in(t, ny, 1, -1, 1);
        float *y = check_out(t, ny, 1), *dw = check_out(t, nw, 1);
        double *want = check_doubles(t, ny);
        k.pooling.upconv_weight(y, w, o, c, c / 2, c);
        k.pooling.upconv_weight(y, w, o, c, 0, c / 2);
        k.pooling.upconv_weight_grad(dw, dy, o, c, o / 2, o);
        k.pooling.upconv_weight_grad(dw, dy, o, c, 0, o / 2);
        for (int64_t e = 0; e < nw * 4; e++) {
            int64_t p = e & 1, q = e >> 1 & 1, at = e >> 2;
            int64_t ch = at % c, b = at / c % 3, a = at / c / 3 % 3, out = at / c / 9;
            int64_t ky = p + 1 - 2 * ((p + a + 1) / 2 - 1), kx = q + 1 - 2 * ((q + b + 1) / 2 - 1);
            want[((ch * 4 + ky) * 4 + kx) * o + out] += (double)w[at];
        }
        check_close(t, y, want, ny, (check_tol){.abs = 1e-6}, "upconv_weight %lld", (long long)o);
        check_dots(t, y, dy, ny, w, dw, nw, "upconv_weight");
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"average", average},
        {"maximum", maximum},
        {"by_hand", by_hand},
        {"upsampling", upsampling},
        {"padding", padding},
        {"subsampling", subsampling},
        {"row_copies", row_copies},
        {"embedding", embedding},
        {"bag", bag},
        {"upconv_weights", upconv_weights},
    };
    return check_main(argc, argv, "pooling", cases, LW_COUNT(cases));
}
