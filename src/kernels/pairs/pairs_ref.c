/* SPDX-License-Identifier: Apache-2.0 */
/* Reference distances of pairs in plain loops, for float and for double data; task split. */
#include "kernels/pairs/pairs.h"

#include <math.h>

#define LW_REAL float
#define LW_REF(name) name##_ref
#include "kernels/pairs/pairs_ref.inc"
#undef LW_REAL
#undef LW_REF
#define LW_REAL double
#define LW_REF(name) name##_f64
#include "kernels/pairs/pairs_ref.inc"

/* About half a million differences a task. */
ptrdiff_t lw_pairs_rows(const lw_pairs_shape *s)
{
    ptrdiff_t row = s->n * s->c;
    return row < 1 || row > 524288 ? 1 : 524288 / row;
}
