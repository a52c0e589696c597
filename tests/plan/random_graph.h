/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random graphs for the plan tests: a few inputs and parameters, then random ops on what is there,
 * then gradients of random cotangents. Everything is a pure function of the seed, so that the graph
 * can be built again for every device.
 */
#ifndef LW_TESTS_RANDOM_GRAPH_H
#define LW_TESTS_RANDOM_GRAPH_H

#include <string.h>

#include "store/store.h"

typedef struct random_graph {
    lw_graph *g;
    lw_store *store; /* owned by the caller, declared on the first build */
    lw_builder b;
    uint64_t seed;
    uint32_t draws;
    lw_val val[160]; /* f32 values to build on */
    int n_val, n_input, n_param;
    lw_val rows;          /* i64[B] */
    lw_val ids;           /* i32[B] in [0, 6) */
    int ops[LW_OP_COUNT]; /* forward nodes made, per op */
} random_graph;

/* Builds graph number `seed` into g; parameters are declared in store. Outputs are f32, named y0,
 * y1, ... (forward values, perhaps none) and d0, d1, ... (gradients); some seeds bind gradients to
 * the store's slab. */
void random_graph_build(random_graph *r, lw_graph *g, lw_store *store, uint64_t seed);
/* The values of an input called name, drawn by (seed, name). */
void random_graph_fill(uint64_t seed, const char *name, lw_type t, void *data);

/* ---- random_graph_ops.c: draws from the graph's own stream, and one more op ---- */
uint32_t random_below(random_graph *r, uint32_t n);
bool random_chance(random_graph *r, uint32_t percent);
lw_type random_type(const random_graph *r, lw_val v);
/* A value of this rank (0: any), the newer the likelier; invalid when there is none. */
lw_val random_pick(random_graph *r, int rank);
lw_val random_input(random_graph *r, lw_type t);
lw_val random_param(random_graph *r, lw_type t, float scale);
/* Appends an op on random operands; invalid when they do not fit it. */
lw_val random_op(random_graph *r);

#endif
