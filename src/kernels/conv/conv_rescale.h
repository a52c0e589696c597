/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 3x3 convolutions that change the resolution by two, with fewer multiplications, f32:
 *
 *   shrinks   forward, 3x3 of stride 2, pads 0 or 1 before: a downsampling layer
 *   grows     data gradient, 4x4 of stride 2 and pads 1, whose filters are the sums that lw_upconv_weight makes of those
 *             of 3x3: nearest upsampling by two and a 3x3 convolution, an upsampling layer
 *
 * Of a line of filter (w0 w1 w2), with x the smaller picture and y the larger one, these are
 *
 *   shrinks   x_i      = (w0 y_2i-1 + w2 y_2i+1)       + w1 y_2i
 *   grows     y_2i+2   =  w0 x_i + (w1 + w2) x_i+1
 *             y_2i+1   =  y_2i+2                       + w1 (x_i - x_i+1)
 *
 * Two taps over four neighbours take five multiplications instead of eight, Winograd's F(4,2) (conv_rescale_points.h), so that
 * four x take 5 + 4 = 9 instead of 12, eight y 9 instead of 16. Of squares: 81 instead of 144 for 16 outputs of a picture that
 * shrinks; 81 for 64 outputs of one that grows, where F(4x4,3x3) over the upsampled picture takes 144. The first line and
 * column of a picture that grows take one more a line, its other pixels then fit tiles. Elements of a transformed filter, its
 * numbers here, are 36, as in F(4x4,3x3): four points are multiplied by the same w1. Rounding: errors are half to two thirds
 * of those of F(4x4,3x3).
 *
 * Everything said in conv.h about tasks, bits and epilogues holds here too.
 *
 * Source: Winograd, "Arithmetic complexity of computations" (1980), for two taps; the division into parities is that of
 * polyphase filters, what outputs of both parities share was found here.
 */
#ifndef LW_KERNELS_CONV_RESCALE_H
#define LW_KERNELS_CONV_RESCALE_H

#include "kernels/conv/conv.h"

enum { LW_RESCALE_MAX_DEPTH = 4096 /* channels summed over */ };

/* Is the pass of this convolution one of the two, with channels in range? */
bool lw_rescale_applies(const lw_conv_shape *s, lw_conv_pass pass);
/* Is it to be computed so? A pure function of the shape of one image, the level and the mode. Where it was measured: at avx2
 * pictures that grow from 16 channels on, those that shrink from 64; with AVX-512 those that grow from 32 channels on; none whose
 * tiles stand out of the picture so far that nothing is saved, and no smaller picture of one tile, whose 36 numbers come from
 * memory for a few products. Of the time of F(4x4,3x3) over the upsampled picture, and of computing directly, 8 pictures:
 *
 *   avx2 (Zen 3)      grows      256 @ 8, 16 .63, .62       64 @ 8 .78      32 @ 16 .94      16 @ 8 1.0
 *                     shrinks    256 @ 8 .62                128 @ 16 .66    64 @ 8 .91       32 @ 16 1.2
 *   avx512 (Zen 5)    grows      256 @ 8, 16 .79, .73       64 @ 8 .80      32 @ 16 .94      16 @ 16 1.1
 *                                of two threads .82, .72
 *                     shrinks    256 @ 8 .77                128 @ 16 .82
 *                                of two threads .87         1.08            of one picture 1.2, 1.3
 */
bool lw_rescale_pays(const lw_conv_shape *s, lw_conv_pass pass, lw_isa isa, lw_conv_mode mode);

/*
 * Floats of the packed filters, tasks to make them; floats that all tasks share; tasks that transform inputs to there (0: each
 * task of the convolution its own, in scratch), then tasks that leave products there (0: it multiplies itself); tasks of the
 * convolution and scratch that each worker needs: as those of conv_winograd.h.
 */
int64_t lw_rescale_packed_floats(const lw_conv_shape *s, lw_conv_pass pass);
int64_t lw_rescale_pack_tasks(const lw_conv_shape *s, lw_conv_pass pass);
int64_t lw_rescale_shared_floats(const lw_conv_shape *s, lw_conv_pass pass);
int64_t lw_rescale_input_tasks(const lw_conv_shape *s, lw_conv_pass pass);
int64_t lw_rescale_product_tasks(const lw_conv_shape *s, lw_conv_pass pass);
int64_t lw_rescale_tasks(const lw_conv_shape *s, lw_conv_pass pass);
int64_t lw_rescale_scratch_floats(const lw_conv_shape *s, lw_conv_pass pass);

/* packed (64-byte aligned) <- w [O][KH][KW][C]. */
typedef void lw_rescale_pack_fn(float *packed, const float *w, const lw_conv_shape *s,
                                lw_conv_pass pass, int64_t task);
/* shared (64-byte aligned) <- transformed inputs. */
typedef void lw_rescale_inputs_fn(float *shared, const float *in, const lw_conv_shape *s,
                                  lw_conv_pass pass, int64_t task);
/* shared <- products of the inputs there with the filters. */
typedef void lw_rescale_products_fn(float *shared, const float *packed, const lw_conv_shape *s,
                                    lw_conv_pass pass, int64_t task);
/* out = epilogue(the pass of in). shared: what `inputs` and `products` made, where they make anything. scratch: 64-byte
 * aligned, of this worker alone. `e` may be NULL. */
typedef void lw_rescale_run_fn(float *out, const float *in, const float *packed,
                               const float *shared, const lw_conv_shape *s, lw_conv_pass pass,
                               const lw_epilogue *e, float *scratch, int64_t task);

struct lw_rescale_kernels {
    lw_rescale_pack_fn *pack;
    lw_rescale_inputs_fn *inputs;
    lw_rescale_products_fn *products;
    lw_rescale_run_fn *run;
};

#define K(family, isa, field, function) \
    __typeof__(*((struct lw_rescale_kernels *)0)->field) function;
#include "kernels/conv/conv_rescale.def"
#undef K

#endif
