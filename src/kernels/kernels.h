/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels: arithmetic on raw pointers. Knows nothing above base: no tensors, no names, no threads.
 *
 * A family F is a folder: F.h (one function-pointer type per kernel, shapes in its comment, and
 * struct lw_F_kernels), F.def (rows K(F, isa, field, function)), F_ref.c (the oracle: obvious loops,
 * double accumulators), F_body.inc in the vector words of simd/ shared by F_avx2.c and F_avx512.c.
 * Every kernel works on a range, is single-threaded, returns void and cannot fail. Outputs come
 * first. Splitting work into ranges never changes the bits of an output element.
 *
 * lw_kernels_init fills the table once per device: ref, then avx2, avx512, avx512bf16, amx up to
 * the chosen level; avxvnni is avx2 and its own rows, which the levels above do not have. On 64-bit ARM the files and rows
 * of avx2 are those of NEON, and of avxvnni those of I8MM: the same text in other words (simd/simd_neon.h).
 */
#ifndef LW_KERNELS_H
#define LW_KERNELS_H

#include "base/base.h"
#include "kernels/attention/attention.h"
#include "kernels/blur/blur.h"
#include "kernels/cast/cast.h"
#include "kernels/conv/conv.h"
#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_rescale.h"
#include "kernels/conv/conv_winograd.h"
#include "kernels/drift/drift.h"
#include "kernels/ew/ew.h"
#include "kernels/gemm/gemm.h"
#include "kernels/norm/norm.h"
#include "kernels/optim/optim.h"
#include "kernels/pairs/pairs.h"
#include "kernels/peak/peak.h"
#include "kernels/pixels/pixels.h"
#include "kernels/pooling/pooling.h"
#include "kernels/random/random.h"
#include "kernels/reduce/reduce.h"
#include "kernels/resample/resample.h"
#include "kernels/resample/resample_picture.h"
#include "kernels/reverse/reverse.h"
#include "kernels/softmax/softmax.h"
#include "kernels/stats/stats.h"

typedef struct lw_kernels {
    lw_isa isa;
    struct lw_attention_kernels attention;
    struct lw_cast_kernels cast;
    struct lw_conv_kernels conv;
    struct lw_depthwise_kernels depthwise;
    struct lw_drift_kernels drift;
    struct lw_ew_kernels ew;
    struct lw_gemm_kernels gemm;
    struct lw_norm_kernels norm;
    struct lw_optim_kernels optim;
    struct lw_pairs_kernels pairs;
    struct lw_peak_kernels peak;
    struct lw_pixels_kernels pixels;
    struct lw_pooling_kernels pooling;
    struct lw_random_kernels random;
    struct lw_reduce_kernels reduce;
    struct lw_resample_kernels resample;
    struct lw_rescale_kernels rescale;
    struct lw_softmax_kernels softmax;
    struct lw_stats_kernels stats;
    struct lw_winograd_kernels winograd;
} lw_kernels;

void lw_kernels_init(lw_kernels *k, lw_isa isa);

#endif
