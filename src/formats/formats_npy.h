/* SPDX-License-Identifier: Apache-2.0 */
/*
 * numpy arrays. Reads .npy versions 1 to 3, little-endian f2 f4 f8 i1 i2 i4 i8 u1 b1; Fortran order
 * is transposed to C order. Text (<U12) is I32 code points with a last dimension of 12. Writes version
 * 1.0, C order.
 */
#ifndef LW_FORMATS_NPY_H
#define LW_FORMATS_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "formats/formats_elem.h"

int lw_npy_parse(const char *what, const void *bytes, size_t n, lw_array *out);
int lw_npy_load(const char *path, lw_array *out);
int lw_npy_load_f32(const char *path, lw_array *out); /* any element type, converted */
/* Atomic (temporary name, fsync, rename). type must not be BF16, which numpy has no name for. */
int lw_npy_save(const char *path, lw_elem type, int rank, const int64_t *shape, const void *data);
/* What stands before the data, appended: for those who write the data themselves. Of text: its last
 * dimension is characters. */
int lw_npy_header_write(const char *what, lw_elem type, int rank, const int64_t *shape,
                        lw_str *out);
int lw_npy_header_write_text(int rank, const int64_t *shape, lw_str *out);

/* A named array of an .npz (names without ".npy"). */
typedef struct lw_npz_entry {
    char *name;
    lw_array array;
    bool text; /* written as such */
} lw_npz_entry;
typedef struct lw_npz {
    lw_npz_entry *entries;
    size_t n, cap;
} lw_npz;
/* One array after the other, so that no two are in memory. Without data array->data is NULL and
 * nothing but headers is read. The visitor may take *array over (and zero it); a negative result
 * ends the walk. */
typedef int lw_npz_visit(void *arg, const char *name, lw_array *array);
int lw_npz_each(const char *path, bool data, lw_npz_visit *visit, void *arg);
/* Those of n (1 or more) names alone: the others' headers are not read either. */
int lw_npz_pick(const char *path, const char *const *names, size_t n, bool data,
                lw_npz_visit *visit, void *arg);
int lw_npz_load(const char *path, lw_npz *out); /* members that are not .npy are skipped */
void lw_npz_clear(lw_npz *z);
lw_array *lw_npz_find(lw_npz *z, const char *name); /* NULL when absent */
/* Takes over *array (zeroed after) under a copy of name; z starts zeroed. Duplicate names:
 * LW_EUSAGE. */
int lw_npz_add(lw_npz *z, const char *name, lw_array *array);
/* n texts of UTF-8 as an array of text, as numpy.asarray of a list of strings. LW_EFORMAT: not UTF-8. */
int lw_npz_add_text(lw_npz *z, const char *name, const char *const *text, int64_t n);
/* The other way: text i of such an array [n][characters], appended as UTF-8. LW_EFORMAT: the array is
 * none of text, or has no text i; what is no character becomes U+FFFD. */
int lw_npz_text_at(const lw_array *a, int64_t i, lw_str *out);
int lw_npz_save(const char *path, const lw_npz *z); /* stored, not deflated; atomic */

#endif
