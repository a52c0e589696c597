/* SPDX-License-Identifier: Apache-2.0 */
/* What the plan tests share: a graph with a store behind its builder, and small networks. */
#ifndef LW_TESTS_PLAN_UTIL_H
#define LW_TESTS_PLAN_UTIL_H

#include "backend/backend.h"
#include "models/models.h"
#include "plan/plan_pass.h"
#include "store/store.h"

typedef struct plan_lab {
    lw_device *dev;
    lw_store *store;
    lw_graph *g;
    lw_builder b;
    lw_plan *plan;
    lw_exec *exec;
} plan_lab;

/* Opens a device and an empty graph and store; asserts that it works. */
void lab_open(plan_lab *l, int threads, lw_isa isa);
void lab_open_conv(plan_lab *l, int threads, lw_isa isa, lw_conv_mode conv);
void lab_close(plan_lab *l);
/* Fixes and initialises the store, compiles and makes an exec; asserts that it works. */
void lab_compile(plan_lab *l, int opt);
void lab_compile_as(plan_lab *l, const lw_compile_opts *o);
/* Runs passes up to and with `last` ("simplify", "upconv", "fuse", "join", "pack", "chain", "slices", "outputs",
 * "recompute") on a copy of the graph. */
lw_graph *lab_passes(plan_lab *l, const char *last);
/* Nodes of an op in a graph; node k of that op (fails when absent). */
int lab_count(const lw_graph *g, lw_op op);
const lw_node *lab_node(const lw_graph *g, lw_op op, int k);
/* Fills every input of the exec: f32 uniform in [-1,1], i32 in [0,4), i64 row ids. */
void lab_fill(plan_lab *l);

lw_val lab_input(plan_lab *l, const char *name, int rank, const int32_t *dim);
#define LAB_X(l, name, ...)                                                       \
    lab_input(l, name, (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), \
              (const int32_t[]){__VA_ARGS__})
lw_val lab_param(plan_lab *l, const char *name, int rank, const int32_t *dim);
#define LAB_P(l, name, ...)                                                       \
    lab_param(l, name, (int)(sizeof((int32_t[]){__VA_ARGS__}) / sizeof(int32_t)), \
              (const int32_t[]){__VA_ARGS__})
void lab_output(plan_lab *l, const char *name, lw_val v);

/* A small U-Net: 8x8 pictures, two levels of 8 and 16 channels, attention below, classes and
 * latent. */
lw_unet_config lab_unet(void);
/* Its sampling graph (constant t), and its training graph with dropout: loss and all gradients. */
void lab_unet_sample(plan_lab *l, int32_t batch);
void lab_unet_train(plan_lab *l, int32_t batch);

/* A lab on one thread of the reference level for each case of a group. */
int lab_setup(void **state);
int lab_teardown(void **state);
#define LAB_CASE(name) cmocka_unit_test_setup_teardown(name, lab_setup, lab_teardown)
/* Root mean square of a - b, relative to a's. */
double lab_distance(const float *a, const float *b, int64_t n);
/* Output "y" of the lab's graph without and with passes: equal up to rounding. */
void lab_same_numbers(plan_lab *l);

#endif
