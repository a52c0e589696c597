/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv: 2-D convolution, channels last: f32, bf16 and int8 operands, results of f32, or of bf16 from operands that are
 * not f32 (the epilogue's store).
 *
 *   x [B][H][W][C]   pixel pitch ldx >= C      w [O][KH][KW][C] dense ("OHWI")
 *   y [B][OH][OW][O] pixel pitch ldy >= O      bias [O]
 *   y[b,oy,ox,o] = sum over ky, kx, c of
 *                    x[b, oy*stride - pad_top + ky, ox*stride - pad_left + kx, c] * w[o,ky,kx,c]
 *                  (taps outside the image count as 0)
 *
 * forward, data gradient (dx from dy) and weight gradient (dw, db from x and dy). Forward and data
 * gradient read packed weights, one packing per pass, made by `pack` once per weight version.
 * Borders are skipped, not padded; the data gradient of stride 2 runs one small convolution per
 * output parity.
 *
 * Work is cut into tasks, numbered from 0; the number of tasks is a pure function of the
 * shape, the type and the level.
 * Tasks are independent, may run in any order and on any thread, and aim at 10-150 us. Every
 * element of y and dx is one chain of fused multiply-adds in a fixed order over taps and channels
 * (of vector lanes, summed at the end, where at most 4 channels are produced): its bits depend on
 * the per-image shape and ISA level only, never on B, pitches, neighbours, task or thread. dw and
 * db depend on B too (fixed chunks of images, added in fixed order). Weights must be finite: taps
 * outside an image may be added as 0 * w.
 *
 * Reduced precision: as in gemm.h. C (O for the data gradient) and the pitch of the images that are
 * read satisfy lw_num_fits. Pitches count elements of the array's own type.
 *
 * Source of the method: direct convolution as a matrix product with implicit gathering of rows
 * (Dukhan, "The indirect convolution algorithm", arXiv:1907.02129).
 *
 * Cost: 2 KH KW C FLOP an output element, nominally (skipped taps count). One thread reaches 89 to
 * 104 % of the peak from 16 channels and 8 x 8 pixels on, up to 135 % where most taps are skipped,
 * 50 to 64 % with 3 channels (docs/performance-zen4.md); Winograd's tiles need up to 3.3 times less
 * time.
 */
#ifndef LW_KERNELS_CONV_H
#define LW_KERNELS_CONV_H

#include "base/base.h"
#include "kernels/gemm/gemm.h"

typedef struct lw_conv_shape {
    int32_t B, H, W, C; /* input images */
    int32_t O, KH, KW;  /* filters */
    int32_t stride;     /* both directions, >= 1 */
    int32_t pad_top, pad_left, pad_bottom, pad_right;
    int32_t OH, OW;     /* output size, filled by lw_conv_shape_init */
    ptrdiff_t ldx, ldy; /* floats between pixels of x (and dx), y (and dy); else dense */
    /* Of a data gradient: its filters are those of lw_upconv_weight. lw_rescale_applies alone asks. */
    bool upsampling;
} lw_conv_shape;

/* Computes OH and OW ((H + pads - KH) / stride + 1) and, where 0, ldx = C and ldy = O.
 * LW_ESHAPE when a size is not positive or the filter is larger than the padded image. */
int lw_conv_shape_init(lw_conv_shape *s);

typedef enum lw_conv_pass { LW_CONV_FORWARD, LW_CONV_DATA_GRAD } lw_conv_pass;

/* Bytes of the packed weights of a pass. Tasks are those of f32. */
size_t lw_conv_packed_bytes(lw_num num, const lw_conv_shape *s, lw_conv_pass pass);
/* Floats of the packed weights of a pass (B, H, W, ldx, ldy do not matter), and tasks to
 * pack them. */
int64_t lw_conv_packed_floats(const lw_conv_shape *s, lw_conv_pass pass);
int64_t lw_conv_pack_tasks(const lw_conv_shape *s, lw_conv_pass pass);
/* Tasks of forward / data_grad. They need no scratch memory. */
int64_t lw_conv_tasks(lw_isa isa, lw_num num, const lw_conv_shape *s, lw_conv_pass pass);
/*
 * Tile registers want the rows that they multiply at even distances. Where such a pass copies each picture once, with
 * borders, for all tasks (else each copies the lines that it reads), this is true and *bordered the convolution of the
 * copy, without padding: of the same weights, results and bits.
 *
 *   lines of whole tiles:  [B][pads + H][pads + W][C], a number of OW that fills tiles
 *   others:                [B][pads + H][OW][KW * C], each pixel with its neighbours, so that lines follow one another
 *
 * The copy takes bordered_bytes, 64-byte aligned, and is made by border, in border_tasks. fill: the byte that is 0.
 */
bool lw_conv_bordered(lw_isa isa, lw_num num, const lw_conv_shape *s, lw_conv_shape *bordered);
size_t lw_conv_bordered_bytes(lw_num num, const lw_conv_shape *bordered);
int64_t lw_conv_border_tasks(lw_num num, const lw_conv_shape *bordered);
void lw_conv_border(void *to, const void *x, lw_num num, const lw_conv_shape *s,
                    const lw_conv_shape *bordered, int fill, int64_t task);
/* Weight gradient: as in gemm.h: all tasks, barrier, all combine tasks (may be 0). */
int64_t lw_conv_weight_grad_tasks(const lw_conv_shape *s);
int64_t lw_conv_weight_grad_partial_floats(const lw_conv_shape *s);
int64_t lw_conv_weight_grad_combine_tasks(const lw_conv_shape *s);

/* packed (64-byte aligned) <- w [O][KH][KW][C] for the pass. */
typedef void lw_conv_pack_fn(float *packed, const float *w, const lw_conv_shape *s,
                             lw_conv_pass pass, int64_t task);
/* y = epilogue(x * w); packed for LW_CONV_FORWARD; `e` may be NULL. Residual rows are output
 * pixels. */
typedef void lw_conv_forward_fn(float *y, const float *x, const float *packed,
                                const lw_conv_shape *s, const lw_epilogue *e, int64_t task);
/* dx = epilogue(sum over o and taps of dy * w); packed for LW_CONV_DATA_GRAD. Pixels of dx that no
 * output reads get a sum of 0. In the epilogue N = C and rows are input pixels. */
typedef void lw_conv_data_grad_fn(float *dx, const float *dy, const float *packed,
                                  const lw_conv_shape *s, const lw_epilogue *e, int64_t task);
/* dw [O][KH][KW][C] (+)= ..., db [O] (+)= sum of dy (NULL: not wanted). accumulate 1 adds. */
typedef void lw_conv_weight_grad_fn(float *dw, float *db, const float *dy, const float *x,
                                    const lw_conv_shape *s, int accumulate, float *partials,
                                    int64_t task);
typedef void lw_conv_weight_grad_combine_fn(float *dw, float *db, const lw_conv_shape *s,
                                            int accumulate, const float *partials, int64_t task);

/* As pack, forward, data_grad and weight_grad, for bf16 operands; pack rounds. Weight gradients
 * share tasks, partials and weight_grad_combine with f32; db is the sum of the rounded dy. */
typedef void lw_conv_pack_bf16_fn(void *packed, const float *w, const lw_conv_shape *s,
                                  lw_conv_pass pass, int64_t task);
typedef void lw_conv_forward_bf16_fn(void *y, const lw_bf16 *x, const void *packed,
                                     const lw_conv_shape *s, const lw_epilogue *e, int64_t task);
typedef void lw_conv_data_grad_bf16_fn(void *dx, const lw_bf16 *dy, const void *packed,
                                       const lw_conv_shape *s, const lw_epilogue *e, int64_t task);
typedef void lw_conv_weight_grad_bf16_fn(float *dw, float *db, const lw_bf16 *dy, const lw_bf16 *x,
                                         const lw_conv_shape *s, int accumulate, float *partials,
                                         int64_t task);

/* packed <- w for the pass, rounded as in gemm.h with the scale of each channel that the pass
 * makes: scale[O] of the forward pass, scale[C] of the data gradient. */
typedef void lw_conv_pack_s8_fn(void *packed, const float *w, const lw_conv_shape *s,
                                lw_conv_pass pass, const float *scale, int64_t task);
/* y = epilogue(x * w), u8 images; taps outside an image count as the real number 0. */
typedef void lw_conv_forward_u8_fn(void *y, const uint8_t *x, const void *packed, const lw_quant *q,
                                   const lw_conv_shape *s, const lw_epilogue *e, int64_t task);
/* As data_grad, for u8: a transposed convolution in inference. */
typedef void lw_conv_data_grad_u8_fn(void *dx, const uint8_t *dy, const void *packed,
                                     const lw_quant *q, const lw_conv_shape *s,
                                     const lw_epilogue *e, int64_t task);

/* As pack, forward and data_grad, of f32 operands multiplied as LW_NUM_BF16X3 (gemm.h). At the level amx alone, of
 * shapes that fit: the lines that a line of output reads are split in a part of the second cache. pays: the rule. */
bool lw_conv_bf16x3_fits(const lw_conv_shape *s, lw_conv_pass pass);
bool lw_conv_bf16x3_pays(lw_isa isa, const lw_conv_shape *s, lw_conv_pass pass);
typedef lw_conv_pack_bf16_fn lw_conv_pack_bf16x3_fn;
typedef void lw_conv_forward_bf16x3_fn(float *y, const float *x, const void *packed,
                                       const lw_conv_shape *s, const lw_epilogue *e, int64_t task);
typedef void lw_conv_data_grad_bf16x3_fn(float *dx, const float *dy, const void *packed,
                                         const lw_conv_shape *s, const lw_epilogue *e,
                                         int64_t task);

struct lw_conv_kernels {
    lw_conv_pack_fn *pack;
    lw_conv_forward_fn *forward;
    lw_conv_data_grad_fn *data_grad;
    lw_conv_weight_grad_fn *weight_grad;
    lw_conv_weight_grad_combine_fn *weight_grad_combine;
    lw_conv_pack_bf16_fn *pack_bf16;
    lw_conv_forward_bf16_fn *forward_bf16;
    lw_conv_data_grad_bf16_fn *data_grad_bf16;
    lw_conv_weight_grad_bf16_fn *weight_grad_bf16;
    lw_conv_pack_s8_fn *pack_s8;
    lw_conv_forward_u8_fn *forward_u8;
    lw_conv_data_grad_u8_fn *data_grad_u8;
    lw_conv_pack_bf16x3_fn *pack_bf16x3;
    lw_conv_forward_bf16x3_fn *forward_bf16x3;
    lw_conv_data_grad_bf16x3_fn *data_grad_bf16x3;
};

#define K(family, isa, field, function) __typeof__(*((struct lw_conv_kernels *)0)->field) function;
#include "kernels/conv/conv.def"
#undef K

#endif
