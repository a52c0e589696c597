/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that a network has to beat. */
#include "eval/eval_restore.h"

#include <math.h>
#include <string.h>

enum { STRIDE = 3, RADIUS = LW_WIENER_SIDE / 2 };

double lw_psnr_u8(const uint8_t *a, const uint8_t *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)(a[i] - b[i]) * (a[i] - b[i]);
    return sum > 0 ? 10 * log10(255.0 * 255.0 * (double)n / sum) : 99.0;
}

static uint8_t to_byte(double v)
{
    return (uint8_t)lrint(fmin(fmax(v, 0), 255));
}

static size_t at(lw_plane p, int32_t y, int32_t x, int32_t k)
{
    y = LW_MIN(LW_MAX(y, 0), p.h - 1);
    x = LW_MIN(LW_MAX(x, 0), p.w - 1);
    return ((size_t)y * (size_t)p.w + (size_t)x) * (size_t)p.c + (size_t)k;
}

/* ---- unsharp mask ----------------------------------------------------------------------------- */

int lw_unsharp_u8(const uint8_t *x, lw_plane p, double sd, double amount, uint8_t *y)
{
    const int32_t r = (int32_t)ceil(3 * sd);
    LW_CLEANUP(lw_free) double *kernel = lw_calloc((size_t)r + 1, sizeof *kernel);
    LW_CLEANUP(lw_free)
    float *lines = lw_calloc((size_t)p.h * (size_t)p.w * (size_t)p.c, sizeof *lines);
    double sum = 0;
    if (!kernel || !lines)
        return LW_ENOMEM;
    for (int32_t i = 0; i <= r; i++)
        sum += (i ? 2 : 1) * (kernel[i] = exp(-0.5 * i * i / (sd * sd)));
    for (int32_t i = 0; i < p.h; i++)
        for (int32_t j = 0; j < p.w; j++)
            for (int32_t k = 0; k < p.c; k++) {
                double v = kernel[0] * x[at(p, i, j, k)];
                for (int32_t d = 1; d <= r; d++)
                    v += kernel[d] * (x[at(p, i, j - d, k)] + x[at(p, i, j + d, k)]);
                lines[at(p, i, j, k)] = (float)(v / sum);
            }
    for (int32_t i = 0; i < p.h; i++)
        for (int32_t j = 0; j < p.w; j++)
            for (int32_t k = 0; k < p.c; k++) {
                double v = kernel[0] * (double)lines[at(p, i, j, k)], own = x[at(p, i, j, k)];
                for (int32_t d = 1; d <= r; d++)
                    v += kernel[d] *
                         (double)(lines[at(p, i - d, j, k)] + lines[at(p, i + d, j, k)]);
                y[at(p, i, j, k)] = to_byte(own + amount * (own - v / sum));
            }
    return 0;
}

/* ---- Wiener's filter -------------------------------------------------------------------------- */

void lw_wiener_local_u8(const uint8_t *x, lw_plane p, int32_t window, double noise, uint8_t *y)
{
    const int32_t r = window / 2;
    const double n = (2 * r + 1) * (2 * r + 1);
    for (int32_t i = 0; i < p.h; i++)
        for (int32_t j = 0; j < p.w; j++)
            for (int32_t k = 0; k < p.c; k++) {
                double sum = 0, squares = 0, own = x[at(p, i, j, k)];
                for (int32_t dy = -r; dy <= r; dy++)
                    for (int32_t dx = -r; dx <= r; dx++) {
                        double v = x[at(p, i + dy, j + dx, k)];
                        sum += v;
                        squares += v * v;
                    }
                double mean = sum / n, variance = squares / n - mean * mean;
                double keep = variance > noise ? 1 - noise / variance : 0;
                y[at(p, i, j, k)] = to_byte(mean + keep * (own - mean));
            }
}

/* What the kernel sees around a value. */
static void look(const uint8_t *x, lw_plane p, int32_t i, int32_t j, int32_t k,
                 double seen[LW_WIENER_TAPS])
{
    int n = 0;
    for (int32_t dy = -RADIUS; dy <= RADIUS; dy++)
        for (int32_t dx = -RADIUS; dx <= RADIUS; dx++)
            seen[n++] = x[at(p, i + dy, j + dx, k)];
    seen[n] = 1;
}

void lw_wiener_add(lw_wiener *f, const uint8_t *damaged, const uint8_t *clean, lw_plane p)
{
    double seen[LW_WIENER_TAPS];
    for (int32_t i = 0; i < p.h; i += STRIDE)
        for (int32_t j = 0; j < p.w; j += STRIDE)
            for (int32_t k = 0; k < p.c; k++) {
                look(damaged, p, i, j, k, seen);
                for (int m = 0; m < LW_WIENER_TAPS; m++) {
                    f->b[m] += seen[m] * clean[at(p, i, j, k)];
                    for (int q = 0; q <= m; q++)
                        f->a[m * LW_WIENER_TAPS + q] += seen[m] * seen[q];
                }
            }
}

/* By Cholesky's factors; a little is added to the diagonal, since blurred pictures leave some
 * directions nearly empty. */
int lw_wiener_solve(lw_wiener *f)
{
    enum { N = LW_WIENER_TAPS };
    double l[N * N], z[N];
    for (int i = 0; i < N; i++) {
        for (int j = 0; j <= i; j++) {
            double v = f->a[i * N + j] * (i == j ? 1 + 1e-9 : 1);
            for (int k = 0; k < j; k++)
                v -= l[i * N + k] * l[j * N + k];
            if (i == j && !(v > 0))
                return lw_fail(LW_ENUMERIC, "the pictures are too flat for a Wiener filter");
            l[i * N + j] = i == j ? sqrt(v) : v / l[j * N + j];
        }
        z[i] = f->b[i];
        for (int k = 0; k < i; k++)
            z[i] -= l[i * N + k] * z[k];
        z[i] /= l[i * N + i];
    }
    for (int i = N - 1; i >= 0; i--) {
        f->tap[i] = z[i];
        for (int k = i + 1; k < N; k++)
            f->tap[i] -= l[k * N + i] * f->tap[k];
        f->tap[i] /= l[i * N + i];
    }
    return 0;
}

void lw_wiener_u8(const lw_wiener *f, const uint8_t *x, lw_plane p, uint8_t *y)
{
    double seen[LW_WIENER_TAPS];
    for (int32_t i = 0; i < p.h; i++)
        for (int32_t j = 0; j < p.w; j++)
            for (int32_t k = 0; k < p.c; k++) {
                double v = 0;
                look(x, p, i, j, k, seen);
                for (int m = 0; m < LW_WIENER_TAPS; m++)
                    v += f->tap[m] * seen[m];
                y[at(p, i, j, k)] = to_byte(v);
            }
}
