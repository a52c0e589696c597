/* SPDX-License-Identifier: Apache-2.0 */
/* What products in f32 and in bf16 share: where their operands lie (a convolution is an implicit
 * GEMM), and the epilogue. */
#ifndef LW_CUDA_GATHER_H
#define LW_CUDA_GATHER_H

#include "backend/cuda/kernels/cuda_philox.h"
#include "backend/cuda/kernels/cuda_port.h"

typedef enum product_kind { PRODUCT_MATMUL, PRODUCT_CONV, PRODUCT_CONV_DX } product_kind;

/* Where element (row, k) of the left operand lies in x; -1: outside, a zero. A row is a pixel
 * (b, i, j) of the result. */
LW_ON_DEVICE int64_t product_left_at(const lw_cuda_product *a, const product_kind kind, int64_t row,
                                     int32_t k)
{
    if (kind == PRODUCT_MATMUL)
        return a->trans_x ? (int64_t)k * a->m + row : row * a->ldx + k;
    int32_t c = k % a->c, tap = k / a->c, kx = tap % a->kw, ky = tap / a->kw;
    int64_t pixels = (int64_t)a->oh * a->ow;
    /* short divisions are much shorter */
    int64_t b = row <= INT32_MAX ? (int32_t)row / (int32_t)pixels : row / pixels;
    int32_t at = (int32_t)(row - b * pixels), i = at / a->ow, j = at % a->ow;
    if (kind == PRODUCT_CONV) {
        i = i * a->stride - a->pad_t + ky;
        j = j * a->stride - a->pad_l + kx;
    } else {
        i += a->pad_t - ky;
        j += a->pad_l - kx;
        if (i < 0 || j < 0 || i % a->stride || j % a->stride)
            return -1;
        i /= a->stride;
        j /= a->stride;
    }
    if (i < 0 || j < 0 || i >= a->h || j >= a->width)
        return -1;
    return ((b * a->h + i) * a->width + j) * a->ldx + c;
}

/* Where element (k, column) of the weights lies. */
LW_ON_DEVICE int64_t product_right_at(const lw_cuda_product *a, const product_kind kind, int32_t k,
                                      int32_t column)
{
    if (kind == PRODUCT_CONV_DX) { /* [o][kh][kw][n]: k counts taps, then o */
        int32_t o = k % a->c, tap = k / a->c;
        return ((int64_t)o * a->kh * a->kw + tap) * a->n + column;
    }
    return kind == PRODUCT_CONV || a->trans_w ? (int64_t)column * a->k + k
                                              : (int64_t)k * a->n + column;
}

/* Where it lies when packed: a column's elements of K side by side. For halo tiles (cuda_halo.h)
 * the layout is that in which weights are fetched: 64 columns by 64 channels of a tap in one piece,
 * swizzled, all taps of a chunk of channels one behind the other, then the next chunk. */
LW_ON_DEVICE int64_t product_packed_at(const lw_cuda_product *a, int32_t column, int32_t k)
{
    if (!a->image)
        return (int64_t)column * a->w_pitch + k;
    int32_t c = k % a->c, tap = k / a->c, row = column % 64, taps = a->kh * a->kw;
    int64_t block = ((int64_t)(column / 64) * (a->c / 64) + c / 64) * taps + tap;
    return block * 4096 + row * 64 + (c / 8 % 8 ^ row % 8) * 8 + c % 8;
}

/* Dropout; rows have ids. */
LW_ON_DEVICE float product_drop(const lw_cuda_product *a, int64_t row, int32_t column, float sum)
{
    int64_t e = row % a->drop_rows * a->n + column;
    uint32_t key[2];
    lw_philox_key(key, a->tick->seed, a->drop_stream);
    uint32_t word = lw_philox_word(key, a->tick->step, (uint64_t)a->ids[row / a->drop_rows], e);
    return word >= a->drop_limit ? sum * a->drop_scale : 0.0f;
}

LW_ON_DEVICE float product_residual(const lw_cuda_product *a, int64_t row, int32_t column)
{
    int64_t at = row * a->ld_residual + column;
    return a->residual_narrow ? lw_bf16_to_float(((const uint16_t *)a->residual)[at])
                              : ((const float *)a->residual)[at];
}

/* Four neighbouring elements of an operand that is added, f32 or bf16. */
LW_ON_DEVICE lw_four product_four(const void *p, bool narrow, int64_t at)
{
    lw_four v;
    if (narrow)
        lw_read_bf16(v.v, (const uint16_t *)p + at, 4);
    else
        v = lw_four_floats((const float *)p + at);
    return v;
}

LW_ON_DEVICE void product_finish(const lw_cuda_product *a, const product_kind kind, int64_t row,
                                 int32_t column, float sum)
{
    if (a->bias)
        sum += a->bias[column];
    if (a->image_bias)
        sum += a->image_bias[row / ((int64_t)a->oh * a->ow) * a->n + column];
    if (kind == PRODUCT_MATMUL && a->drop_rows)
        sum = product_drop(a, row, column, sum);
    if (a->residual)
        sum += product_residual(a, row, column);
    sum = lw_activate(sum, a->act);
    if (a->store)
        ((uint16_t *)a->y)[row * a->ldy + column] = lw_bf16_bits(sum);
    else
        ((float *)a->y)[row * a->ldy + column] = sum;
}

/* The end of the epilogue for four neighbours of each of n rows (-1: none): dropout, what follows
 * it, and the store; v has everything before. The first neighbour is at a multiple of four, where
 * all rows begin. */
LW_ON_DEVICE void product_write_fours(const lw_cuda_product *a, const int32_t *row, int32_t column,
                                      lw_four *v, const int n)
{
    if (a->drop_rows) {
        LW_UNROLL
        for (int i = 0; i < n; i++) {
            int32_t r = row[i] < 0 ? 0 : row[i];
            LW_ROLLED
            for (int k = 0; k < 4; k++) { /* long code is there once: v goes round */
                float first = product_drop(a, r, column + k, v[i].v[0]);
                v[i] = (lw_four){{v[i].v[1], v[i].v[2], v[i].v[3], first}};
            }
            if (a->residual)
                lw_four_add(&v[i], product_four(a->residual, a->residual_narrow,
                                                (int64_t)r * a->ld_residual + column));
        }
    }
    if (a->act == 3) {
        LW_UNROLL
        for (int i = 0; i < n; i++)
            LW_UNROLL
        for (int k = 0; k < 4; k++)
            v[i].v[k] = lw_gelu(v[i].v[k]);
    } else if (a->act == 2) {
        LW_UNROLL
        for (int i = 0; i < n; i++)
            LW_UNROLL
        for (int k = 0; k < 4; k++)
            v[i].v[k] = lw_gate(v[i].v[k], v[i].v[k]);
    } else if (a->act) {
        LW_UNROLL
        for (int i = 0; i < n; i++) {
            LW_ROLLED
            for (int k = 0; k < 4; k++) {
                float first = lw_activate(v[i].v[0], a->act);
                v[i] = (lw_four){{v[i].v[1], v[i].v[2], v[i].v[3], first}};
            }
        }
    }
    LW_UNROLL
    for (int i = 0; i < n; i++) {
        if (row[i] < 0)
            continue;
        if (a->store)
            lw_write_bf16((uint16_t *)a->y + (int64_t)row[i] * a->ldy + column, v[i].v, 4);
        else
            lw_write((float *)a->y + (int64_t)row[i] * a->ldy + column, v[i].v, 4);
    }
}

#endif
