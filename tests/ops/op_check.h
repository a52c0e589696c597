/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op tests' harness: a case builds a graph from named inputs; the harness compiles it as oracle
 * (opt 0, ref kernels, one thread) and optimised (opt 1, every ISA level, several threads),
 * compares outputs, and checks gradients by central differences along random directions.
 */
#ifndef LW_TESTS_OP_CHECK_H
#define LW_TESTS_OP_CHECK_H

#include "backend/backend.h"

/* A case: names its inputs with check_input and returns the value to look at (f32). */
typedef struct op_ctx {
    lw_graph *g;
    int n_in;
    struct {
        const char *name;
        lw_val val;
        bool grad;     /* differentiate with respect to it */
        float lo, hi;  /* f32: uniform range */
        int32_t below; /* i32, u8: uniform in [0, below) */
    } in[12];
} op_ctx;
typedef lw_val op_build(op_ctx *c);

typedef struct op_case {
    const char *name;
    op_build *build;
    double tol;      /* optimised against oracle: |difference| <= tol * (1 + |oracle|) */
    double grad_tol; /* directional derivative, relative to its scale; 0: no gradient */
    bool kinks;      /* piecewise linear somewhere: smaller steps for the differences */
} op_case;

lw_val op_f32(op_ctx *c, bool grad, float lo, float hi, int rank, const int32_t *dim);
lw_val op_i32(op_ctx *c, int32_t below, int32_t n);
lw_val op_u8(op_ctx *c, int32_t rows, int32_t n); /* any bytes */
lw_val op_rows(op_ctx *c, int32_t n);             /* i64 row ids 1000, 1001, ... */
#define DIMS(...) \
    ((int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t))), ((const int32_t[]){__VA_ARGS__})

/* Runs one case; prints what failed and returns the number of failures. */
int op_check(const op_case *c);
/* The same forward only, on another device against the CPU's oracle. */
typedef struct op_result {
    int64_t compared; /* elements */
    double worst;     /* greatest difference, as the tolerance counts it */
    bool absent;      /* the device does not compute an op of it: LW_EDEVICE */
} op_result;
/* 1: within the tolerance; 0: not; < 0: an error, with its message. */
int op_check_on(const op_case *c, lw_device *dev, op_result *r);
/* Was this op in the graph (or its gradient) of any case so far? */
bool op_seen(lw_op op);

#endif
