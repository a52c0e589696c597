/* SPDX-License-Identifier: Apache-2.0 */
/* The contract between plan and a backend: lowering ops to steps, and running them. */
#ifndef LW_PLAN_DEVICE_H
#define LW_PLAN_DEVICE_H

#include "ir/ir.h"

struct lw_tick;

/* One task of a step, as the backend's function sees it. */
typedef struct lw_task {
    const void *arg;   /* the lowered op's own record (plan memory) */
    void *const *in;   /* node inputs; NULL where absent */
    void *const *out;  /* node outputs; NULL where nobody reads one */
    void *work;        /* workspace of this node, shared by its phases */
    const void *table; /* lw_lowered's, where the device reads it */
    void *scratch;     /* this worker's scratch, 64-byte aligned, scratch_bytes */
    const struct lw_tick *tick;
    int64_t index; /* 0 .. n_tasks - 1 of its phase */
    int phase;
} lw_task;
typedef void lw_task_fn(const lw_task *t);

enum { LW_MAX_PHASES = 12 };

/* Numbers in a step's workspace that all ranks of a job put together at the end of a phase. On one
 * rank nothing happens. */
typedef enum lw_reduce_op { LW_REDUCE_MEAN, LW_REDUCE_SUM, LW_REDUCE_MIN } lw_reduce_op;
typedef struct lw_reduction {
    const char *name;
    int phase;
    size_t offset; /* into the workspace, bytes */
    int64_t count;
    lw_dtype type;
    lw_reduce_op op;
} lw_reduction;
typedef struct lw_ranks {
    void *self;
    /* data: the device's memory */
    void (*reduce)(void *self, const lw_reduction *r, void *data);
} lw_ranks;

/* What lowering a node yields: phases run one after the other, tasks of a phase in any order. The
 * task split must be a pure function of shapes and the level (never of threads), so that results keep
 * their bits. */
typedef struct lw_lowered {
    const void *arg;
    size_t work_bytes, scratch_bytes;
    /* numbers known from shapes alone (plan memory), which each exec puts into the device's memory */
    const void *table;
    size_t table_bytes;
    int n_phases;
    struct {
        lw_task_fn *fn;
        int64_t n_tasks;
    } phase[LW_MAX_PHASES];
    const lw_reduction *reduction; /* by phase */
    int n_reductions;
} lw_lowered;

/* One phase of a step, ready to run. */
typedef struct lw_launch {
    const lw_lowered *low;
    lw_task task;          /* all but index; the scratch is worker 0's */
    size_t scratch_stride; /* bytes to the next worker's */
    bool alone;            /* on the calling thread, which is a worker of the pool */
    bool may_stop;         /* the pool's observer may cut it off */
} lw_launch;

/* What a device kept of a run, to start it again at once. */
typedef struct lw_recording lw_recording;

typedef enum lw_optimizer { LW_OPTIMIZER_ADAMW, LW_OPTIMIZER_SGD } lw_optimizer;

/* One update of flat slabs: the gradient's norm, clipping, the optimiser, the moving average. */
typedef struct lw_update {
    float *slab
        [LW_SLABS]; /* [n] each, apart from each other; GRAD: the sum of gradients, only read; EMA may be
                              NULL. Gaps between entries hold 0 */
    int64_t n;
    int32_t optimizer; /* lw_optimizer; formulas in kernels/optim */
    double lr, weight_decay;
    double beta1, beta2, eps; /* adamw */
    double momentum;          /* sgd, which leaves V as it is */
    int64_t t;                /* number of this update: 1, 2, ... */
    double grad_scale; /* every gradient is multiplied by it first: 1 / number of summed leaves */
    double max_norm;   /* clip to this global norm (after grad_scale); <= 0: no clipping */
    double ema_decay;  /* 0: EMA becomes a copy of PARAM, to the bit */
} lw_update;

typedef struct lw_device {
    const char *name; /* "cpu" */
    const char *isa;  /* what its kernels were compiled for: "avx512" */
    /* The host beside the device, for all work that is no plan: its threads, as many as have
     * scratch in an exec, and its kernels (plan never looks into them). A watch on the pool
     * (lw_pool_watch) ends lw_exec_run too. */
    lw_pool *pool;
    const struct lw_kernels *kernels;
    /* Where plans and stores on it have their blocks. */
    const lw_memory *memory;
    struct lw_derived *derived; /* blocks that its execs share (plan_derived.c) */
    void *self;
    bool failed;     /* what is read from it from then on is not a number: no result */
    const char *why; /* that; the device's own text */
    /* Fills *out for a node; arg memory from the arena. LW_EUNSUPPORTED names the op. Bit i of `fixed`: input i is
     * absent, or the same in every run: a weight, a constant, or what prepare steps made of them. */
    int (*lower)(void *self, lw_arena *a, const lw_graph *g, const lw_node *n, uint32_t fixed,
                 lw_lowered *out);
    /* Does input i of node n want another layout? Fills *pack and returns true; *attr (same size as
     * the node's) may be changed to say that the input is packed. Only called for parameters. */
    bool (*pack)(void *self, const lw_graph *g, const lw_node *n, int i, lw_attr_pack *pack,
                 void *attr);
    /* Can node n read input i (i < 0: write output 0) with a pitch between rows that is larger than
     * a row? Of a slice of rows, input 0: may its result stay there? Of a concatenation of rows, input i:
     * may it lie in the result? NULL: nothing can. */
    bool (*pitched)(void *self, const lw_graph *g, const lw_node *n, int i);
    /* Elements between rows of a value of this type with which products read it fastest, at least a
     * row. NULL: a row. */
    int32_t (*pitch)(void *self, lw_type t);
    /* n: a 3x3 convolution behind nearest upsampling by two, or its data gradient, on operands of
     * type `num`: is the transposed convolution `up` on summed weights faster? NULL: yes. */
    bool (*upconv)(void *self, const lw_node *n, const lw_attr_conv *up, lw_num num);
    /* n adds what the 1x1 convolution `shortcut` makes of pixels of its own: is that faster as more of n's depth? NULL: no. */
    bool (*project)(void *self, const lw_graph *g, const lw_node *n, const lw_node *shortcut);
    /* May products write bf16, whatever they read that is not f32, and add it; norms and concatenations
     * read it? */
    bool bf16_values;
    /* May products of f32 write bf16, too? */
    bool f32_to_bf16;
    /* Are there maxima of windows of bf16 and of bytes? */
    bool narrow_maxima;
    /* Is product, or attention, n faster in f32 than on operands of type `num`? NULL: no. */
    bool (*wide)(void *self, const lw_graph *g, const lw_node *n, lw_num num);
    /* Is this chain of convolutions on so many pictures faster strip by strip? NULL: no. */
    bool (*chain)(void *self, const lw_attr_conv_chain *a, int32_t pictures);
    /* Bytes of values that stay near: to one worker, to all of them. 0: nothing is nearer. */
    int64_t near_one, near_all;
    /* Runs a phase; a full barrier at the end. LW_ESTOPPED: it was cut off. */
    int (*run)(void *self, const lw_launch *l);
    /*
     * Runs steps(arg): phases of one exec, at the same addresses and of the same numbers every time
     * but for the tick, which the device follows by itself. It may record what they start (*r, NULL
     * at first) and start that at once later on. NULL: each phase is started for itself. forget
     * frees what was kept.
     */
    int (*replay)(void *self, lw_recording **r, const struct lw_tick *tick, int (*steps)(void *arg),
                  void *arg);
    void (*forget)(void *self, lw_recording **r);
    /*
     * The device's own clock: mark sets mark k (0, 1, ..) behind all that was started so far; elapsed
     * waits until `to` is reached and says what lies between. NULL: run returns when its work is
     * done, and the host's clock says how long it took. lw_device_time for most.
     */
    int (*mark)(void *self, int32_t k);
    int (*elapsed)(void *self, int32_t from, int32_t to, double *seconds);
    /* *grad_norm: global norm after grad_scale, before clipping. LW_ENUMERIC when it is not finite:
     * nothing was changed. Formulas in kernels/optim/optim.h. */
    int (*update)(void *self, const lw_update *u, double *grad_norm);
    /* dst[n] += src[n], dst[n] = src[n]: sums of gradients. */
    void (*add)(void *self, float *dst, const float *src, int64_t n);
    void (*copy)(void *self, float *dst, const float *src, int64_t n);
    void (*close)(struct lw_device *dev);
} lw_device;

/* For lw_device.pitched: is input i (-1: output 0) of product n rows of what it multiplies or makes, each of
 * which a kernel finds for itself? */
bool lw_product_pitched(const lw_node *n, int i);

/* Runs of an exec until the next costs what those behind it do: a device that records does so in the second, and where states
 * change places from run to run (lw_exec_advance) in the third and the fourth. */
static inline int lw_device_warm_runs(const lw_device *d, bool advances)
{
    return !d->replay ? 1 : advances ? 4 : 2;
}

/* Has it inputs and results in memory of its own, so that the host can write the next batch while it computes one? */
static inline bool lw_device_is_apart(const lw_device *d)
{
    return d->memory->write != NULL;
}

/* Marks of lw_device_time; execs that are profiled have those from LW_MARK_STEPS on. */
enum { LW_MARK_BEGIN, LW_MARK_END, LW_MARK_STEPS };
/* Seconds that `times` calls took by the device's clock. */
int lw_device_time(const lw_device *d, int times, int (*call)(void *self), void *self,
                   double *seconds);

#endif
