/* SPDX-License-Identifier: Apache-2.0 */
/* What a model function receives: a graph, a parameter store behind two callbacks, and the mode. */
#ifndef LW_IR_BUILDER_H
#define LW_IR_BUILDER_H

#include "ir/ir_ops.h"

typedef enum lw_init_kind {
    LW_INIT_ZEROS,
    LW_INIT_ONES,
    LW_INIT_NORMAL,
    LW_INIT_UNIFORM,
    LW_INIT_SINCOS /* [.., T, C]: places of a square of T, by sines and cosines (C a multiple of 4) */
} lw_init_kind;
typedef struct lw_init {
    lw_init_kind kind;
    float scale; /* standard deviation, or half width of the uniform range */
} lw_init;

/* Which flat slab of a store an address is asked for. */
typedef enum lw_slab {
    LW_SLAB_PARAM,
    LW_SLAB_GRAD,
    LW_SLAB_EMA,
    LW_SLAB_M,
    LW_SLAB_V,
    LW_SLABS
} lw_slab;

/* How the graph and the plan see a store (store/ implements it). One instance lives in
 * each store. */
typedef struct lw_params {
    void *self;
    bool frozen;
    /* Finds or declares `name`; LW_ESHAPE when it exists at another type, LW_EFORMAT when the names
     * are fixed. */
    int (*declare)(void *self, const char *name, lw_type type, lw_init init, int32_t *index);
    /* From here on addresses are in this memory. LW_EUSAGE: they are in another device's. */
    int (*place)(void *self, const lw_memory *memory);
    /* Memory of parameter `index` in a slab; NULL when that slab does not exist. */
    void *(*address)(void *self, int32_t index, lw_slab slab);
    /* Grows whenever the parameters' bytes may have changed: prepared data is made again. */
    uint64_t (*version)(void *self, lw_slab slab);
} lw_params;

typedef struct lw_builder lw_builder;
/* What becomes of a layer's output y before anything reads it. layer: its scope's name. before: what
 * went into a residual block whose output y is; absent for other layers. */
typedef struct lw_layer_hook {
    void *self;
    lw_val (*output)(void *self, lw_builder *b, const char *layer, lw_val before, lw_val y);
} lw_layer_hook;

struct lw_builder {
    lw_graph *g;
    const lw_params *params;
    bool training;             /* dropout live */
    lw_val rows;               /* i64[B] row ids for random ops; may be absent when nothing draws */
    const lw_layer_hook *hook; /* NULL: outputs stay as they are */
    int32_t window;            /* of attention over pictures (lw_attention_places); 0: none */
};
/* y through the builder's hook, as the output of layer `name` of the current scope ("": of the scope
 * itself). Linear layers do that themselves; models call it behind blocks, and where libraries have a
 * Dropout module. */
lw_val lw_layer_done(lw_builder *b, const char *name, lw_val before, lw_val y);

/* Parameter `name` under the current scope. */
lw_val lw_param(lw_builder *b, const char *name, lw_type type, lw_init init);

/* Layers: parameters "weight" and "bias" under scope `name`, PyTorch's default initialisation
 * (uniform +-1/sqrt(fan_in) for both). */
lw_val lw_linear(lw_builder *b, const char *name, lw_val x, int out, bool bias);
typedef struct lw_conv_opts {
    int kernel, stride, pad, pad_end; /* pad_end: more zeros below and to the right */
    bool no_bias, zero_init;
} lw_conv_opts;
lw_val lw_conv2d(lw_builder *b, const char *name, lw_val x, int out, lw_conv_opts o);
typedef struct lw_norm_opts {
    int groups;
    float eps; /* 0: 1e-5 */
    lw_act act;
    lw_val scale, shift; /* [B,C] each, or absent */
} lw_norm_opts;
lw_val lw_group_norm(lw_builder *b, const char *name, lw_val x, lw_norm_opts o);
/* Over the last dimension of x [.., C], of any rank; + residual of x's shape, or absent. eps 0:
 * 1e-5 */
lw_val lw_layer_norm(lw_builder *b, const char *name, lw_val x, float eps, lw_val residual);

#endif
