/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the kernel table from the families' row lists: ref first, better levels over it. */
#include "kernels/kernels.h"

/* The words of the rows as levels. */
enum {
    at_ref = LW_ISA_REF,
    at_avx2 = LW_ISA_AVX2,
    at_avxvnni = LW_ISA_AVXVNNI,
    at_avx512 = LW_ISA_AVX512,
    at_avx512bf16 = LW_ISA_AVX512BF16,
    at_amx = LW_ISA_AMX
};

/* Rows of levels that this kind of processor has kernels of; functions of others are not in the program. */
#define ROW_ref(set) set
#if defined(__x86_64__) || defined(__aarch64__)
#define ROW_avx2(set) set
#define ROW_avxvnni(set) set
#else
#define ROW_avx2(set)
#define ROW_avxvnni(set)
#endif
#if defined(__x86_64__)
#define ROW_avx512(set) set
#define ROW_avx512bf16(set) set
#define ROW_amx(set) set
#else
#define ROW_avx512(set)
#define ROW_avx512bf16(set)
#define ROW_amx(set)
#endif

static void fill(lw_kernels *k, int level)
{
#define K(family, isa, field, function)        \
    if (at_##isa == level) {                   \
        ROW_##isa(k->family.field = function;) \
    }
#include "kernels/attention/attention.def"
#include "kernels/cast/cast.def"
#include "kernels/conv/conv.def"
#include "kernels/drift/drift.def"
#include "kernels/ew/ew.def"
#include "kernels/gemm/gemm.def"
#include "kernels/norm/norm.def"
#include "kernels/optim/optim.def"
#include "kernels/pairs/pairs.def"
#include "kernels/peak/peak.def"
#include "kernels/pixels/pixels.def"
#include "kernels/pooling/pooling.def"
#include "kernels/random/random.def"
#include "kernels/reduce/reduce.def"
#include "kernels/resample/resample.def"
#include "kernels/softmax/softmax.def"
#include "kernels/stats/stats.def"
#include "kernels/conv/conv_depthwise.def"
#include "kernels/conv/conv_rescale.def"
#include "kernels/conv/conv_winograd.def"
#undef K
}

void lw_kernels_init(lw_kernels *k, lw_isa isa)
{
    *k = (lw_kernels){.isa = isa};
    for (int level = LW_ISA_REF; level <= (int)isa; level++)
        if (level != LW_ISA_AVXVNNI || isa == LW_ISA_AVXVNNI) /* which no other level includes */
            fill(k, level);
}
