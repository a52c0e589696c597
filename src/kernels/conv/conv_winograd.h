/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Winograd's minimal filtering for 3x3 convolutions of stride 1: an image is cut
 * into tiles of 4x4 or 2x2 outputs, F(4x4,3x3) and F(2x2,3x3). A tile's 6x6 (4x4) inputs and every
 * filter are transformed, multiplied point by point (36 or 16 small matrix products over channels),
 * and transformed back: 36 instead of 144 multiplications per tile and channel pair, or 16 instead
 * of 36. The price is rounding: see conv_winograd_points.h for the bound.
 *
 * Operands are f32, u8 and s8, or bf16. Of bytes, in F(4x4) and forward alone, nothing is rounded: points are s16 and sums
 * s32, modulo 2^32, and out come the sums, and with any epilogue the bits, of the direct kernels of bytes (conv.h).
 * Of bf16, inputs are bf16 in memory, transforms f32, their results
 * rounded to bf16 once, products of pairs with f32 sums. F(2x2) multiplies by no constant but 1/2, so
 * that the rounding of the points is all it adds: relative errors 1.8 times those of a direct bf16
 * convolution. F(4x4)'s are 1.6 times those of F(2x2) where pictures are smooth, 2.8 times of noise: sizes of points differ a
 * hundredfold, which numbers with an exponent do not mind.
 *
 * 5x5 kernels have F(2x2,5x5) over the points of F(4x4,3x3), 36 instead of 100 multiplications. Kernels of one line, 1x3, 3x1,
 * 1x7 and 7x1, are cut into tiles of four outputs of a row or a column, F(4,3) and F(4,7) of one
 * dimension: 6 instead of 12, and 10 instead of 28. Both f32 alone. Errors of 7 taps are two to three times those of
 * F(4x4,3x3).
 *
 * Forward and data gradient are the same computation: the gradient swaps C and O and turns the
 * filters by half a turn, which `pack` does. Everything said in conv.h about tasks, bits and
 * epilogues holds here too: the bits of an output depend on its image, the weights and the ISA
 * level only.
 *
 * Source: Lavin and Gray, "Fast algorithms for convolutional neural networks", arXiv:1509.09308;
 * Winograd, "Arithmetic complexity of computations" (1980).
 */
#ifndef LW_KERNELS_CONV_WINOGRAD_H
#define LW_KERNELS_CONV_WINOGRAD_H

#include "kernels/conv/conv.h"

enum { LW_WINOGRAD_MAX_DEPTH = 4096, LW_WINOGRAD_MAX_DEPTH_U8 = 1840 }; /* channels summed over */

/* Other kernels' tiles are forward and data gradients of f32 alone. */
static inline bool lw_winograd_is_3x3(const lw_conv_shape *s)
{
    return s->KH == 3 && s->KW == 3;
}
/* May the pass of this convolution be computed with tiles? 3x3, 5x5 or a line, stride 1, pads shorter than the kernel, channels in
 * range. */
bool lw_winograd_applies(const lw_conv_shape *s, lw_conv_pass pass);
/* Side of the tiles to use (4 or 2; s8: 4; 5x5: 2; lines: 4), or 0 for the direct kernels. A pure function of the type,
 * the shape of one image, the level and the mode: see conv_winograd_rule.c. */
int lw_winograd_tile(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, lw_isa isa,
                     lw_conv_mode mode);

/*
 * `tile` below is such a side, or what this makes of it, of f32 and u8; the same bits:
 *
 *   0                   of u8: directly, where weights come from memory for one tile (of all images; eight at avx512bf16)
 *   LW_WINOGRAD_PLAIN   f32: filters are packed as they are, 9 instead of 36 or 16 numbers, and transformed on the way to the
 *                       products. That is slower from a cache, and faster where weights come from memory for a few
 *                       tiles (of all images).
 *   LW_WINOGRAD_ALONE   blocks of tiles are tasks of all columns and transform their inputs themselves: half as many tasks,
 *                       but the transformed inputs, nine quarters of the inputs, stay in a core's second cache instead of
 *                       going through a third one that does not hold them (AVX2).
 *   LW_WINOGRAD_NARROW  where tasks are few they are of 16 columns instead of 32: twice as many, each reads its rows for
 *                       half as many columns (AVX2, whose panels are that narrow).
 */
enum { LW_WINOGRAD_PLAIN = 8, LW_WINOGRAD_ALONE = 16, LW_WINOGRAD_NARROW = 32 };
int lw_winograd_layout(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, lw_isa isa, int tile);

/* A measured choice instead of the rule's: how one picture's convolution is computed. */
typedef struct lw_conv_choice {
    lw_num num;
    lw_conv_pass pass;
    int32_t C, O, H, W;
    int tile; /* as lw_winograd_tile gives it */
} lw_conv_choice;
typedef struct lw_conv_choices {
    const lw_conv_choice *row; /* borrowed */
    int n;
} lw_conv_choices;
/* Its 3x3 convolution of one picture, with pads of 1, for lw_conv_shape_init. */
lw_conv_shape lw_conv_choice_shape(const lw_conv_choice *c);
/* What the rule says of it, whatever its `tile` is. */
int lw_conv_choice_rule(const lw_conv_choice *c, lw_isa isa);
bool lw_conv_choice_same(const lw_conv_choice *a, const lw_conv_choice *b); /* but for the tile */
/* The rule's answer, or that of the first row for this shape. Rows are looked at under mode auto only. */
int lw_winograd_tile_of(const lw_conv_choices *chosen, lw_num num, const lw_conv_shape *s,
                        lw_conv_pass pass, lw_isa isa, lw_conv_mode mode);

/*
 * 32-bit words (a float, two bf16 or two s16; of bytes with an s32 sum for each filter behind them) of the transformed
 * weights, tasks to make them; words that all tasks share; tasks
 * that transform inputs to there (0: each task of the convolution its own, in scratch), then tasks that leave products
 * there (0: it multiplies itself); tasks of the convolution and scratch words that each worker needs. bf16 wants
 * an even depth.
 *
 * Few tiles are few tasks, and each would read all weights for a dozen rows. So where blocks of tiles
 * alone do not keep 64 threads busy, inputs are transformed once for all, and tasks are cut by columns
 * too, which costs no transform twice then; a block may be four times as tall, and weights are read
 * less often. Of a handful of tiles, which one picture of 8 x 8 pixels has, even that is few tasks: there the
 * points of a tile, whose products have nothing to do with each other, are divided too.
 */
int64_t lw_winograd_packed_words(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile);
int64_t lw_winograd_pack_tasks(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile);
int64_t lw_winograd_shared_words(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile);
int64_t lw_winograd_input_tasks(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile);
int64_t lw_winograd_product_tasks(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile);
int64_t lw_winograd_tasks(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile);
int64_t lw_winograd_scratch_words(lw_num num, const lw_conv_shape *s, lw_conv_pass pass, int tile);

/* Below, `in` is f32, bf16 or u8. q: of bytes, else it may be NULL; `pack` reads b_scale alone, with which it rounds,
 * `inputs` a_zero, which pixels outside of an image have, `run` all. packed (64-byte aligned) <- w [O][3][3][C]. */
typedef void lw_winograd_pack_fn(float *packed, const float *w, const lw_conv_shape *s,
                                 lw_conv_pass pass, int tile, const lw_quant *q, int64_t task);
/* shared (64-byte aligned) <- transformed inputs. */
typedef void lw_winograd_inputs_fn(float *shared, const void *in, const lw_conv_shape *s,
                                   lw_conv_pass pass, int tile, const lw_quant *q, int64_t task);
/* shared <- products of the inputs there with the weights. */
typedef void lw_winograd_products_fn(float *shared, const float *packed, const lw_conv_shape *s,
                                     lw_conv_pass pass, int tile, int64_t task);
/* out = epilogue(the pass of in). Forward: in is x, out y. Data gradient: in is dy, out dx.
 * shared: what `inputs` and `products` made, where they make anything. scratch: 64-byte aligned, of this worker alone.
 * `e` may be NULL. */
typedef void lw_winograd_run_fn(void *out, const void *in, const float *packed, const float *shared,
                                const lw_conv_shape *s, lw_conv_pass pass, int tile,
                                const lw_quant *q, const lw_epilogue *e, float *scratch,
                                int64_t task);

/*
 * Weight gradients, where tiles apply: as those of conv.h (all tasks, barrier, all combine tasks, which may be 0), in tiles
 * of 4x4; scratch: 64-byte aligned words of this worker alone. dy and x are f32 or bf16, points and sums always f32. The
 * bits depend on the images of a call, their shape and the ISA level. Errors are twice those of conv.h's.
 */
/* The rule. */
bool lw_winograd_weight_grad(lw_num num, const lw_conv_shape *s, lw_isa isa, lw_conv_mode mode);
int64_t lw_winograd_weight_grad_tasks(const lw_conv_shape *s);
int64_t lw_winograd_weight_grad_partial_floats(const lw_conv_shape *s);
int64_t lw_winograd_weight_grad_combine_tasks(const lw_conv_shape *s);
int64_t lw_winograd_weight_grad_scratch_words(const lw_conv_shape *s);
typedef void lw_winograd_weight_grad_fn(float *dw, float *db, const void *dy, const void *x,
                                        const lw_conv_shape *s, int accumulate, float *partials,
                                        float *scratch, int64_t task);

struct lw_winograd_kernels {
    lw_winograd_pack_fn *pack;
    lw_winograd_inputs_fn *inputs;
    lw_winograd_products_fn *products;
    lw_winograd_run_fn *run;
    lw_winograd_pack_fn *pack_bf16;
    lw_winograd_inputs_fn *inputs_bf16;
    lw_winograd_products_fn *products_bf16;
    lw_winograd_run_fn *run_bf16;
    lw_winograd_pack_fn *pack_u8;
    lw_winograd_inputs_fn *inputs_u8;
    lw_winograd_products_fn *products_u8;
    lw_winograd_run_fn *run_u8;
    lw_winograd_weight_grad_fn *weight_grad;
    lw_winograd_weight_grad_fn *weight_grad_bf16;
    lw_conv_weight_grad_combine_fn *weight_grad_combine;
};

#define K(family, isa, field, function) \
    __typeof__(*((struct lw_winograd_kernels *)0)->field) function;
#include "kernels/conv/conv_winograd.def"
#undef K

#endif
