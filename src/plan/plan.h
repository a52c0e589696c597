/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan: how to compute a graph. Small passes turn a graph into an immutable plan (steps and a
 * memory map) for one device; an exec is a running copy of it whose run cannot allocate or fail on
 * a CPU.
 *
 *   graph ─ verify ─ simplify ─ upconv ─ fuse ─ join ─ project ─ pack ─ outputs ─ recompute ─
 *   schedule ─ place ─ lower ─ memory ─► plan ──► exec (one frame)
 *   (gradients are appended to the graph before compiling: lw_grad, lw_grad_params)
 *
 * Read in this order: plan_device.h (the contract a backend fulfils), this file, plan_pass.h
 * (private: what a pass receives), then the passes. A plan borrows its device; an exec borrows its
 * plan and the stores whose parameters the graph names. Free execs first, then plans, then stores,
 * then the device.
 *
 * Frame of an exec (one 64-byte aligned block):
 *   [ inputs and outputs | values by lifetime, offsets reused | node workspaces ]
 *
 * and beside it one block for derived values (packed weights, everything that depends on parameters
 * and constants only), filled by the plan's prepare steps whenever a store's version moved, and one
 * of scratch for each worker. Execs of one device whose plans prepare the same from the same slab
 * share the derived block (plan_derived.c), so that they are one thread's at a time.
 */
#ifndef LW_PLAN_H
#define LW_PLAN_H

#include "ir/ir.h"
#include "plan/plan_device.h"

typedef struct lw_plan lw_plan;
typedef struct lw_exec lw_exec;

/* How u8 stands for the activations that one product reads: scale * (u8 - zero). */
typedef struct lw_edge_range {
    const char *name; /* of the product's weight parameter */
    float scale;      /* > 0 */
    int32_t zero;     /* 0 .. 255 */
} lw_edge_range;
typedef struct lw_calibration {
    const lw_edge_range *edge;
    int32_t n;
} lw_calibration;

typedef struct lw_compile_opts {
    int opt;        /* 0: no simplify, no fusion, no memory reuse (the oracle); 1: everything */
    bool recompute; /* make cheap values again in the backward pass instead of storing them: less
                       memory, the same bits */
    lw_str *dump;   /* when set: text of the graph after `dump_pass`, or of every pass */
    const char *dump_pass; /* "simplify", "fuse", ...; NULL with dump: all */
    lw_num precision;      /* operands of products: f32, bf16, or u8 x s8 (inference only) */
    const lw_calibration *calibration; /* with LW_NUM_S8; borrowed during the call */
    bool part; /* of a network: it need have no product that is calibrated */
} lw_compile_opts;

/* Appends the gradient of sum(loss * seed) for every unfrozen parameter reached, as outputs bound
 * to the gradient slab. seed absent: ones. LW_EUNSUPPORTED names the op that has no gradient. */
int lw_grad_params(lw_graph *g, lw_val loss, lw_val seed);
/* The same of several values, whose cotangents are given: sum over i of sum(y[i] * dy[i]). */
int lw_grad_params_of(lw_graph *g, const lw_val *y, const lw_val *dy, int n_y);

/* Adds an output "edge/<weight>" for every activation that a plan with LW_NUM_S8 could read as u8,
 * to measure its range. Call on a forward graph before compiling it in f32. LW_EUNSUPPORTED: a weight multiplies two values. */
int lw_calibration_outputs(lw_graph *g);
/* Has any product of g, dead ones too, a range among these? lw_compile refuses LW_NUM_S8 where none has. */
bool lw_calibration_fits(const lw_graph *g, const lw_calibration *c);
#define LW_EDGE_OUTPUT "edge/"

/* Compiles; the graph may be freed afterwards. LW_ESHAPE etc: the graph's own first error.
 * LW_EUSAGE: two inputs have one name, or two outputs. */
int lw_compile(const lw_graph *g, lw_device *dev, const lw_compile_opts *opts, lw_plan **out);
void lw_plan_free(lw_plan **pp);

typedef struct lw_plan_info {
    int n_steps, n_prepare;
    size_t frame_bytes;   /* values, workspaces, scratch of one exec */
    size_t derived_bytes; /* prepared data, which other execs may share */
    double flops, bytes;  /* of one run, by the ops' cost rules */
    double forward_flops; /* of lw_exec_run_forward */
} lw_plan_info;
lw_plan_info lw_plan_get_info(const lw_plan *p);
/* Steps with shapes, offsets, tasks, FLOP and bytes; the memory map. */
void lw_plan_print(lw_str *s, const lw_plan *p);

/* What changes from one run to the next. */
typedef struct lw_tick {
    uint64_t seed;
    uint32_t step; /* step or pass number: part of every random draw's counter */
} lw_tick;

/* `weights`: the slab parameters are read from (LW_SLAB_PARAM or LW_SLAB_EMA). */
int lw_exec_new(const lw_plan *p, lw_slab weights, lw_exec **out);
void lw_exec_free(lw_exec **pp);
/*
 * Inputs and outputs by name; NULL: no such name. What is written is an input of the next run and
 * stays one until it is written again; what is read is what the last run left, until the next run.
 * On a CPU both are the exec's own memory. On a device with memory of its own they are copies on
 * the host, which reading and the next run bring up to date: so ask again for every run, and do not
 * keep the address.
 */
void *lw_exec_write(lw_exec *e, const char *name);      /* of an input */
const void *lw_exec_read(lw_exec *e, const char *name); /* of an output or an input */
/* Makes a named input the caller's memory (64-byte aligned is best, that of its numbers is enough), as it is when a
 * run begins; NULL: the exec's own again. */
int lw_exec_bind(lw_exec *e, const char *name, void *data);
/* With whom steps put their reductions together; NULL, as at first: nobody. Outlives the runs. */
void lw_exec_ranks(lw_exec *e, const lw_ranks *ranks);
/* Type of a named input or output; dtype LW_DT_NONE: no such name. */
lw_type lw_exec_type(const lw_exec *e, const char *name);
/* LW_ESTOPPED: the device was asked to stop (plan_device.h); nothing else fails. */
int lw_exec_run(lw_exec *e, const lw_tick *tick);
/* Only what is not of the backward pass: outputs of the forward pass have the bits that they have in
 * whole runs. (A graph without gradients may be fused otherwise, and have others.) */
int lw_exec_run_forward(lw_exec *e, const lw_tick *tick);
/* Runs are not recorded, where the device records them: each starts its steps one by one. */
void lw_exec_launch_each(lw_exec *e);
/* Between two runs: every state value (lw_graph_output) that the last one made is what the next one
 * reads as its input. Memory changes places, nothing is copied: the output is undefined then. */
void lw_exec_advance(lw_exec *e);

/*
 * Many execs of one plan, each run by one worker of the device, without a barrier between steps:
 * for plans of few rows, of which many are wanted. A neighbour has a frame of its own and scratch
 * for one worker, and shares the owner's prepared data. lw_exec_prepare of the owner, then
 * lw_exec_run_alone of any of them inside the device's tasks: same bits as lw_exec_run.
 */
int lw_exec_new_beside(const lw_exec *owner, lw_exec **out);
/* Runs the prepare steps if a store's version moved. */
void lw_exec_prepare(lw_exec *e);
/* Runs all other steps on the calling thread. */
void lw_exec_run_alone(lw_exec *e, const lw_tick *tick);

/* Per-step times of the runs since profiling was switched on. */
void lw_exec_profile(lw_exec *e, bool on);
typedef struct lw_step_time {
    const char *op, *scope;
    lw_type type;  /* of its first result */
    bool backward; /* of the backward pass */
    double seconds, flops, bytes;
    int64_t tasks;
} lw_step_time;
int lw_exec_step_count(const lw_exec *e);
int lw_exec_prepare_count(const lw_exec *e); /* of them, the first: run once for all */
lw_step_time lw_exec_step_time(const lw_exec *e, int i);
/* Its phases, with a barrier behind each. */
typedef struct lw_phase_time {
    double seconds;
    int64_t tasks;
} lw_phase_time;
int lw_exec_phase_count(const lw_exec *e, int i);
lw_phase_time lw_exec_phase_time(const lw_exec *e, int i, int k);
/* Bytes of the frame in use while step i runs: values alive and its workspace. Prepare steps come
 * first in the count of steps. */
size_t lw_plan_live_bytes(const lw_plan *p, int i);
/* A table of the profiled times by op, appended. */
void lw_exec_profile_print(lw_str *s, const lw_exec *e);

#endif
