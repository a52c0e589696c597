/* SPDX-License-Identifier: Apache-2.0 */
#define DENSE lw_dense_avx512
#define LANES 8
#define VECTORS 3
#define ROWS 8
#define EACH_ROW(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#include "eval/eval_dense_body.inc"
