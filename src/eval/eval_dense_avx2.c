/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__x86_64__)
#define DENSE lw_dense_avx2
#include "eval/eval_dense_body.inc"
#endif
