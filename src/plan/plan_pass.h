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
/* Nodes made beside old node n stand in its scope: enters that and returns the former one. */
const char *lw_rewrite_scope(lw_rewrite *r, const lw_node *n);
/* The node with these inputs and attributes instead. */
int lw_rewrite_emit(lw_rewrite *r, const lw_node *n, lw_op op, const lw_val *in, int n_in,
                    const void *attr, size_t attr_size);
/* Output 0 of the node op(in) with these attributes in r->to: the one that is there, or a new one. Of the forward pass
 * only such a node: a forward run makes nothing of the backward pass. */
lw_val lw_rewrite_shared(lw_rewrite *r, lw_op op, lw_val in, const void *attr, size_t attr_size);
/* Parts along the first dimension, of which there is one at least; `part` is written. */
lw_val lw_rewrite_join(lw_graph *g, lw_val *part, int n);
/* The new value that stands for old value v (invalid stays invalid). */
lw_val lw_rewrite_map(const lw_rewrite *r, lw_val v);

/* mark[node]: no input and no random draw among its ancestors: made once per version of the
 * parameters. */
void lw_plan_mark_params_only(const lw_graph *g, bool *mark);
/* The same in memory of its own (lw_free), or NULL. */
bool *lw_plan_params_only(const lw_graph *g);
/* lw_rewrite_graph, to whose fn that is arg: which nodes of r->from depend on parameters only. */
int lw_rewrite_params_only(lw_graph **g, lw_device *dev, lw_rewrite_fn *fn);

/* Is there a backward pass? */
bool lw_plan_has_gradients(const lw_graph *g);

/* ---- the passes, in order -------------------------------------------------------------------- */

/* The check before the first pass and after every rewriting one: each node inferred again; order,
 * number of outputs and types must be what is recorded. */
int lw_plan_verify(const lw_graph *g);

/* A rewriting pass replaces *g. What each does stands at the top of its file, plan_<pass>.c; which
 * run when is the table in plan_compile.c. */
typedef int lw_rewrite_pass(lw_graph **g, lw_device *dev, const lw_compile_opts *o);
lw_rewrite_pass lw_pass_simplify, lw_pass_upconv, lw_pass_fuse, lw_pass_join, lw_pass_precision,
    lw_pass_project, lw_pass_pack, lw_pass_chain, lw_pass_slices, lw_pass_outputs,
    lw_pass_recompute;

/* ---- narrow products ------------------------------------------------------------------------- */

enum { LW_THIN = 8 }; /* channels; below, a product stays f32 */
/* A product whose operands may be narrow: no row per sample, not thin. */
bool lw_product_narrow(const lw_graph *g, const lw_node *n, lw_product *out);
/* Name of the weight of a product that int8 can compute when it has a range; NULL: of no such one. */
const char *lw_product_int8_weight(const lw_graph *g, const lw_node *n);
/* Edge of c, or of NULL, that feeds a forward product; -1: none. */
int32_t lw_calibration_edge(const lw_calibration *c, const lw_graph *g, const lw_node *n);
/* LW_EUSAGE: without ranges; LW_EFORMAT: of another network, but of a part of one. */
int lw_calibration_check(const lw_calibration *c, const lw_graph *g, bool part);

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
    uint32_t work, table;                    /* slots of these; 0 = none */
    lw_cost cost;
} lw_plan_step;

typedef struct lw_plan_port {
    const char *name;
    lw_type type;
    uint32_t slot;
    const lw_attr_param *grad_of; /* outputs bound to the gradient slab */
    int next; /* states: 1 + the number of the input that the next run reads it as; 0: none */
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

/* Prepared data of execs on one device, counted; plan_derived.c says which of them share it. */
typedef struct lw_derived {
    struct lw_derived *next; /* of the device's */
    uint64_t key;
    int users;
    bool made; /* from these versions of the stores */
    char *data;
    size_t bytes;
    uint64_t version[]; /* per store of the plan */
} lw_derived;
/* The block that an exec of p reads, one more user of it. NULL (message set): out of memory. */
lw_derived *lw_derived_take(const lw_plan *p, lw_slab weights);
/* Bytes that this would allocate: 0 where the block is there. */
size_t lw_derived_room(const lw_plan *p, lw_slab weights);
void lw_derived_drop(lw_device *dev, lw_derived **pp);
/* Did a store's version move since the block was made? It is up to date from now on: who asks runs
 * the prepare steps. */
bool lw_derived_stale(lw_derived *d, const lw_plan *p, lw_slab weights);

/* A pass over the finished graph fills the plan: schedule, place, lower, memory. */
typedef int lw_plan_pass(lw_plan *p);
lw_plan_pass lw_pass_schedule, lw_pass_place, lw_pass_lower, lw_pass_memory;

/* Books a workspace of step k: its slot, 0 when memory ran out. */
uint32_t lw_plan_new_work(lw_plan *p, size_t bytes, int k);
/* The slot of a table, which is plan memory; 0 when memory ran out. */
uint32_t lw_plan_new_table(lw_plan *p, const void *data, size_t bytes);

#endif
