/* SPDX-License-Identifier: Apache-2.0 */
/* Private to backend/cpu: what a lowering receives, and helpers to fill a step. */
#ifndef LW_CPU_PRIVATE_H
#define LW_CPU_PRIVATE_H

#include "backend/cpu/cpu.h"

typedef struct cpu {
    lw_device dev; /* first: what lw_device.self points to is both */
    lw_kernels k;
    lw_conv_mode conv;
    lw_conv_choices tuned;
    double *norm_part; /* partial sums of the longest update yet */
    int64_t norm_parts;
} cpu;

typedef struct cpu_lower {
    const lw_kernels *k;
    lw_device *dev;
    lw_arena *arena;
    const lw_graph *g;
    const lw_node *n;
    lw_lowered *out;
} cpu_lower;

typedef int cpu_lower_fn(cpu_lower *c);

/* One lowering per row of ops.def: lw_cpu_lower_<name>. */
#define OP(NAME, name, doc) cpu_lower_fn lw_cpu_lower_##name;
#include "ir/ops.def"
#undef OP

/* Layouts this device packs weights into (lw_attr_pack.kind). */
enum { CPU_PACK_MATMUL = 1, CPU_PACK_CONV, CPU_PACK_CONV_DX, CPU_PACK_DEPTHWISE };
bool lw_cpu_wants_pack(void *self, const lw_graph *g, const lw_node *n, int i, lw_attr_pack *pack,
                       void *attr);
bool lw_cpu_wants_pack_depthwise(const lw_attr_conv *at, lw_attr_pack *out);
int lw_cpu_lower_pack_depthwise(cpu_lower *c);
int lw_cpu_lower_window(cpu_lower *c); /* attention in windows */
lw_conv_shape lw_cpu_conv_shape(const lw_attr_conv *a, int32_t batch);
/* Side of the Winograd tiles that the device computes this pass with, 0: directly. */
int lw_cpu_conv_tile(const lw_device *d, lw_num num, const lw_conv_shape *s, lw_conv_pass pass);
/* Is it computed over the tiles of conv_rescale.h? f32. */
bool lw_cpu_rescales(const lw_device *d, const lw_conv_shape *s, lw_conv_pass pass);
/* Does it compute the weights' gradient over such tiles? */
bool lw_cpu_conv_weight_tiles(const lw_device *d, lw_num num, const lw_conv_shape *s);

bool lw_cpu_upconv_pays(void *self, const lw_node *n, const lw_attr_conv *up, lw_num num);
bool lw_cpu_chain_pays(void *self, const lw_attr_conv_chain *a, int32_t pictures);
bool lw_cpu_wide(void *self, const lw_graph *g, const lw_node *n, lw_num num);
int32_t lw_cpu_pitch(void *self, lw_type t);
bool lw_cpu_pitched(void *self, const lw_graph *g, const lw_node *n, int i);

int lw_cpu_run(void *self, const lw_launch *l);
int lw_cpu_update(void *self, const lw_update *u, double *grad_norm);
void lw_cpu_add(void *self, float *dst, const float *src, int64_t n);
void lw_cpu_copy(void *self, float *dst, const float *src, int64_t n);

/* A record of `bytes` in plan memory, stored as the step's arg. */
void *lw_cpu_arg(cpu_lower *c, size_t bytes);
void lw_cpu_phase(cpu_lower *c, lw_task_fn *fn, int64_t n_tasks);

static inline lw_type cpu_in(const cpu_lower *c, int i)
{
    return lw_val_type(c->g, c->n->in[i]);
}
static inline lw_type cpu_out(const cpu_lower *c, int i)
{
    return lw_val_type(c->g, c->n->out[i]);
}
/* Elements between rows of operand i, of output 0. */
static inline ptrdiff_t cpu_in_pitch(const cpu_lower *c, int i)
{
    return lw_val_pitch(c->g, c->n->in[i]);
}
static inline ptrdiff_t cpu_out_pitch(const cpu_lower *c)
{
    return lw_val_pitch(c->g, c->n->out[0]);
}
static inline bool cpu_has(const cpu_lower *c, int i)
{
    return i < c->n->n_in && lw_val_ok(c->n->in[i]);
}

/* Ranges of equal size: task t covers [t * step, min(n, (t + 1) * step)). */
typedef struct cpu_range {
    int64_t n, step;
} cpu_range;
static inline int64_t cpu_range_tasks(cpu_range r)
{
    return LW_MAX(LW_CEIL_DIV(r.n, r.step), 1);
}
static inline int64_t cpu_begin(cpu_range r, int64_t t)
{
    return LW_MIN(t * r.step, r.n);
}
static inline int64_t cpu_end(cpu_range r, int64_t t)
{
    return LW_MIN((t + 1) * r.step, r.n);
}
/* n items of `floats` floats each, cut so that a task moves about 32k floats. */
static inline cpu_range cpu_split(int64_t n, int64_t floats)
{
    return (cpu_range){n, LW_MAX(32768 / LW_MAX(floats, 1), 1)};
}

#endif
