/* SPDX-License-Identifier: Apache-2.0 */
/* Without any instruction set in particular, and the choice. */
#define DENSE lw_dense_plain
#include "eval/eval_dense_body.inc"

const lw_dense *lw_dense_best(void)
{
#if defined(__x86_64__)
    lw_isa isa;
    if (lw_isa_chosen(&isa) == 0 && isa >= LW_ISA_AVX2)
        return &lw_dense_avx2;
#endif
    return &lw_dense_plain;
}
