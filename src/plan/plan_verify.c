/* SPDX-License-Identifier: Apache-2.0 */
/* The check between passes, in every build: a graph must be what its records say. */
#include "plan/plan_pass.h"

int lw_plan_verify(const lw_graph *g)
{
    LW_TRY(lw_graph_error(g));
    for (uint32_t k = 0; k < lw_graph_node_count(g); k++) {
        const lw_node *n = lw_graph_node(g, k);
        lw_infer inf = {0};
        for (int i = 0; i < n->n_in; i++)
            LW_ASSERT(!lw_val_ok(n->in[i]) || lw_val_node(g, n->in[i])->index < n->index,
                      "node %u reads a later value", n->index);
        LW_TRY(lw_op_get(n->op)->infer(g, n, &inf));
        LW_ASSERT(inf.n_out == n->n_out, "node %u (%s): %d outputs, record says %d", n->index,
                  lw_op_get(n->op)->name, n->n_out, inf.n_out);
        for (int i = 0; i < n->n_out; i++)
            LW_ASSERT(lw_type_eq(inf.out[i], lw_val_type(g, n->out[i])),
                      "node %u (%s): type changed", n->index, lw_op_get(n->op)->name);
    }
    return 0;
}
