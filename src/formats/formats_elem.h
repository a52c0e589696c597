/* SPDX-License-Identifier: Apache-2.0 */
/* Element types of arrays in files, and an array in memory. Files and host are little-endian. */
#ifndef LW_FORMATS_ELEM_H
#define LW_FORMATS_ELEM_H

#include <stddef.h>
#include <stdint.h>

typedef enum lw_elem {
    LW_ELEM_F64,
    LW_ELEM_F32,
    LW_ELEM_F16,
    LW_ELEM_BF16,
    LW_ELEM_I64,
    LW_ELEM_I32,
    LW_ELEM_I16,
    LW_ELEM_I8,
    LW_ELEM_U8,
    LW_ELEM_BOOL,
    LW_ELEM_COUNT
} lw_elem;

#define LW_ARRAY_MAX_RANK 8

size_t lw_elem_size(lw_elem e);
const char *lw_elem_name(lw_elem e); /* safetensors' spelling: "F32", "BF16", ... */

/* n elements of type e at src (any alignment) to float, rounding to nearest even where f32 is
 * narrower. */
void lw_elem_to_f32(lw_elem e, const void *src, int64_t n, float *dst);
/* The other way; e one of F64, F32, F16, BF16 (round to nearest even, overflow to infinity, NaN
 * stays NaN): LW_EUNSUPPORTED for integer types. dst may be unaligned. */
int lw_elem_from_f32(lw_elem e, const float *src, int64_t n, void *dst);

/* A dense C-order array that owns its data (heap, 64-byte aligned, at least one byte). */
typedef struct lw_array {
    lw_elem type;
    int rank;
    int64_t shape[LW_ARRAY_MAX_RANK];
    int64_t count; /* product of shape */
    size_t bytes;  /* count * element size */
    void *data;
} lw_array;

/* Zeroed array. LW_ESHAPE for a bad rank, a negative size or a size that overflows. */
int lw_array_init(lw_array *out, lw_elem type, int rank, const int64_t *shape);
void lw_array_clear(lw_array *a); /* accepts a zeroed struct; fits LW_CLEANUP */
/* Replaces the elements by f32 (no change when they are already). */
int lw_array_make_f32(lw_array *a);
/* "[2,3,4]" into buf (returned), for messages. */
const char *lw_shape_text(char buf[192], int rank, const int64_t *shape);

#endif
