/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes and element types. */
#include "ir/ir.h"

#include <stdarg.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[] = {
    [LW_DT_NONE] = {"none", 0}, [LW_F32] = {"f32", 4}, [LW_BF16] = {"bf16", 2},
    [LW_F64] = {"f64", 8},      [LW_I32] = {"i32", 4}, [LW_I64] = {"i64", 8},
    [LW_U8] = {"u8", 1},
};

size_t lw_dtype_size(lw_dtype t)
{
    return dtypes[t].size;
}

const char *lw_dtype_name(lw_dtype t)
{
    return dtypes[t].name;
}

lw_type lw_type_of(lw_dtype dtype, int rank, ...)
{
    LW_ASSERT(rank >= 0 && rank <= LW_MAX_RANK, "rank %d", rank);
    lw_type t = {.dtype = dtype, .rank = rank};
    va_list ap;
    va_start(ap, rank);
    for (int i = 0; i < rank; i++)
        t.dim[i] = va_arg(ap, int32_t);
    va_end(ap);
    return t;
}

int64_t lw_type_count(lw_type t)
{
    int64_t n = 1;
    for (int i = 0; i < t.rank; i++)
        n *= t.dim[i];
    return n;
}

size_t lw_type_bytes(lw_type t)
{
    return (size_t)lw_type_count(t) * lw_dtype_size(t.dtype);
}

bool lw_type_eq(lw_type a, lw_type b)
{
    if (a.dtype != b.dtype || a.rank != b.rank)
        return false;
    for (int i = 0; i < a.rank; i++)
        if (a.dim[i] != b.dim[i])
            return false;
    return true;
}

int32_t lw_type_last(lw_type t)
{
    return t.rank ? t.dim[t.rank - 1] : 1;
}

void lw_type_print(lw_str *s, lw_type t)
{
    lw_str_addf(s, "%s[", lw_dtype_name(t.dtype));
    for (int i = 0; i < t.rank; i++)
        lw_str_addf(s, "%s%d", i ? "," : "", t.dim[i]);
    lw_str_add(s, "]");
}
