/* SPDX-License-Identifier: Apache-2.0 */
/* The body of gemm_low_body.inc at this ISA level. */
#include "kernels/gemm/gemm_low_body.inc"
