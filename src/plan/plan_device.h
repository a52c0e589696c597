/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between plan and a backend: lowering ops to tasks, and running tasks in parallel. */
#ifndef LW_PLAN_DEVICE_H
#define LW_PLAN_DEVICE_H

#include "ir/ir.h"

struct lw_tick;

/* One task of a step, as the backend's function sees it. */
typedef struct lw_task {
    const void *arg;  /* the lowered op's own record (plan memory) */
    void *const *in;  /* node inputs; NULL where absent */
    void *const *out; /* node outputs; NULL where nobody reads one */
    void *work;       /* workspace of this node, shared by its phases */
    void *scratch;    /* this worker's scratch, 64-byte aligned, scratch_bytes */
    const struct lw_tick *tick;
    int64_t index; /* 0 .. n_tasks - 1 of its phase */
    int phase;
} lw_task;
typedef void lw_task_fn(const lw_task *t);

enum { LW_MAX_PHASES = 12 };

/* What lowering a node yields: phases run one after the other, tasks of a phase in any order. The
 * task split must be a pure function of shapes (never of threads), so that results keep
 * their bits. */
typedef struct lw_lowered {
    const void *arg;
    size_t work_bytes, scratch_bytes;
    int n_phases;
    struct {
        lw_task_fn *fn;
        int64_t n_tasks;
    } phase[LW_MAX_PHASES];
} lw_lowered;

typedef struct lw_device {
    const char *name; /* "cpu" */
    void *self;
    /* Fills *out for a node; arg memory from the arena. LW_EUNSUPPORTED names the op. */
    int (*lower)(void *self, lw_arena *a, const lw_graph *g, const lw_node *n, lw_lowered *out);
    /* Does input i of node n want another layout? Fills *pack and returns true; *attr (same size as
     * the node's) may be changed to say that the input is packed. Only called for parameters. */
    bool (*pack)(void *self, const lw_graph *g, const lw_node *n, int i, lw_attr_pack *pack,
                 void *attr);
    /* Can node n read input i (i < 0: write output 0) with a pitch between rows that is larger than
     * a row? NULL: nothing can. */
    bool (*pitched)(void *self, const lw_graph *g, const lw_node *n, int i);
    /* n: a 3x3 convolution behind nearest upsampling by two, or its data gradient, on operands of
     * type `num`: is the transposed convolution on summed weights faster? NULL: yes. */
    bool (*upconv)(void *self, const lw_node *n, lw_num num);
    /* Is product n faster in f32 than on operands of type `num`? NULL: no. */
    bool (*wide)(void *self, const lw_node *n, lw_num num);
    /* Runs fn(arg, task, worker) for all tasks, full barrier at the end. */
    void (*parallel)(void *self, int64_t n_tasks, void (*fn)(void *arg, int64_t task, int worker),
                     void *arg);
    int (*workers)(void *self);
    /* Optional: asked between the steps of lw_exec_run, on its caller's thread; true ends the run
     * with LW_ESTOPPED and leaves its outputs undefined. */
    bool (*stop)(void *stop_self);
    void *stop_self;
} lw_device;

#endif
