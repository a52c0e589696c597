/* SPDX-License-Identifier: Apache-2.0 */
/* A value's type: element type and static shape. Dense, row-major, last dimension fastest. */
#ifndef LW_IR_TYPE_H
#define LW_IR_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

typedef enum lw_dtype { LW_DT_NONE, LW_F32, LW_BF16, LW_F64, LW_I32, LW_I64, LW_U8 } lw_dtype;

enum { LW_MAX_RANK = 6, LW_MAX_DIM = (1 << 30) - 1 };

typedef struct lw_type {
    lw_dtype dtype;
    int32_t rank;
    int32_t dim[LW_MAX_RANK];
} lw_type;

size_t lw_dtype_size(lw_dtype t);
const char *lw_dtype_name(lw_dtype t);

/* lw_type_of(LW_F32, 4, B, H, W, C): int32_t dims follow. */
lw_type lw_type_of(lw_dtype dtype, int rank, ...);
int64_t lw_type_count(lw_type t); /* product of dims; 1 for rank 0 */
size_t lw_type_bytes(lw_type t);
bool lw_type_eq(lw_type a, lw_type b);
int32_t lw_type_last(lw_type t);          /* last dimension, 1 for rank 0 */
void lw_type_print(lw_str *s, lw_type t); /* f32[2,16,16,32] */

#endif
