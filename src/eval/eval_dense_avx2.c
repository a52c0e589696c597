/* SPDX-License-Identifier: Apache-2.0 */
#if defined(__x86_64__)
#define DENSE lw_dense_avx2
#define LANES 4
#define VECTORS 2
#define ROWS 4
#define EACH_ROW(X) X(0) X(1) X(2) X(3)
#include "eval/eval_dense_body.inc"
#endif
