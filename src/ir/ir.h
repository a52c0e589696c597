/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ir: what to compute. Types, an append-only graph, one record per op. Depends on base only.
 *
 * Read in this order: ir_type (shapes), ir_graph (nodes, values, scopes, the sticky error),
 * ir_ops (attributes and the functions that append nodes), ir_builder (scoped parameters for model
 * functions), then ops/ (one file per family: shape rule, gradient rule, cost).
 *
 *    lw_graph ── nodes[] ── in[] ──► values[] {type, producer}
 *        │                 out[] ─┘
 *        └── outputs[] {name, value, gradient-slab binding}
 *
 * A graph owns everything in it through one arena; values are handles (lw_val, id 0 = invalid).
 * Building never needs checking: after the first error every call returns the invalid value and
 * lw_graph_error / lw_compile report that first error with its scope.
 */
#ifndef LW_IR_H
#define LW_IR_H

#include "base/base.h"
#include "ir/ir_type.h"
#include "ir/ir_graph.h"
#include "ir/ir_ops.h"
#include "ir/ir_builder.h"

#endif
