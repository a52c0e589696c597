/* SPDX-License-Identifier: Apache-2.0 */
/* The body of gemm_bytes_body.inc at this ISA level. */
#include "kernels/gemm/gemm_bytes_body.inc"
