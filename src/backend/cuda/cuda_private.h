/* SPDX-License-Identifier: Apache-2.0 */
/* Private to backend/cuda: the device, what a lowering receives, and launching. */
#ifndef LW_CUDA_PRIVATE_H
#define LW_CUDA_PRIVATE_H

#include "backend/cuda/cuda.h"
#include "backend/cuda/cuda_driver.h"
#include "backend/cuda/kernels/cuda_args.h"

/* LW_CUDA_matmul, ..: one per row of cuda_kernels.def. */
typedef enum lw_cuda_kernel {
#define K(family, name, args, threads) LW_CUDA_##name,
#include "backend/cuda/cuda_kernels.def"
#undef K
    LW_CUDA_KERNELS
} lw_cuda_kernel;

enum {
#define F(family) LW_CUDA_FAMILY_##family,
#include "backend/cuda/cuda_families.def"
#undef F
    LW_CUDA_FAMILIES
};
enum { LW_CUDA_AHEAD = 4 };    /* recorded runs that are begun and not done, most */
enum { LW_CUDA_TILES = 4096 }; /* that a product may have whose blocks share tiles */

typedef struct cuda {
    lw_device dev;   /* first: what lw_device.self points to is both */
    lw_device *host; /* its pool and kernels are those beside the GPU */
    lw_cuda_driver cu;
    int number;
    bool retained;
    lw_cu_context *context;
    lw_cu_stream *stream;
    lw_cu_module *module[LW_CUDA_FAMILIES];
    lw_cu_function *kernel[LW_CUDA_KERNELS];
    bool
        hopper; /* compute capability 9.0: its kernels are there, and those of recordings start early */
    int multiprocessors;
    lw_cu_ptr arrived; /* [LW_CUDA_TILES] uint32_t: zeros between products */
    lw_memory memory;
    lw_cu_event *begun[LW_CUDA_AHEAD]; /* behind the last recorded runs */
    uint64_t n_begun;
    lw_cu_event *sent;  /* behind the last copy from the host that nobody has waited for */
    lw_cu_event **mark; /* [n_marks]; NULL: never set */
    size_t n_marks;
    lw_cu_ptr tick_at; /* the tick, where kernels read it */
    lw_cuda_tick tick; /* and what was written there last */
    bool recording;    /* a run is being captured: nothing but launches */
    char why[256];
    char name[32];
} cuda;

typedef struct cuda_lower {
    cuda *d;
    lw_arena *arena;
    const lw_graph *g;
    const lw_node *n;
    uint32_t fixed; /* lw_device.lower's */
    lw_lowered *out;
} cuda_lower;
typedef int cuda_lower_fn(cuda_lower *c);

/* Each op that runs on GPUs; the table in cuda_device.c has holes for the others. */
cuda_lower_fn lw_cuda_lower_matmul, lw_cuda_lower_conv2d, lw_cuda_lower_conv2d_dx,
    lw_cuda_lower_upconv_weight, lw_cuda_lower_group_norm, lw_cuda_lower_attention,
    lw_cuda_lower_softmax, lw_cuda_lower_ew, lw_cuda_lower_reduce, lw_cuda_lower_concat,
    lw_cuda_lower_slice, lw_cuda_lower_pad, lw_cuda_lower_subsample, lw_cuda_lower_upsample,
    lw_cuda_lower_patches, lw_cuda_lower_pool, lw_cuda_lower_embedding, lw_cuda_lower_random,
    lw_cuda_lower_dropout, lw_cuda_lower_at_step, lw_cuda_lower_reverse_step,
    lw_cuda_lower_drift_field, lw_cuda_lower_depthwise, lw_cuda_lower_cross_entropy,
    lw_cuda_lower_embedding_bag, lw_cuda_lower_rope, lw_cuda_lower_pair_distance,
    lw_cuda_lower_feature_stats, lw_cuda_lower_resize, lw_cuda_lower_frame_to_rgb,
    lw_cuda_lower_rgb_to_frame, lw_cuda_lower_cast, lw_cuda_lower_pack;
/* lw_device.pack: weights of products of bf16. */
bool lw_cuda_wants_pack(void *self, const lw_graph *g, const lw_node *n, int i, lw_attr_pack *pack,
                        void *attr);

/* lw_device.project, pitched */
bool lw_cuda_projects(void *self, const lw_graph *g, const lw_node *n, const lw_node *shortcut);
bool lw_cuda_pitched(void *self, const lw_graph *g, const lw_node *n, int i);

/* Starts a kernel; args: the struct that cuda_kernels.def names. Failures are kept and told by the
 * device's next run. */
void lw_cuda_launch(cuda *d, lw_cuda_kernel k, int64_t blocks, int64_t across, const void *args);
/* The same of blocks that are clusters, so many neighbours each. */
void lw_cuda_launch_clusters(cuda *d, lw_cuda_kernel k, int64_t blocks, int32_t of,
                             const void *args);
/* What kernels read the tick from. */
const lw_cuda_tick *lw_cuda_tick_at(const cuda *d);
/* Counters of a product's tiles. */
uint32_t *lw_cuda_arrived(const cuda *d);
/* The calling thread is in the device's context, without which the driver refuses most calls. LW_EDEVICE: a call failed
 * before. */
int lw_cuda_enter(cuda *d);
/* LW_ESTOPPED: the pool's observer asks for it. */
int lw_cuda_go_on(const cuda *d);
/* A phase follows: the calling thread computes on this device, kernels read this tick. */
int lw_cuda_follow(cuda *d, const struct lw_tick *tick);
/* lw_device.replay and forget. */
int lw_cuda_replay(void *self, lw_recording **r, const struct lw_tick *tick,
                   int (*steps)(void *arg), void *arg);
void lw_cuda_forget(void *self, lw_recording **r);
/* lw_device.mark and elapsed. */
int lw_cuda_mark(void *self, int32_t k);
int lw_cuda_elapsed(void *self, int32_t from, int32_t to, double *seconds);
void lw_cuda_free_marks(cuda *d);
/* Blocks for n elements, a thread each; larger n are looped over. */
int64_t lw_cuda_blocks(lw_cuda_kernel k, int64_t n);
/* 0, or keeps the first failure: what was asked of the driver, and its answer. */
int lw_cuda_check(cuda *d, int rc, const char *what);

/* What every step's record begins with. */
typedef struct cuda_step {
    cuda *d;
} cuda_step;
void *lw_cuda_arg(cuda_lower *c, size_t bytes, lw_task_fn *fn);
/* LW_EDEVICE naming the op and what of it is not there. */
int lw_cuda_lacks(const cuda_lower *c, const char *what);
/* Refuses every operand and result that is not f32, but for input `ids` (-1: none). */
int lw_cuda_f32(const cuda_lower *c, int ids);
/* No kernel of a recording writes input i: they may read it before they wait. */
static inline bool cuda_fixed(const cuda_lower *c, int i)
{
    return c->fixed >> i & 1;
}

static inline lw_type cuda_in(const cuda_lower *c, int i)
{
    return lw_val_type(c->g, c->n->in[i]);
}
static inline lw_type cuda_out(const cuda_lower *c, int i)
{
    return lw_val_type(c->g, c->n->out[i]);
}
static inline bool cuda_has(const cuda_lower *c, int i)
{
    return i < c->n->n_in && lw_val_ok(c->n->in[i]);
}
/* Elements between rows of input i, of output 0. */
static inline int32_t cuda_in_pitch(const cuda_lower *c, int i)
{
    return cuda_has(c, i) ? lw_val_pitch(c->g, c->n->in[i]) : 0;
}
static inline int32_t cuda_out_pitch(const cuda_lower *c)
{
    return lw_val_pitch(c->g, c->n->out[0]);
}

#endif
