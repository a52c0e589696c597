/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which operands may be columns of a wider value, as parts of a concatenation that were written in
 * place: those whose kernels take a pitch, the number of elements from one row to the next.
 */
#include "backend/cuda/cuda_private.h"

/* Do rows `pitch` elements apart, from element `at` of a row on, begin at pieces of 16 bytes, as the fast kernels read them? */
static bool rows_in_pieces(lw_dtype type, int32_t at, int32_t pitch)
{
    return (at | pitch) % (16 / (int32_t)lw_dtype_size(type)) == 0;
}

bool lw_cuda_pitched(void *self, const lw_graph *g, const lw_node *n, int i)
{
    (void)self;
    const lw_type t = lw_val_type(g, i < 0 ? n->out[0] : n->in[i]);
    if (t.dtype != LW_F32 && t.dtype != LW_BF16)
        return false;
    const lw_attr_axis *at = n->attr;
    switch (n->op) {
    case LW_OP_GROUP_NORM: /* rows of x, of several pixels each picture; of scales and of shifts */
        return (i == 0 && lw_type_count(t) > (int64_t)t.dim[0] * lw_type_last(t)) || i == 3 ||
               i == 4;
    case LW_OP_SLICE:
        return i == 0 && at->axis == t.rank - 1 &&
               rows_in_pieces(t.dtype, at->begin, lw_type_last(t));
    case LW_OP_CONCAT:
        return i >= 0 && at->axis == t.rank - 1 &&
               rows_in_pieces(t.dtype, i ? lw_type_last(lw_val_type(g, n->in[0])) : 0,
                              lw_type_last(lw_val_type(g, n->out[0])));
    default:
        return lw_product_pitched(n, i);
    }
}
