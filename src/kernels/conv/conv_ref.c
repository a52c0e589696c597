/* SPDX-License-Identifier: Apache-2.0 */
/* conv, reference: obvious loops, double accumulators; the oracle and the portable path.
 * Packed weights are a plain copy of w; tasks take equal shares of image rows or filters. */
#include "kernels/conv/conv_shape.h"
#include "kernels/gemm/gemm_ref.h"

void lw_conv_pack_ref(float *packed, const float *w, const lw_conv_shape *s, lw_conv_pass pass,
                      int64_t task)
{
    int64_t tasks = lw_conv_pack_tasks(s, pass), n = (int64_t)s->O * s->KH * s->KW * s->C;
    for (int64_t i = n * task / tasks; i < n * (task + 1) / tasks; i++)
        packed[i] = w[i];
}

static double forward_sum(const float *x, const float *w, const lw_conv_shape *s, ptrdiff_t b,
                          ptrdiff_t oy, ptrdiff_t ox, ptrdiff_t o)
{
    double sum = 0.0;
    for (ptrdiff_t ky = 0; ky < s->KH; ky++) {
        ptrdiff_t iy = oy * s->stride - s->pad_top + ky;
        for (ptrdiff_t kx = 0; kx < s->KW; kx++) {
            ptrdiff_t ix = ox * s->stride - s->pad_left + kx;
            if (iy < 0 || iy >= s->H || ix < 0 || ix >= s->W)
                continue;
            const float *px = x + ((b * s->H + iy) * s->W + ix) * s->ldx;
            const float *pw = w + ((o * s->KH + ky) * s->KW + kx) * s->C;
            for (ptrdiff_t c = 0; c < s->C; c++)
                sum += (double)px[c] * (double)pw[c];
        }
    }
    return sum;
}

void lw_conv_forward_ref(float *y, const float *x, const float *packed, const lw_conv_shape *s,
                         const lw_epilogue *e, int64_t task)
{
    int64_t tasks = lw_conv_tasks(s, LW_CONV_FORWARD), rows = (int64_t)s->B * s->OH;
    for (ptrdiff_t r = rows * task / tasks; r < rows * (task + 1) / tasks; r++)
        for (ptrdiff_t ox = 0; ox < s->OW; ox++)
            for (ptrdiff_t o = 0; o < s->O; o++) {
                ptrdiff_t row = r * s->OW + ox;
                float *out = y + row * s->ldy + o;
                double sum = forward_sum(x, packed, s, r / s->OH, r % s->OH, ox, o);
                *out = lw_epilogue_ref(sum, e && e->accumulate ? *out : 0.0f, e, r / s->OH, row, o);
            }
}

static double data_sum(const float *dy, const float *w, const lw_conv_shape *s, ptrdiff_t b,
                       ptrdiff_t iy, ptrdiff_t ix, ptrdiff_t c)
{
    double sum = 0.0;
    for (ptrdiff_t ky = 0; ky < s->KH; ky++) {
        ptrdiff_t oy = iy + s->pad_top - ky;
        if (oy < 0 || oy % s->stride || oy / s->stride >= s->OH)
            continue;
        for (ptrdiff_t kx = 0; kx < s->KW; kx++) {
            ptrdiff_t ox = ix + s->pad_left - kx;
            if (ox < 0 || ox % s->stride || ox / s->stride >= s->OW)
                continue;
            const float *pdy = dy +
                               ((b * s->OH + oy / s->stride) * s->OW + ox / s->stride) * s->ldy;
            for (ptrdiff_t o = 0; o < s->O; o++)
                sum += (double)pdy[o] * (double)w[((o * s->KH + ky) * s->KW + kx) * s->C + c];
        }
    }
    return sum;
}

void lw_conv_data_grad_ref(float *dx, const float *dy, const float *packed, const lw_conv_shape *s,
                           const lw_epilogue *e, int64_t task)
{
    int64_t tasks = lw_conv_tasks(s, LW_CONV_DATA_GRAD), rows = (int64_t)s->B * s->H;
    for (ptrdiff_t r = rows * task / tasks; r < rows * (task + 1) / tasks; r++)
        for (ptrdiff_t ix = 0; ix < s->W; ix++)
            for (ptrdiff_t c = 0; c < s->C; c++) {
                ptrdiff_t row = r * s->W + ix;
                float *out = dx + row * s->ldx + c;
                double sum = data_sum(dy, packed, s, r / s->H, r % s->H, ix, c);
                *out = lw_epilogue_ref(sum, e && e->accumulate ? *out : 0.0f, e, r / s->H, row, c);
            }
}

static double weight_sum(const float *dy, const float *x, const lw_conv_shape *s, ptrdiff_t o,
                         ptrdiff_t ky, ptrdiff_t kx, ptrdiff_t c)
{
    double sum = 0.0;
    for (ptrdiff_t r = 0; r < (ptrdiff_t)s->B * s->OH; r++) {
        ptrdiff_t iy = r % s->OH * s->stride - s->pad_top + ky;
        if (iy < 0 || iy >= s->H)
            continue;
        for (ptrdiff_t ox = 0; ox < s->OW; ox++) {
            ptrdiff_t ix = ox * s->stride - s->pad_left + kx;
            if (ix >= 0 && ix < s->W)
                sum += (double)dy[(r * s->OW + ox) * s->ldy + o] *
                       (double)x[((r / s->OH * s->H + iy) * s->W + ix) * s->ldx + c];
        }
    }
    return sum;
}

void lw_conv_weight_grad_ref(float *dw, float *db, const float *dy, const float *x,
                             const lw_conv_shape *s, int accumulate, float *partials, int64_t task)
{
    (void)partials; /* one pass: each task owns some filters */
    int64_t tasks = lw_conv_weight_grad_tasks(s);
    ptrdiff_t taps = (ptrdiff_t)s->KH * s->KW;
    for (ptrdiff_t o = s->O * task / tasks; o < s->O * (task + 1) / tasks; o++) {
        for (ptrdiff_t t = 0; t < taps; t++)
            for (ptrdiff_t c = 0; c < s->C; c++) {
                float *out = dw + (o * taps + t) * s->C
                +c;
                double old = accumulate ? (double)*out : 0.0;
                *out = (float)(old + weight_sum(dy, x, s, o, t / s->KW, t % s->KW, c));
            }
        if (!db)
            continue;
        double sum = accumulate ? (double)db[o] : 0.0;
        for (ptrdiff_t p = 0; p < (ptrdiff_t)s->B * s->OH * s->OW; p++)
            sum += (double)dy[p * s->ldy + o];
        db[o] = (float)sum;
    }
}

void lw_conv_weight_grad_combine_ref(float *dw, float *db, const lw_conv_shape *s, int accumulate,
                                     const float *partials, int64_t task)
{
    (void)dw, (void)db, (void)s, (void)accumulate, (void)partials, (void)task;
}
