/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, their conversions to and from f32, and lw_array. */
#include "formats/formats_elem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "formats/formats_half.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "files are read by memcpy");

static const struct {
    const char *name;
    size_t size;
} kinds[LW_ELEM_COUNT] = {
    [LW_ELEM_F64] = {"F64", 8},   [LW_ELEM_F32] = {"F32", 4}, [LW_ELEM_F16] = {"F16", 2},
    [LW_ELEM_BF16] = {"BF16", 2}, [LW_ELEM_I64] = {"I64", 8}, [LW_ELEM_I32] = {"I32", 4},
    [LW_ELEM_I16] = {"I16", 2},   [LW_ELEM_I8] = {"I8", 1},   [LW_ELEM_U8] = {"U8", 1},
    [LW_ELEM_BOOL] = {"BOOL", 1},
};

size_t lw_elem_size(lw_elem e)
{
    return kinds[e].size;
}

const char *lw_elem_name(lw_elem e)
{
    return kinds[e].name;
}

void lw_elem_to_f32(lw_elem e, const void *src, int64_t n, float *dst)
{
    const char *from = src;
    union {
        double f64;
        uint16_t u16;
        int64_t i64;
        int32_t i32;
        int16_t i16;
        int8_t i8;
        uint8_t u8;
    } x;
/* Loads member m of x from the (perhaps unaligned) element i and stores `value` of it. */
#define EACH(m, value)                                               \
    do {                                                             \
        for (int64_t i = 0; i < n; i++) {                            \
            memcpy(&x.m, from + (size_t)i * sizeof x.m, sizeof x.m); \
            dst[i] = (float)(value);                                 \
        }                                                            \
    } while (0)
    switch (e) {
    case LW_ELEM_F64:
        EACH(f64, x.f64);
        break;
    case LW_ELEM_F32:
        if (n > 0)
            memcpy(dst, src, (size_t)n * sizeof *dst);
        break;
    case LW_ELEM_F16:
        EACH(u16, lw_f16_to_f32(x.u16));
        break;
    case LW_ELEM_BF16:
        EACH(u16, lw_bf16_to_f32(x.u16));
        break;
    case LW_ELEM_I64:
        EACH(i64, x.i64);
        break;
    case LW_ELEM_I32:
        EACH(i32, x.i32);
        break;
    case LW_ELEM_I16:
        EACH(i16, x.i16);
        break;
    case LW_ELEM_I8:
        EACH(i8, x.i8);
        break;
    case LW_ELEM_U8:
        EACH(u8, x.u8);
        break;
    case LW_ELEM_BOOL:
        EACH(u8, x.u8 != 0);
        break;
    case LW_ELEM_COUNT:
        break;
    }
#undef EACH
}

static void store_16(uint16_t (*narrow)(float), const float *src, int64_t n, char *dst)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t h = narrow(src[i]);
        memcpy(dst + (size_t)i * sizeof h, &h, sizeof h);
    }
}

int lw_elem_from_f32(lw_elem e, const float *src, int64_t n, void *dst)
{
    char *out = dst;
    switch (e) {
    case LW_ELEM_F64:
        for (int64_t i = 0; i < n; i++) {
            double d = (double)src[i];
            memcpy(out + (size_t)i * sizeof d, &d, sizeof d);
        }
        return 0;
    case LW_ELEM_F32:
        if (n > 0)
            memcpy(out, src, (size_t)n * sizeof *src);
        return 0;
    case LW_ELEM_F16:
        store_16(lw_f32_to_f16, src, n, out);
        return 0;
    case LW_ELEM_BF16:
        store_16(lw_bf16_of_f32, src, n, out);
        return 0;
    default:
        return lw_fail(LW_EUNSUPPORTED, "cannot store f32 values as %s", lw_elem_name(e));
    }
}

const char *lw_shape_text(char buf[192], int rank, const int64_t *shape)
{
    size_t at = (size_t)snprintf(buf, 192, "[");
    for (int i = 0; i < rank && at < 160; i++)
        at += (size_t)snprintf(buf + at, 192 - at, "%s%lld", i ? "," : "", (long long)shape[i]);
    snprintf(buf + at, 192 - at, "]");
    return buf;
}

int lw_array_init(lw_array *out, lw_elem type, int rank, const int64_t *shape)
{
    lw_array a = {.type = type, .rank = rank};
    char text[192];
    if (rank < 0 || rank > LW_ARRAY_MAX_RANK)
        return lw_fail(LW_ESHAPE, "an array of rank %d: at most %d", rank, LW_ARRAY_MAX_RANK);
    size_t bytes = lw_elem_size(type);
    bool empty = false, bad = false;
    for (int i = 0; i < rank; i++) {
        a.shape[i] = shape[i];
        bad = bad || shape[i] < 0;
        empty = empty || shape[i] == 0;
    }
    for (int i = 0; i < rank && !empty && !bad; i++)
        bad = !lw_mul_size(bytes, (size_t)shape[i], &bytes) || bytes > (size_t)INT64_MAX / 2;
    if (bad)
        return lw_fail(LW_ESHAPE, "an array of shape %s is negative or too large",
                       lw_shape_text(text, rank, shape));
    a.bytes = empty ? 0 : bytes;
    a.count = (int64_t)(a.bytes / lw_elem_size(type));
    a.data = aligned_alloc(64, LW_ROUND_UP(a.bytes + 1, (size_t)64));
    if (!a.data)
        return lw_fail(LW_ENOMEM, "no memory for an array of %zu bytes", a.bytes);
    memset(a.data, 0, a.bytes + 1);
    *out = a;
    return 0;
}

void lw_array_clear(lw_array *a)
{
    free(a->data);
    *a = (lw_array){0};
}

int lw_array_make_f32(lw_array *a)
{
    if (a->type == LW_ELEM_F32)
        return 0;
    lw_array f;
    LW_TRY(lw_array_init(&f, LW_ELEM_F32, a->rank, a->shape));
    lw_elem_to_f32(a->type, a->data, a->count, f.data);
    lw_array_clear(a);
    *a = f;
    return 0;
}
