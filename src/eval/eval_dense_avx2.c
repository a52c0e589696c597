/* SPDX-License-Identifier: Apache-2.0 */
#define DENSE lw_dense_avx2
#define VECTORS 2
#ifdef LW_NEON /* twice as many registers, of half as many numbers */
#define LANES 2
#define ROWS 8
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#else
#define LANES 4
#define ROWS 4
#define EACH_ROW(X) X(0) X(1) X(2) X(3)
#endif
#include "eval/eval_dense_body.inc"
