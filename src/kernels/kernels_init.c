/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the kernel table from the families' row lists: ref first, better levels over it. */
#include "kernels/kernels.h"

/* The words of the rows as levels. */
enum {
    at_ref = LW_ISA_REF,
    at_avx2 = LW_ISA_AVX2,
    at_avx512 = LW_ISA_AVX512,
    at_avx512bf16 = LW_ISA_AVX512BF16
};

static void fill(lw_kernels *k, int level)
{
#define ROW(family, isa, field, function) \
    if (at_##isa == level)                \
        k->family.field = function;
#define K(isa, field, function) ROW(attention, isa, field, function)
#include "kernels/attention/attention.def"
#undef K
#define K(isa, field, function) ROW(cast, isa, field, function)
#include "kernels/cast/cast.def"
#undef K
#define K(isa, field, function) ROW(conv, isa, field, function)
#include "kernels/conv/conv.def"
#undef K
#define K(isa, field, function) ROW(drift, isa, field, function)
#include "kernels/drift/drift.def"
#undef K
#define K(isa, field, function) ROW(ew, isa, field, function)
#include "kernels/ew/ew.def"
#undef K
#define K(isa, field, function) ROW(gemm, isa, field, function)
#include "kernels/gemm/gemm.def"
#undef K
#define K(isa, field, function) ROW(norm, isa, field, function)
#include "kernels/norm/norm.def"
#undef K
#define K(isa, field, function) ROW(optim, isa, field, function)
#include "kernels/optim/optim.def"
#undef K
#define K(isa, field, function) ROW(pairs, isa, field, function)
#include "kernels/pairs/pairs.def"
#undef K
#define K(isa, field, function) ROW(peak, isa, field, function)
#include "kernels/peak/peak.def"
#undef K
#define K(isa, field, function) ROW(pooling, isa, field, function)
#include "kernels/pooling/pooling.def"
#undef K
#define K(isa, field, function) ROW(random, isa, field, function)
#include "kernels/random/random.def"
#undef K
#define K(isa, field, function) ROW(reduce, isa, field, function)
#include "kernels/reduce/reduce.def"
#undef K
#define K(isa, field, function) ROW(resample, isa, field, function)
#include "kernels/resample/resample.def"
#undef K
#define K(isa, field, function) ROW(softmax, isa, field, function)
#include "kernels/softmax/softmax.def"
#undef K
#define K(isa, field, function) ROW(stats, isa, field, function)
#include "kernels/stats/stats.def"
#undef K
#define K(isa, field, function) ROW(winograd, isa, field, function)
#include "kernels/conv/conv_winograd.def"
#undef K
}

void lw_kernels_init(lw_kernels *k, lw_isa isa)
{
    *k = (lw_kernels){.isa = isa};
    for (int level = LW_ISA_REF; level <= (int)isa; level++)
        fill(k, level);
}
