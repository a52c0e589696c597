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

static void fill(lw_kernels *k, int level)
{
#define K(family, isa, field, function) \
    if (at_##isa == level)              \
        k->family.field = function;
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
