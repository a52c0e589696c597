/* SPDX-License-Identifier: Apache-2.0 */
/* A graph made ready to run: built, compiled, its inputs filled. Private to bench and profile. */
#ifndef LW_BENCH_WORKLOAD_H
#define LW_BENCH_WORKLOAD_H

#include "backend/backend.h"
#include "models/models.h"

/* Appends inputs and outputs to b->g. */
typedef int lw_workload_build_fn(lw_builder *b, const void *what);

typedef struct lw_workload_spec {
    lw_workload_build_fn *build;
    const void *what;
    lw_compile_opts opts;
    lw_store *store; /* borrowed, fixed and filled; NULL: a store of the graph's own, random */
    void (*fill)(lw_store *own); /* behind its initial values; or NULL */
    bool train;   /* an own store with gradients, moments and averages; dropout is live */
    size_t limit; /* LW_ENOMEM when it would take more bytes; 0: no limit */
    bool edges;   /* what int8 could read as bytes becomes outputs, to be calibrated */
} lw_workload_spec;

/* Ranges of activations, for int8. */
typedef struct lw_workload_ranges {
    lw_arena *arena; /* owns names and ranges */
    lw_edge_range *edge;
    lw_calibration table;
} lw_workload_ranges;

typedef struct lw_workload {
    lw_device *dev; /* borrowed */
    lw_store *store, *own;
    lw_workload_ranges ranges; /* of a plan in int8 */
    lw_graph *graph;
    lw_plan *plan;
    lw_exec *exec;
    lw_plan_info info;
    size_t bytes; /* weights, frame and prepared data; also set when there was not enough memory */
    lw_tick tick;
} lw_workload;

/* LW_ENOMEM and a line: more bytes than the limit; 0: there is none. */
int lw_workload_fits(size_t bytes, size_t limit);

/* A plan in int8 is calibrated first, by a run in f32 on its own inputs. Inputs are filled by name
 * and element number alone, so that the first picture of every batch is
 * the same: normal numbers ("t": 0 .. 1000), i64 row numbers, small i32. */
int lw_workload_open(lw_device *dev, const lw_workload_spec *spec, lw_workload *out);
/* The ranges, and the filled store of that run when the spec borrows none. *bytes: what it took, or
 * would have taken. */
int lw_workload_calibrate(lw_device *dev, const lw_workload_spec *spec, lw_workload_ranges *out,
                          lw_store **own, size_t *bytes);
void lw_workload_close(lw_workload *l); /* accepts a zeroed struct */
/* One run; self is the lw_workload. */
int lw_workload_run(void *self);

/* Largest |a - b| over the largest |b| among the outputs that both have, where the batches differ
 * over the smaller one. *difference (may be NULL): largest |a - b|. NAN when nothing
 * was compared. */
double lw_workload_error(const lw_workload *a, const lw_workload *b, double *difference);
/* The same between two arrays. */
double lw_workload_error_of(const float *a, const float *b, int64_t n, double *difference);

/* The U-Net of a config at a batch size: input x (and t), output y; or one DDPM step, whose
 * gradients go to the store. */
typedef struct lw_workload_unet {
    lw_unet_config config;
    int32_t batch;
} lw_workload_unet;
/* The small or the large one, with layers that begin at zero filled: a zero result would hide every
 * error. */
lw_unet_config lw_workload_unet_config(bool large);
int lw_workload_build_unet(lw_builder *b, const void *what);
int lw_workload_build_ddpm(lw_builder *b, const void *what);

#endif
