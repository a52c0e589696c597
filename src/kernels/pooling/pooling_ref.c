/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling and nearest upsampling, the oracle. */
#include "kernels/pooling/pooling_window.h"

#include <math.h>
#include <string.h>

void lw_pooling_avg_ref(float *y, const float *x, const lw_pooling_shape *s, ptrdiff_t begin,
                        ptrdiff_t end)
{
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *image = x + r / s->oh * s->h * s->w * s->c;
        ptrdiff_t box[4];
        window(s, r % s->oh, s->h, &box[0], &box[1]);
        for (ptrdiff_t o = 0; o < s->ow; o++) {
            window(s, o, s->w, &box[2], &box[3]);
            for (ptrdiff_t c = 0; c < s->c; c++) {
                double sum = 0.0;
                for (ptrdiff_t i = box[0]; i < box[1]; i++)
                    for (ptrdiff_t j = box[2]; j < box[3]; j++)
                        sum += (double)image[(i * s->w + j) * s->c + c];
                y[(r * s->ow + o) * s->c + c] = (float)(sum / (double)window_count(s, box));
            }
        }
    }
}

/* Offset in `image` of the first maximum of window (oh, ow), channel c; a NaN counts as the
 * maximum; -1: empty. */
static ptrdiff_t argmax(const float *image, const lw_pooling_shape *s, ptrdiff_t oh, ptrdiff_t ow,
                        ptrdiff_t c)
{
    ptrdiff_t h0, h1, w0, w1, best = -1;
    window(s, oh, s->h, &h0, &h1);
    window(s, ow, s->w, &w0, &w1);
    for (ptrdiff_t i = h0; i < h1; i++) {
        for (ptrdiff_t j = w0; j < w1; j++) {
            ptrdiff_t at = (i * s->w + j) * s->c + c;
            if (best < 0 || (!isnan(image[best]) && (isnan(image[at]) || image[at] > image[best])))
                best = at;
        }
    }
    return best;
}

void lw_pooling_max_ref(float *y, const float *x, const lw_pooling_shape *s, ptrdiff_t begin,
                        ptrdiff_t end)
{
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *image = x + r / s->oh * s->h * s->w * s->c;
        for (ptrdiff_t o = 0; o < s->ow; o++) {
            for (ptrdiff_t c = 0; c < s->c; c++) {
                ptrdiff_t at = argmax(image, s, r % s->oh, o, c);
                y[(r * s->ow + o) * s->c + c] = at < 0 ? -INFINITY : image[at];
            }
        }
    }
}

/* Of elements that stand for numbers: of(element) is one, to(number) an element. */
#define MAX_REF(name, element, number, least, of, to)                                   \
    void name(element *y, const element *x, const lw_pooling_shape *s, ptrdiff_t begin, \
              ptrdiff_t end)                                                            \
    {                                                                                   \
        for (ptrdiff_t r = begin; r < end; r++) {                                       \
            const element *image = x + r / s->oh * s->h * s->w * s->c;                  \
            ptrdiff_t box[4];                                                           \
            window(s, r % s->oh, s->h, &box[0], &box[1]);                               \
            for (ptrdiff_t o = 0; o < s->ow; o++) {                                     \
                window(s, o, s->w, &box[2], &box[3]);                                   \
                for (ptrdiff_t c = 0; c < s->c; c++) {                                  \
                    number best = least;                                                \
                    for (ptrdiff_t i = box[0]; i < box[1]; i++)                         \
                        for (ptrdiff_t j = box[2]; j < box[3]; j++) {                   \
                            const number v = of(image[(i * s->w + j) * s->c + c]);      \
                            best = isnan((double)v) || v > best                         \
                                       ? v                                              \
                                       : best; /* nothing is larger than NaN */         \
                        }                                                               \
                    y[(r * s->ow + o) * s->c + c] = to(best);                           \
                }                                                                       \
            }                                                                           \
        }                                                                               \
    }
#define ITSELF(v) (v)
MAX_REF(lw_pooling_max_bf16_ref, lw_bf16, float, -INFINITY, lw_bf16_to_f32, lw_bf16_of_f32)
MAX_REF(lw_pooling_max_u8_ref, uint8_t, uint8_t, 0, ITSELF, ITSELF)
#undef ITSELF
#undef MAX_REF

void lw_pooling_max_grad_ref(float *dx, const float *dy, const float *x, const lw_pooling_shape *s,
                             ptrdiff_t begin, ptrdiff_t end)
{
    ptrdiff_t size = s->h * s->w * s->c;
    for (ptrdiff_t b = begin; b < end; b++) {
        memset(dx + b * size, 0, (size_t)size * sizeof *dx);
        for (ptrdiff_t i = 0; i < s->oh * s->ow; i++) {
            for (ptrdiff_t c = 0; c < s->c; c++) {
                ptrdiff_t at = argmax(x + b * size, s, i / s->ow, i % s->ow, c);
                if (at >= 0)
                    dx[b * size + at] += dy[(b * s->oh * s->ow + i) * s->c + c];
            }
        }
    }
}

void lw_pooling_avg_grad_ref(float *dx, const float *dy, const lw_pooling_shape *s, ptrdiff_t begin,
                             ptrdiff_t end)
{
    for (ptrdiff_t r = begin; r < end; r++) {
        const float *image = dy + r / s->h * s->oh * s->ow * s->c;
        for (ptrdiff_t j = 0; j < s->w; j++) {
            for (ptrdiff_t c = 0; c < s->c; c++) {
                double sum = 0.0;
                for (ptrdiff_t oh = 0; oh < s->oh; oh++) {
                    ptrdiff_t i0 = r % s->h + s->pad - oh * s->stride;
                    if (i0 < 0 || i0 >= s->k)
                        continue;
                    for (ptrdiff_t ow = 0; ow < s->ow; ow++) {
                        ptrdiff_t j0 = j + s->pad - ow * s->stride;
                        if (j0 >= 0 && j0 < s->k)
                            sum += (double)image[(oh * s->ow + ow) * s->c + c] /
                                   (double)window_count_at(s, oh, ow);
                    }
                }
                dx[(r * s->w + j) * s->c + c] = (float)sum;
            }
        }
    }
}

void lw_upsample_ref(float *y, const float *x, ptrdiff_t h, ptrdiff_t w, ptrdiff_t c, ptrdiff_t k,
                     ptrdiff_t begin, ptrdiff_t end)
{
    (void)h; /* rows of all images are consecutive on both sides */
    for (ptrdiff_t r = begin; r < end; r++)
        for (ptrdiff_t i = 0; i < k; i++)
            for (ptrdiff_t j = 0; j < w * k; j++)
                memcpy(y + ((r * k + i) * w * k + j) * c, x + (r * w + j / k) * c,
                       (size_t)c * sizeof *y);
}

void lw_upsample_grad_ref(float *dx, const float *dy, ptrdiff_t h, ptrdiff_t w, ptrdiff_t c,
                          ptrdiff_t k, ptrdiff_t begin, ptrdiff_t end)
{
    (void)h;
    for (ptrdiff_t r = begin; r < end; r++) {
        for (ptrdiff_t j = 0; j < w; j++) {
            for (ptrdiff_t q = 0; q < c; q++) {
                double sum = 0.0;
                for (ptrdiff_t i = 0; i < k * k; i++)
                    sum += (double)dy[((r * k + i / k) * w * k + j * k + i % k) * c + q];
                dx[(r * w + j) * c + q] = (float)sum;
            }
        }
    }
}
