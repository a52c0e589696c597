/* SPDX-License-Identifier: Apache-2.0 */
/* The pixel functions behind junk pictures. All on [h][w][c] floats. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "data/data_junk.h"
#include "data/data_pixels.h"

#define GRID 4 /* control points of a warp, per side */

void lw_junk_average(const float *a, const float *b, int32_t h, int32_t w, int32_t c, float *dst)
{
    for (int64_t i = 0; i < (int64_t)h * w * c; i++)
        dst[i] = .5f * (a[i] + b[i]);
}

void lw_junk_splice(const float *a, const float *b, int32_t h, int32_t w, int32_t c, int vertical,
                    float *dst)
{
    for (int32_t y = 0; y < h; y++)
        for (int32_t x = 0; x < w; x++) {
            const float *src = (vertical ? x < w / 2 : y < h / 2) ? a : b;
            memcpy(dst + c * ((int64_t)y * w + x), src + c * ((int64_t)y * w + x),
                   (size_t)c * sizeof *dst);
        }
}

/* Mean of cell (cy, cx), whose edge cells may be smaller. */
static void cell_mean(const float *a, int32_t h, int32_t w, int32_t k, int32_t cell, int32_t cy,
                      int32_t cx, float *out)
{
    int32_t y1 = LW_MIN(h, (cy + 1) * cell), x1 = LW_MIN(w, (cx + 1) * cell);
    int32_t n = (y1 - cy * cell) * (x1 - cx * cell);
    for (int32_t c = 0; c < k; c++)
        out[c] = 0;
    for (int32_t y = cy * cell; y < y1; y++)
        for (int32_t x = cx * cell; x < x1; x++)
            for (int32_t c = 0; c < k; c++)
                out[c] += a[k * ((int64_t)y * w + x) + c];
    for (int32_t c = 0; c < k; c++)
        out[c] /= (float)n;
}

void lw_junk_blur(const float *a, int32_t h, int32_t w, int32_t k, int32_t cell, float *dst)
{
    cell = LW_MAX(cell, 1);
    int32_t gh = LW_CEIL_DIV(h, cell), gw = LW_CEIL_DIV(w, cell);
    for (int32_t y = 0; y < h; y++)
        for (int32_t x = 0; x < w; x++) {
            /* Bilinear between the centres of the four cells around the pixel. */
            float gy = ((float)y + .5f) / (float)cell - .5f,
                  gx = ((float)x + .5f) / (float)cell - .5f;
            gy = LW_MIN(LW_MAX(gy, 0.0f), (float)(gh - 1));
            gx = LW_MIN(LW_MAX(gx, 0.0f), (float)(gw - 1));
            int32_t y0 = (int32_t)gy, x0 = (int32_t)gx, y1 = LW_MIN(y0 + 1, gh - 1),
                    x1 = LW_MIN(x0 + 1, gw - 1);
            float m[4][LW_MAX_CHANNELS], fy = gy - (float)y0, fx = gx - (float)x0;
            cell_mean(a, h, w, k, cell, y0, x0, m[0]);
            cell_mean(a, h, w, k, cell, y0, x1, m[1]);
            cell_mean(a, h, w, k, cell, y1, x0, m[2]);
            cell_mean(a, h, w, k, cell, y1, x1, m[3]);
            for (int32_t c = 0; c < k; c++)
                dst[k * ((int64_t)y * w + x) + c] = (m[0][c] * (1 - fx) + m[1][c] * fx) * (1 - fy) +
                                                    (m[2][c] * (1 - fx) + m[3][c] * fx) * fy;
        }
}

void lw_junk_warp(const float *a, int32_t h, int32_t w, int32_t k, uint64_t seed, int64_t index,
                  float *dst)
{
    lw_rng_key key = lw_rng_key_of(seed, lw_hash_name("data.warp"));
    float grid[GRID * GRID][3]; /* dy, dx in pixels, unused */
    for (int g = 0; g < GRID * GRID; g++) {
        for (int c = 0; c < 2; c++) {
            float u =
                (float)(2 * lw_rng_uniform(key, 0, (uint64_t)index, (uint64_t)(2 * g + c)) - 1);
            /* At least half of the largest shift, so that no point of the field is near rest. */
            grid[g][c] = (u < 0 ? -.5f + .5f * u : .5f + .5f * u) * .35f * (float)(c ? w : h);
        }
        grid[g][2] = 0;
    }
    for (int32_t y = 0; y < h; y++)
        for (int32_t x = 0; x < w; x++) {
            float shift[3];
            lw_bilinear_at(grid[0], GRID, GRID, 3, ((float)y + .5f) * (GRID - 1) / (float)h,
                           ((float)x + .5f) * (GRID - 1) / (float)w, shift);
            lw_bilinear_at(a, h, w, k, (float)y + shift[0], (float)x + shift[1],
                           dst + k * ((int64_t)y * w + x));
        }
}

void lw_junk_tile(const float *a, int32_t h, int32_t w, int32_t k, float *dst)
{
    int32_t th = LW_CEIL_DIV(h, 2), tw = LW_CEIL_DIV(w, 2);
    for (int32_t y = 0; y < h; y++)
        for (int32_t x = 0; x < w; x++)
            cell_mean(a, h, w, k, 2, y % th, x % tw, dst + k * ((int64_t)y * w + x));
}
