/* SPDX-License-Identifier: Apache-2.0 */
/* The text header of an .npy: a Python dict literal with descr, fortran_order and shape. */
#ifndef LW_FORMATS_NPY_HEADER_H
#define LW_FORMATS_NPY_HEADER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "formats/formats_elem.h"

typedef struct lw_npy_header {
    lw_elem type;
    bool fortran;
    int rank;
    int64_t shape[LW_ARRAY_MAX_RANK];
    int64_t text;   /* <U: characters of an element, which are the last dimension; 0: numbers */
    size_t data_at; /* where the data begins */
} lw_npy_header;

int lw_npy_header_read(const char *what, const void *bytes, size_t n, lw_npy_header *out);
/* LW_EFORMAT: an array of `need` bytes in a file with `have`. */
int lw_npy_wrong_size(const char *what, const lw_npy_header *h, size_t need, size_t have);
/* Data in Fortran order, in a's memory, to C order. */
int lw_npy_from_fortran(lw_array *a);

#endif
