/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resizing pictures, frames of video, and casts between element types. Frames and casts have the
 * CPU's bits (formulas in kernels/pixels and kernels/cast): this file is compiled with -fmad=false,
 * so that a * b + c is not fused.
 */
#include "backend/cuda/kernels/cuda_port.h"

#include "base/kinds.h"

/* One of the two passes of a resize. */
LW_KERNEL(resize, lw_cuda_resize, 256)
{
    LW_EACH(e, a.outer * a.to * a.inner)
    {
        int32_t o = (int32_t)(e / a.inner % a.to);
        const float *x = a.x + (e / a.inner / a.to * a.from + a.start[o]) * a.inner + e % a.inner;
        double sum = 0.0;
        for (int32_t j = 0; j < a.count[o]; j++)
            sum += (double)a.weight[(int64_t)o * a.taps + j] * (double)x[j * a.inner];
        a.y[e] = (float)sum;
    }
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Where a line's samples lie: luma of pixel x at y + x y_step, differences of pair c at u + c c_step
 * and v + c c_step. */
typedef struct frame_line {
    int64_t y, y_step, u, v, c_step;
    int pair; /* log2 of the pixels of a line that share differences */
} frame_line;

LW_ON_DEVICE frame_line frame_line_of(const lw_cuda_frames *a, int64_t line)
{
    int64_t all = a->w * a->h, half = (a->w + 1) / 2;
    frame_line l = {line * a->w, 1, line * a->w, line * a->w, 1, 0};
    switch (a->form) {
    case LW_PIXELS_420:
        l.u = all + line / 2 * half;
        l.v = l.u + (a->h + 1) / 2 * half;
        l.pair = 1;
        break;
    case LW_PIXELS_422:
        l.u = all + line * half;
        l.v = l.u + a->h * half;
        l.pair = 1;
        break;
    case LW_PIXELS_444:
        l.u += all;
        l.v += 2 * all;
        break;
    case LW_PIXELS_NV12:
        l.u = all + line / 2 * 2 * half;
        l.v = l.u + 1;
        l.c_step = 2;
        l.pair = 1;
        break;
    case LW_PIXELS_YUYV:
        l.y = line * 4 * half;
        l.y_step = 2;
        l.u = l.y + 1;
        l.v = l.y + 3;
        l.c_step = 4;
        l.pair = 1;
        break;
    default:
        break;
    }
    return l;
}

LW_ON_DEVICE uint8_t frame_clip(int32_t v) /* 16 bits behind the point, rounded */
{
    v += 1 << 15;
    return (uint8_t)(v < 0 ? 0 : v > 0xffffff ? 255 : v >> 16);
}

/* A thread for each pixel. */
LW_KERNEL(frame_to_rgb, lw_cuda_frames, 256)
{
    LW_EACH(e, a.n * a.h * a.w)
    {
        int64_t x = e % a.w, line = e / a.w % a.h;
        const uint8_t *frame = a.frame + e / a.w / a.h * a.bytes;
        frame_line l = frame_line_of(&a, line);
        int64_t c = (x >> l.pair) * l.c_step;
        uint8_t rgb[3];
        if (a.form == LW_PIXELS_RGB) {
            for (int k = 0; k < 3; k++)
                rgb[k] = frame[(line * a.w + x) * 3 + k];
        } else {
            bool gray = a.form == LW_PIXELS_GRAY;
            int32_t y = a.yy * ((int32_t)frame[l.y + x * l.y_step] - a.black);
            int32_t u = gray ? 0 : (int32_t)frame[l.u + c] - a.gray;
            int32_t v = gray ? 0 : (int32_t)frame[l.v + c] - a.gray;
            rgb[0] = frame_clip(y + a.rv * v);
            rgb[1] = frame_clip(y - a.gu * u - a.gv * v);
            rgb[2] = frame_clip(y + a.bu * u);
        }
        for (int k = 0; k < 3; k++)
            if (a.narrow)
                ((uint8_t *)a.rgb)[e * 3 + k] = rgb[k];
            else
                ((float *)a.rgb)[e * 3 + k] = (float)rgb[k] / 127.5f - 1.0f;
    }
}

/* A channel of pixel (line, x) of a picture, of the last one where there is none. */
LW_ON_DEVICE int32_t frame_read(const lw_cuda_frames *a, const float *rgb, int64_t line, int64_t x,
                                int k)
{
    line = line < a->h ? line : a->h - 1;
    x = x < a->w ? x : a->w - 1;
    float v = (rgb[(line * a->w + x) * 3 + k] + 1.0f) * 127.5f;
    return v >= 255.0f ? 255 : v > 0.0f ? (int32_t)(v + 0.5f) : 0; /* NaN: 0 */
}

/* The difference that 2^n pixels share, from their sums. */
LW_ON_DEVICE uint8_t frame_difference(const lw_cuda_frames *a, const int32_t *of,
                                      const int32_t *sum, int n)
{
    int32_t v = of[0] * sum[0] + of[1] * sum[1] + of[2] * sum[2];
    v = (v + (a->gray << (16 + n)) + (1 << (15 + n))) >> (16 + n);
    return (uint8_t)(v < 255 ? v : 255);
}

LW_ON_DEVICE void frame_pair(const lw_cuda_frames *a, uint8_t *frame, const float *rgb,
                             const frame_line *l, int64_t line, int64_t x)
{
    int64_t c = (x >> l->pair) * l->c_step;
    int n = l->pair + a->lines - 1;
    int32_t sum[3] = {0, 0, 0};
    for (int i = 0; i < a->lines; i++)
        for (int j = 0; j < 1 << l->pair; j++)
            for (int k = 0; k < 3; k++)
                sum[k] += frame_read(a, rgb, line + i, x + j, k);
    frame[l->u + c] = frame_difference(a, a->u_of, sum, n);
    frame[l->v + c] = frame_difference(a, a->v_of, sum, n);
}

/* A thread for each luma; that of the first pixel that shares differences makes these too. */
LW_KERNEL(rgb_to_frame, lw_cuda_frames, 256)
{
    int64_t wide = a.form == LW_PIXELS_YUYV ? (a.w + 1) / 2 * 2 : a.w;
    LW_EACH(e, a.n * a.h * wide)
    {
        int64_t x = e % wide, line = e / wide % a.h, b = e / wide / a.h;
        uint8_t *frame = a.frame + b * a.bytes;
        const float *rgb = (const float *)a.rgb + b * a.h * a.w * 3;
        frame_line l = frame_line_of(&a, line);
        int32_t v[3];
        for (int k = 0; k < 3; k++)
            v[k] = frame_read(&a, rgb, line, x, k);
        if (a.form == LW_PIXELS_RGB) {
            for (int k = 0; k < 3; k++)
                frame[(line * a.w + x) * 3 + k] = (uint8_t)v[k];
            continue;
        }
        frame[l.y + x * l.y_step] = frame_clip(a.y_of[0] * v[0] + a.y_of[1] * v[1] +
                                               a.y_of[2] * v[2] + (a.black << 16));
        if (a.form != LW_PIXELS_GRAY && line % a.lines == 0 && x % (1 << l.pair) == 0 && x < a.w)
            frame_pair(&a, frame, rgb, &l, line, x);
    }
}

/* ---- casts ----------------------------------------------------------------------------------- */

LW_ON_DEVICE uint8_t cast_u8(float v, float by, int32_t zero)
{
    float lo = (float)-zero, hi = (float)(255 - zero);
    v = v * by;
    v = v > lo ? v : lo; /* NaN too */
    v = v < hi ? v : hi;
    return (uint8_t)((int32_t)lrintf(v) + zero);
}

LW_ON_DEVICE uint32_t cast_four_u8(const float *x, float by, int32_t zero)
{
    return cast_u8(x[0], by, zero) | (uint32_t)cast_u8(x[1], by, zero) << 8 |
           (uint32_t)cast_u8(x[2], by, zero) << 16 | (uint32_t)cast_u8(x[3], by, zero) << 24;
}

/* A thread for four. */
LW_KERNEL(cast, lw_cuda_cast, 256)
{
    const bool from_bf16 = a.kind == LW_CUDA_TO_F32 || a.kind == LW_CUDA_BF16_TO_U8;
    const bool to_u8 = a.kind == LW_CUDA_TO_U8 || a.kind == LW_CUDA_BF16_TO_U8;
    const float by = to_u8 ? 1.0f / a.quant[0] : 1.0f;
    const int32_t zero = to_u8 ? (int32_t)a.quant[1] : 0;
    LW_EACH(q, (a.n + 3) / 4)
    {
        const int64_t e = q * 4;
        if (a.wide && e + 4 <= a.n) {
            float x[4];
            if (from_bf16)
                lw_read_bf16(x, (const uint16_t *)a.x + e, 4);
            else
                lw_read(x, (const float *)a.x + e, 4);
            if (a.kind == LW_CUDA_TO_F32)
                lw_write((float *)a.y + e, x, 4);
            else if (to_u8)
                ((uint32_t *)a.y)[q] = cast_four_u8(x, by, zero);
            else
                ((lw_words *)a.y)[q] = (lw_words){
                    {lw_bf16_bits(x[0]) | (uint32_t)lw_bf16_bits(x[1]) << 16,
                     lw_bf16_bits(x[2]) | (uint32_t)lw_bf16_bits(x[3]) << 16}};
            continue;
        }
        for (int64_t k = e; k < e + 4 && k < a.n; k++) {
            const float x = from_bf16 ? lw_bf16_to_float(((const uint16_t *)a.x)[k])
                                      : ((const float *)a.x)[k];
            if (a.kind == LW_CUDA_TO_F32)
                ((float *)a.y)[k] = x;
            else if (to_u8)
                ((uint8_t *)a.y)[k] = cast_u8(x, by, zero);
            else
                ((uint16_t *)a.y)[k] = lw_bf16_bits(x);
        }
    }
}
