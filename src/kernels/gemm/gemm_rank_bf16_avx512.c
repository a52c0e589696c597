/* SPDX-License-Identifier: Apache-2.0 */
/* The body of gemm_rank_body.inc for bf16 at this ISA level. */
#include "kernels/gemm/gemm_elem_bf16.h"
#include "kernels/gemm/gemm_rank_body.inc"
