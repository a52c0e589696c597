/* SPDX-License-Identifier: Apache-2.0 */
/* Reference softmax and cross-entropy in plain loops, for float and for double data; task split. */
#include "kernels/softmax/softmax.h"

#include <math.h>

#define LW_REAL float
#define LW_REF(name) name##_ref
#include "kernels/softmax/softmax_ref.inc"
#undef LW_REAL
#undef LW_REF
#define LW_REAL double
#define LW_REF(name) name##_f64
#include "kernels/softmax/softmax_ref.inc"

ptrdiff_t lw_softmax_rows(ptrdiff_t n)
{
    ptrdiff_t rows = 16384 / (n > 0 ? n : 1);
    return rows < 1 ? 1 : rows;
}
