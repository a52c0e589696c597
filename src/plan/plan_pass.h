/* SPDX-License-Identifier: Apache-2.0 */
/* Private to plan: what passes share. A rewriting pass copies the graph node by node into a new
 * one. */
#ifndef LW_PLAN_PASS_H
#define LW_PLAN_PASS_H

#include "plan/plan.h"

/* ---- rewriting ------------------------------------------------------------------------------- */

/* One rewrite: `from` is read in order, `to` grows; map[old value id] = new value. */
typedef struct lw_rewrite {
    const lw_graph *from;
    lw_graph *to;
    lw_val *map;
    uint32_t *uses; /* of each old value: consumers plus outputs */
    bool *live;     /* per old node: reaches an output */
    lw_device *dev;
} lw_rewrite;

/* Emits what stands for node n into r->to and sets r->map of its outputs. */
typedef int lw_rewrite_fn(lw_rewrite *r, const lw_node *n, void *arg);

/* Runs fn over the live nodes of *g and replaces *g by the result, outputs carried over. */
int lw_rewrite_graph(lw_graph **g, lw_device *dev, lw_rewrite_fn *fn, void *arg);
/* As lw_rewrite_graph but leaves `from` alone (it belongs to the caller). */
int lw_rewrite_from(const lw_graph *from, lw_device *dev, lw_rewrite_fn *fn, void *arg,
                    lw_graph **out);
/* The default: the same node on mapped inputs; leaf attributes are copied deeply. */
int lw_rewrite_copy(lw_rewrite *r, const lw_node *n, void *arg);
/* The node with these inputs and attributes instead. */
int lw_rewrite_emit(lw_rewrite *r, const lw_node *n, lw_op op, const lw_val *in, int n_in,
                    const void *attr, size_t attr_size);
/* The new value that stands for old value v (invalid stays invalid). */
lw_val lw_rewrite_map(const lw_rewrite *r, lw_val v);

/* ---- the passes, in order -------------------------------------------------------------------- */

int lw_pass_verify(const lw_graph *g);
int lw_pass_simplify(lw_graph **g, lw_device *dev);
/* Upsampling by two and 3x3 convolution in one, where the device says that it pays for operands of
 * this type. */
int lw_pass_upconv_for(lw_graph **g, lw_device *dev, lw_num num);
int lw_pass_upconv(lw_graph **g, lw_device *dev); /* f32 */
int lw_pass_fuse(lw_graph **g, lw_device *dev);
int lw_pass_precision(lw_graph **g, lw_device *dev, lw_num num, const lw_calibration *c);
int lw_pass_pack(lw_graph **g, lw_device *dev);
/* mark[node]: no input and no random draw among its ancestors: made once per version of the
 * parameters. */
void lw_plan_mark_params_only(const lw_graph *g, bool *mark);
/* Makes every output a value of its own: copies where one is a leaf, prepared, or named twice. */
int lw_pass_outputs(lw_graph **g, lw_device *dev);
/* Values that are cheap to make are made again in the backward pass instead of stored. */
int lw_pass_recompute(lw_graph **g, lw_device *dev);

/* ---- the plan -------------------------------------------------------------------------------- */

typedef enum lw_place {
    LW_PLACE_NONE,
    LW_PLACE_FRAME,
    LW_PLACE_DERIVED,
    LW_PLACE_PARAM,
    LW_PLACE_CONST,
    LW_PLACE_VIEW
} lw_place;

/* Where a root value lives. Aliases (reshape, in-place) share their root's slot. A view lives in
 * the rows of slot `base`, `offset` bytes behind its start. */
typedef struct lw_slot {
    lw_place place;
    size_t bytes, offset;
    uint32_t base;       /* of a view */
    int32_t first, last; /* steps that write and read it; bound values live for ever */
    const lw_attr_param *param;
    const void *data; /* constant */
    uint32_t val;     /* a value id of the compiled graph, for dumps */
} lw_slot;

typedef struct lw_plan_step {
    const lw_node *node;
    lw_lowered low;
    uint32_t in[LW_MAX_IN], out[LW_MAX_OUT]; /* slot numbers; 0 = absent */
    uint32_t work;                           /* slot of the workspace; 0 = none */
    lw_cost cost;
} lw_plan_step;

typedef struct lw_plan_port {
    const char *name;
    lw_type type;
    uint32_t slot;
    const lw_attr_param *grad_of; /* outputs bound to the gradient slab */
} lw_plan_port;

struct lw_plan {
    lw_arena *arena;
    lw_graph *graph; /* the compiled graph: types, names, attributes */
    lw_device *dev;
    int opt;
    lw_plan_step *step;     /* prepare steps first */
    int n_prepare, n_steps; /* n_steps counts all */
    lw_slot *slot;          /* [1 .. n_slots] */
    uint32_t n_slots;
    size_t cap_slots;
    uint32_t *slot_of; /* value id -> slot */
    lw_plan_port *input, *output;
    int n_input, n_output;
    const lw_params **store; /* distinct stores named by the graph */
    int n_store;
    size_t frame_bytes, derived_bytes, scratch_bytes;
};

/* Orders nodes into prepare and run steps, lowers them and computes lifetimes. */
int lw_pass_schedule(lw_plan *p);
/* Operands of concatenations move into the result, so that nothing is copied. */
void lw_pass_place(lw_plan *p);
int lw_pass_lower(lw_plan *p);
int lw_pass_memory(lw_plan *p);

#endif
