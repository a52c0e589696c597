/* SPDX-License-Identifier: Apache-2.0 */
/* Depthwise convolution, reference: obvious loops, double accumulators. */
#include "kernels/conv/conv_depthwise_shape.h"
#include "kernels/gemm/gemm_ref.h"

static double forward_sum(const float *x, const float *w, const lw_conv_shape *s, ptrdiff_t b,
                          ptrdiff_t oy, ptrdiff_t ox, ptrdiff_t c)
{
    double sum = 0.0;
    for (ptrdiff_t ky = 0; ky < s->KH; ky++)
        for (ptrdiff_t kx = 0; kx < s->KW; kx++) {
            ptrdiff_t iy = oy * s->stride - s->pad_top + ky, ix = ox * s->stride - s->pad_left + kx;
            if (iy >= 0 && iy < s->H && ix >= 0 && ix < s->W)
                sum += (double)x[((b * s->H + iy) * s->W + ix) * s->ldx + c] *
                       (double)w[(ky * s->KW + kx) * s->C + c];
        }
    return sum;
}

static double data_sum(const float *dy, const float *w, const lw_conv_shape *s, ptrdiff_t b,
                       ptrdiff_t iy, ptrdiff_t ix, ptrdiff_t c)
{
    double sum = 0.0;
    for (ptrdiff_t ky = 0; ky < s->KH; ky++)
        for (ptrdiff_t kx = 0; kx < s->KW; kx++) {
            ptrdiff_t oy = iy + s->pad_top - ky, ox = ix + s->pad_left - kx;
            if (oy < 0 || ox < 0 || oy % s->stride || ox % s->stride)
                continue;
            oy /= s->stride;
            ox /= s->stride;
            if (oy < s->OH && ox < s->OW)
                sum += (double)dy[((b * s->OH + oy) * s->OW + ox) * s->ldy + c] *
                       (double)w[(ky * s->KW + kx) * s->C + c];
        }
    return sum;
}

void lw_depthwise_run_ref(float *out, const float *in, const float *packed, const lw_conv_shape *s,
                          lw_conv_pass pass, const lw_epilogue *e, int64_t task)
{
    bool forward = pass == LW_CONV_FORWARD;
    ptrdiff_t h = forward ? s->OH : s->H, w = forward ? s->OW : s->W;
    lw_depthwise_rows rows = lw_depthwise_rows_of(s, pass, task);
    for (ptrdiff_t r = (ptrdiff_t)rows.r0; r < rows.r1; r++)
        for (ptrdiff_t x = 0; x < w; x++)
            for (ptrdiff_t c = 0; c < s->C; c++) {
                float *to = out + (r * w + x) * (forward ? s->ldy : s->ldx) + c;
                double sum = (forward ? forward_sum : data_sum)(in, packed, s, r / h, r % h, x, c);
                *to = lw_epilogue_ref(sum, e && e->accumulate ? *to : 0.0f, e, r / h, r * w + x, c);
            }
}

void lw_depthwise_weight_grad_ref(float *partials, const float *dy, const float *x,
                                  const lw_conv_shape *s, int64_t task)
{
    lw_depthwise_part p = lw_depthwise_part_of(s, task);
    ptrdiff_t taps = (ptrdiff_t)s->KH * s->KW, outs = (ptrdiff_t)s->OH * s->OW;
    for (ptrdiff_t c = p.c0; c < p.c1; c++)
        for (ptrdiff_t t = 0; t <= taps; t++) { /* the last: the sum of dy alone */
            double sum = 0.0;
            for (ptrdiff_t i = p.b0 * outs; i < p.b1 * outs; i++) {
                double g = (double)dy[i * s->ldy + c];
                ptrdiff_t iy = i % outs / s->OW * s->stride - s->pad_top + t / s->KW,
                          ix = i % s->OW * s->stride - s->pad_left + t % s->KW;
                if (t == taps)
                    sum += g;
                else if (iy >= 0 && iy < s->H && ix >= 0 && ix < s->W)
                    sum += g * (double)x[((i / outs * s->H + iy) * s->W + ix) * s->ldx + c];
            }
            partials[p.at + t * s->C + c] = (float)sum;
        }
}
