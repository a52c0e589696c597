/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the golden tests: the formula of docs/golden.md (weights and inputs by name), the files
 * of tests/golden/data, PyTorch's layouts, and comparisons that print what differs and by how much.
 */
#ifndef LW_TESTS_GOLDEN_H
#define LW_TESTS_GOLDEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/backend.h"
#include "models/models.h"

#define GOLDEN "tests/golden/data/"

/* ---- the formula ---- */
void golden_fill(const char *name, double offset, double scale, int64_t n, float *dst);
void golden_unit(const char *name, int64_t n, float *dst); /* variance 1 */
void golden_integers(const char *name, int64_t n, int32_t below, int32_t *dst);
/* A model parameter by its PyTorch name and shape. */
void golden_parameter(const char *name, int rank, const int64_t *shape, float *dst);

/* ---- layouts: [N,C,H,W] <-> [N,H,W,C] (also OIHW <-> OHWI) ---- */
void golden_to_nhwc(const float *src, int64_t n, int64_t c, int64_t hw, float *dst);
void golden_to_nchw(const float *src, int64_t n, int64_t c, int64_t hw, float *dst);

/* ---- an entry of a store as PyTorch sees it ---- */
typedef struct golden_part {
    char name[160];
    int rank;
    int64_t shape[4], count;
} golden_part;
int golden_parts(const lw_store_entry *e); /* 1, or 3 for q|k|v */
golden_part golden_part_of(const lw_store_entry *e, int k);
/* Part k of an entry's data in PyTorch's layout into dst[count], and the other way. */
void golden_part_get(const lw_store_entry *e, int k, const float *data, float *dst);
void golden_part_put(const lw_store_entry *e, int k, const float *src, float *data);
/* Every parameter of a fixed store by the formula; EMA too. */
void golden_fill_store(lw_store *s);

/* ---- files ---- */
lw_st_file *golden_open(const char *name); /* GOLDEN name .safetensors; fails the test */
double *golden_get(const lw_st_file *f, const char *name, int64_t *n); /* malloc'ed doubles */
json_t *golden_config(const lw_st_file *f, const char *name); /* its "config"; new reference */
float *golden_get_f32(const lw_st_file *f, const char *name, int64_t *n);
bool golden_has(const lw_st_file *f, const char *name);

/* "3x4x5" -> its rank. */
int golden_shape(const char *text, int64_t shape[4], int64_t *count);
/* What a fixture says of a model (`names`, `config`, `config_name`) as a folder that its authors would
 * have written, its values by the formula. */
void golden_write_model(const lw_st_file *f, const char *dir);

/* ---- comparing ---- */
double golden_relative(const float *have, const double *want, int64_t n, double floor);
/* Estimated relative L2 error of a tensor from its sketch of 9 numbers. */
double golden_sketch_error(const char *name, const float *have, int64_t n, const double *sketch,
                           double floor);
/* Fails the test, printing both, when err > tol. */
void golden_check(const char *what, double err, double tol);

/* ---- running ---- */
/* LW_GOLDEN_DEVICE: another device than the CPU, which computes networks forward. */
bool golden_forward_only(void);
lw_device *golden_device(lw_isa isa, int threads);
/* The levels to test: ref and the best one, on another device one; *n of them. */
const lw_isa *golden_isas(int *n);
#define assert_ok(expr)                                             \
    do {                                                            \
        int rc_ = (expr);                                           \
        if (rc_ < 0)                                                \
            fail_msg("%s: code %d, '%s'", #expr, rc_, lw_errmsg()); \
    } while (0)

#endif
