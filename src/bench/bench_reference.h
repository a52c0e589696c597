/* SPDX-License-Identifier: Apache-2.0 */
/* What a case's result is compared with. Private to this folder. */
#ifndef LW_BENCH_REFERENCE_H
#define LW_BENCH_REFERENCE_H

#include "bench/bench_case.h"
#include "bench/bench_workload.h"

/* The same graph computed in f32, without fusion: by the reference kernels (plain loops, sums in
 * double) when that takes seconds, else by the fast kernels one level below the machine's, whose
 * sums have another order. */
typedef struct lw_bench_reference {
    lw_device *lower; /* opened for this reference, or NULL */
    lw_workload workload;
    const char *against; /* "ref", "avx2", ...; NULL: none was wanted */
} lw_bench_reference;

/* The device that `flops` are to be done on: the reference kernels', or one of a lower level,
 * opened into out->lower. Sets out->against. */
int lw_bench_reference_device(lw_bench_run *r, double flops, lw_bench_reference *out,
                              lw_device **dev);
/* Computes it, unless --no-reference or it does not fit. store: borrowed by the workload, may
 * be NULL. */
int lw_bench_reference_open(lw_bench_run *r, const lw_workload_spec *spec, double flops,
                            lw_bench_reference *out);
void lw_bench_reference_close(lw_bench_reference *f); /* accepts a zeroed struct */
/* Runs l once and compares; NAN without a reference. */
int lw_bench_reference_error(const lw_bench_reference *f, lw_workload *l, double *error);

/* A case from beginning to end: opened, compared with its reference, measured; what does not fit, or the
 * device cannot do, is a row that says so.
 * m NULL: f32. */
int lw_bench_workload(lw_bench_run *r, const lw_bench_method *m, const lw_workload_spec *spec,
                      const char *name, int32_t batch);
/* The same of a graph that leaves gradients in a store of its own: these are compared, and a step is the graph with clip,
 * AdamW and average behind it (bench_train.c). */
int lw_bench_train_step(lw_bench_run *r, const lw_bench_method *m, const lw_workload_spec *spec,
                        const char *name, int32_t batch);

/* A workload as a case: name, method and batch are the caller's. */
lw_bench_work lw_bench_lab_work(lw_workload *l, const lw_bench_method *m);

#endif
