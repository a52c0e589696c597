/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm: dense products for linear layers, forward and backward: f32, bf16 and int8 operands, results of
 * f32, or of bf16 from operands that are not f32.
 *
 *   forward      C[M][N]  = act( A[M][K] . Bp  (+ C) + bias[N] + residual[M][N] )
 *   data grad    the same kernel: dX[M][K] = dY[M][N] . W packed the other way round
 *   weight grad  dW[N][K] (+)= dY[M][N]^T X[M][K],  db[N] (+)= column sums of dY
 *
 * Weights are packed once per weight version into panels of a few vectors of columns
 * ([N/NR][K][NR], NR is the ISA's affair); activations are read in place. Rows of A, C, dY, X and
 * the residual have pitches (floats between rows), so slices of wider buffers work as they are.
 *
 *   linear weight W[N out][K in], row-major:
 *     forward:    pack(p, W, N, K, K, 1, task)   then forward(Y, .., X, .., p, M, N, K, ..)
 *     data grad:  pack(p, W, K, N, 1, K, task)   then forward(dX, .., dY, .., p, M, K, N, ..)
 *
 * Work is cut into tasks, numbered from 0; the number of tasks is a pure function of the
 * shape, the type and the level.
 * Tasks are independent, may run in any order and on any thread. Every output element is one chain
 * of fused multiply-adds over k = 0..K-1 in order (of vector lanes, summed at the end, when N <=
 * 4), so its bits depend on its own row, N and K and the ISA level only: never on M, the task or
 * the thread. Weight gradients depend on M too (fixed chunks of rows).
 *
 * Reduced precision (enum lw_num): the same products, shapes, tasks, epilogue and promises from
 * operands of bf16 (f32 sums), or of u8 and s8 (exact integer sums). The machine reads operands in
 * 32-bit words: K is a multiple of lw_num_per_word, rows of A, dY and X start at multiples of 4
 * bytes and so do their pitches (in elements of their own type). lw_num_fits says whether. dY and X
 * of a weight gradient need none of that, but must be finite. At the level ref, packed weights are
 * plain copies. At avx512bf16 and amx the hardware takes denormal bf16 and sums as 0, and amx sums 16
 * words apart before it adds them to an element's chain (of a tap, of a matrix row: the last are
 * fewer). Products of at most 4 columns have no narrow form here: f32 is as fast. A product of bf16 or u8 may
 * write bf16 (epilogue's store): what a cast would make of its f32, but for denormals (0 at those
 * levels) and curves, which are approximated to 5e-5 (simd_act.h). Sums of bytes are exact, and their
 * results have the same bits at every level but ref.
 *
 * Cost: 2 M N K FLOP a product; A, C and the packed weights pass memory once. Linear layers reach
 * 84 to 98 % of one thread's peak (docs/performance-zen4.md); few rows are bound by reading weights.
 *
 * Files, to be read in this order. Every X_body.inc is compiled for each level by the three lines of
 * X_<level>.c; conv uses the same tiles.
 *
 *   gemm_shape.h .c  gemm_wgrad_shape.c    how work is cut into tasks
 *   gemm_tile.h                            the two register tiles and packed panels
 *     gemm_elem_f32.h  _bf16.h  _u8.h      what a 32-bit word holds; one comes before a tile's body (_s16.h: before tile.h; _whole.h: what it shares)
 *     gemm_tile_body.inc                   row tile: gathered rows times a panel
 *     gemm_tile_amx.h  _amx_body.inc       the same on tile registers; of LW_NUM_BF16X3, which splits
 *                                          rows, in gemm_tile_bf16x3_amx.c
 *     gemm_dot_body.inc                    the same for at most 4 columns: vectors along k
 *     gemm_rank_body.inc                   rank tile: sums of outer products (weight gradients)
 *     gemm_pack_body.inc                   weights into panels
 *   gemm_job.h  gemm_body.inc              the products of this header over these tiles, f32
 *     gemm_low_body.inc  _bytes_body.inc   in low precision: bf16, u8 x s8
 *   gemm_wgrad.h  gemm_wgrad_body.inc      weight gradients of gemm and conv, f32
 *     gemm_wgrad_bf16_body.inc  _amx.c     and of bf16; on tile registers
 *   gemm_ref.h .inc  gemm_ref.c            the references in plain C
 *     gemm_bf16_ref.c  gemm_u8_ref.c
 */
#ifndef LW_KERNELS_GEMM_H
#define LW_KERNELS_GEMM_H

#include "base/base.h"

/* Dropout of a product's sums: each is kept when its element is drawn at or above p, and divided by
 * 1 - p (kernels/random/random.h). Every `per` rows of the output are one row of draws. */
typedef struct lw_drop {
    lw_rng_key key;
    uint32_t step;
    float p;              /* 0 <= p < 1 */
    ptrdiff_t per, width; /* width: N */
    const int64_t *ids;   /* [M / per] */
} lw_drop;

/*
 * What happens to a finished sum s before it is stored, in this order:
 *   s (+ old output if accumulate) + bias[n] + image_bias[b][n], drop, + residual[m][n], then act.
 *
 * A zeroed struct stores s as it is. None of the inputs may overlap the output (to add to the
 * output in place use accumulate).
 */
typedef struct lw_epilogue {
    const float *bias;       /* [N] or NULL */
    const float *image_bias; /* [B][N] or NULL: a row per image (convolution only), e.g. of time */
    ptrdiff_t ld_image_bias; /* floats between its rows */
    const float *residual;   /* [M][N] or NULL (M = output pixels for a convolution) */
    const lw_bf16 *residual_low; /* the same in bf16, of operands of bf16 or u8; one of the two */
    ptrdiff_t ld_residual;       /* elements between rows of either */
    int accumulate;              /* 1: the old output is added (beta 1); 0: it is not read */
    lw_act act;
    const lw_drop *drop; /* or NULL; matrix products of N % 4 == 0, N > 4 only */
    /* Of operands of bf16 or u8, not with accumulate: LW_NUM_BF16, the output is rows of bf16; LW_NUM_S8, of u8, the bytes that
     * lw_cast_f32_to_u8 makes of it. Curves are then approximated, by less than either rounds (v_curve_low). */
    lw_num store;
    const float *store_pair; /* with LW_NUM_S8: {scale, zero point} */
} lw_epilogue;
/* What is left of act where bytes are written: from 0 on they hold nothing below 0 anyway. */
static inline lw_act lw_epilogue_act(const lw_epilogue *e)
{
    const bool from_0 = e->store == LW_NUM_S8 && e->store_pair[1] == 0.0f;
    return from_0 && e->act == LW_ACT_RELU ? LW_ACT_NONE : e->act;
}

/*
 * LW_NUM_BF16X3. An f32 x is x0 + x1 + x2, each the bf16 nearest to what those before it leave: 24 bits in
 * three times 8, and the signs. Of the nine products of two such sums six count,
 *
 *   x0 y0 + (x0 y1 + x1 y0) + (x1 y1 + x0 y2 + x2 y0),
 *
 * those left out are below 2^-26 of x y: as products of bf16 are exact in f32, sums of these are off by what rounding
 * sums does, as sums of f32 products are. Tile registers (amx) do so three times as fast as vectors multiply f32.
 * Numbers beyond 3.38e38 count as infinite, an infinite operand gives NaN, and parts below 1.2e-38 count as 0.
 *
 * Rows are of words, 48 for every 32 numbers or part of them: 16 words of x0, then of x1, then of x2.
 * Source: Henry, Tang, Heinecke, "Leveraging the bfloat16 artificial intelligence datatype for higher-precision
 * computations", arXiv:1904.06376.
 */
enum { LW_BF16X3_NUMBERS = 32, LW_BF16X3_WORDS = 48 };
/* n numbers to such words; zeros behind them. */
typedef void lw_bf16x3_split_fn(float *to, const float *from, ptrdiff_t n);
lw_bf16x3_split_fn lw_bf16x3_split_amx;
/* Whether products of K numbers, N results of a row and so many rows of a sample are multiplied so at this level. Measured: of 32
 * numbers and 32 results .5 to 1 times as fast as vectors, of 64 and 64 .9 to 1.4, of 128 and more 1.4 to 2.2; where rows are few,
 * reading weights decides, which take half as much again. */
static inline bool lw_bf16x3_pays(lw_isa isa, ptrdiff_t K, ptrdiff_t N, ptrdiff_t rows)
{
    enum { NUMBERS = 64, RESULTS = 64, ROWS = 16 };
    return isa >= LW_ISA_AMX && K >= NUMBERS && N >= RESULTS && rows >= ROWS;
}

/* Elements in a 32-bit word: 1, 2 or 4. */
static inline ptrdiff_t lw_num_per_word(lw_num num)
{
    return num == LW_NUM_BF16 ? 2 : num == LW_NUM_S8 ? 4 : 1;
}
/* Words of a row of n numbers. */
static inline ptrdiff_t lw_num_words(lw_num num, ptrdiff_t n)
{
    return num == LW_NUM_BF16X3 ? LW_CEIL_DIV(n, LW_BF16X3_NUMBERS) * LW_BF16X3_WORDS
                                : n / lw_num_per_word(num);
}
/* Whether a product of this depth over operands of this pitch may be computed in `num`: K, or the
 * channels of one tap (C forward, O for the data gradient), and elements between rows or pixels. */
static inline bool lw_num_fits(lw_num num, ptrdiff_t depth, ptrdiff_t pitch)
{
    return depth % lw_num_per_word(num) == 0 && pitch % lw_num_per_word(num) == 0;
}

/* How bytes stand for numbers: a = a_scale * (u8 - a_zero), weight = b_scale[n] * s8. */
typedef struct lw_quant {
    float a_scale;
    int32_t a_zero;       /* 0..255 */
    const float *b_scale; /* [N], the scales that the weights were packed with */
} lw_quant;

/* Bytes that a packed [N][K] operand may take (upper bound over ISA levels). Packing takes
 * lw_gemm_pack_tasks in every type. */
size_t lw_gemm_packed_bytes(lw_num num, ptrdiff_t N, ptrdiff_t K);
/* Floats that a packed [N][K] operand may take (upper bound over ISA levels), and tasks to
 * pack it. */
int64_t lw_gemm_packed_floats(ptrdiff_t N, ptrdiff_t K);
int64_t lw_gemm_pack_tasks(ptrdiff_t N, ptrdiff_t K);
/* Of a product of operands of a type at a level. */
int64_t lw_gemm_tasks(lw_isa isa, lw_num num, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K);
/*
 * Weight gradient: first all `tasks` of weight_grad, then (a barrier) all `combine_tasks` of
 * weight_grad_combine. `partial_floats` of memory is shared by all tasks of both. combine_tasks and
 * partial_floats are 0 when one pass does it all.
 */
int64_t lw_gemm_weight_grad_tasks(ptrdiff_t M, ptrdiff_t N, ptrdiff_t K);
int64_t lw_gemm_weight_grad_partial_floats(ptrdiff_t M, ptrdiff_t N, ptrdiff_t K);
int64_t lw_gemm_weight_grad_combine_tasks(ptrdiff_t M, ptrdiff_t N, ptrdiff_t K);

/* packed <- B, element (n, k) at b[n * stride_n + k * stride_k]; task of lw_gemm_pack_tasks(N, K).
 * packed is 64-byte aligned. */
typedef void lw_gemm_pack_fn(float *packed, const float *b, ptrdiff_t N, ptrdiff_t K,
                             ptrdiff_t stride_n, ptrdiff_t stride_k, int64_t task);

/* c[m * ldc + n] = epilogue(sum_k a[m * lda + k] * B(n, k)); task of lw_gemm_tasks.
 * `e` may be NULL (plain store). */
typedef void lw_gemm_forward_fn(float *c, ptrdiff_t ldc, const float *a, ptrdiff_t lda,
                                const float *packed, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K,
                                const lw_epilogue *e, int64_t task);

/* dw[n * K + k] (+)= sum_m dy[m * lddy + n] * x[m * ldx + k]; db[n] (+)= sum_m dy[m * lddy + n], db
 * may be NULL. accumulate: 1 adds to dw and db, 0 overwrites them. */
typedef void lw_gemm_weight_grad_fn(float *dw, float *db, const float *dy, ptrdiff_t lddy,
                                    const float *x, ptrdiff_t ldx, ptrdiff_t M, ptrdiff_t N,
                                    ptrdiff_t K, int accumulate, float *partials, int64_t task);
/* Adds the partial sums in fixed order; the same dw, db, M, N, K, accumulate and partials
 * as above. */
typedef void lw_gemm_weight_grad_combine_fn(float *dw, float *db, ptrdiff_t M, ptrdiff_t N,
                                            ptrdiff_t K, int accumulate, const float *partials,
                                            int64_t task);

/* As pack, forward and weight_grad, for bf16 operands; pack rounds. c is rows of floats, or of bf16
 * where the epilogue says so (ldc in elements of it), here and with u8. Weight gradients share tasks,
 * partials and weight_grad_combine with f32; db is the sum of the rounded dy. */
typedef void lw_gemm_pack_bf16_fn(void *packed, const float *b, ptrdiff_t N, ptrdiff_t K,
                                  ptrdiff_t stride_n, ptrdiff_t stride_k, int64_t task);
typedef void lw_gemm_forward_bf16_fn(void *c, ptrdiff_t ldc, const lw_bf16 *a, ptrdiff_t lda,
                                     const void *packed, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K,
                                     const lw_epilogue *e, int64_t task);
typedef void lw_gemm_weight_grad_bf16_fn(float *dw, float *db, const lw_bf16 *dy, ptrdiff_t lddy,
                                         const lw_bf16 *x, ptrdiff_t ldx, ptrdiff_t M, ptrdiff_t N,
                                         ptrdiff_t K, int accumulate, float *partials,
                                         int64_t task);

/* packed <- round(b / scale[n]) to nearest even, kept within -127..127 (0 where scale[n] is 0), and
 * the sums of its columns. */
typedef void lw_gemm_pack_s8_fn(void *packed, const float *b, ptrdiff_t N, ptrdiff_t K,
                                ptrdiff_t stride_n, ptrdiff_t stride_k, const float *scale,
                                int64_t task);
/* c = epilogue(a_scale * b_scale[n] * sum_k (a[m][k] - a_zero) * B(n, k)); the sum is exact for K <
 * 2^16. */
typedef void lw_gemm_forward_u8_fn(void *c, ptrdiff_t ldc, const uint8_t *a, ptrdiff_t lda,
                                   const void *packed, const lw_quant *q, ptrdiff_t M, ptrdiff_t N,
                                   ptrdiff_t K, const lw_epilogue *e, int64_t task);

/* As pack and forward, of f32 operands multiplied as LW_NUM_BF16X3; N > 4. At the level amx alone. */
typedef lw_gemm_pack_bf16_fn lw_gemm_pack_bf16x3_fn;
typedef void lw_gemm_forward_bf16x3_fn(float *c, ptrdiff_t ldc, const float *a, ptrdiff_t lda,
                                       const void *packed, ptrdiff_t M, ptrdiff_t N, ptrdiff_t K,
                                       const lw_epilogue *e, int64_t task);

struct lw_gemm_kernels {
    lw_gemm_pack_fn *pack;
    lw_gemm_forward_fn *forward;
    lw_gemm_weight_grad_fn *weight_grad;
    lw_gemm_weight_grad_combine_fn *weight_grad_combine;
    lw_gemm_pack_bf16_fn *pack_bf16;
    lw_gemm_forward_bf16_fn *forward_bf16;
    lw_gemm_weight_grad_bf16_fn *weight_grad_bf16;
    lw_gemm_pack_s8_fn *pack_s8;
    lw_gemm_forward_u8_fn *forward_u8;
    lw_gemm_pack_bf16x3_fn *pack_bf16x3;
    lw_gemm_forward_bf16x3_fn *forward_bf16x3;
};

#define K(family, isa, field, function) __typeof__(*((struct lw_gemm_kernels *)0)->field) function;
#include "kernels/gemm/gemm.def"
#undef K

#endif
