/* SPDX-License-Identifier: Apache-2.0 */
/* Which operands may lie in the rows of something wider: those whose kernels take a pitch. */
#include "backend/cpu/cpu_private.h"

/* A tile reads twelve rows side by side: when they start a multiple of a page apart, all meet in one
 * set of the first-level cache, which holds eight lines. 400 x 768 x 3072 takes 1.11 times as long. */
int32_t lw_cpu_pitch(void *self, lw_type t)
{
    enum { PAGE = 4096, LINE = 64 };
    (void)self;
    int32_t row = lw_type_last(t), size = (int32_t)lw_dtype_size(t.dtype);
    return row > 0 && (int64_t)row * size % PAGE == 0 ? row + LINE / size : row;
}

bool lw_cpu_pitched(void *self, const lw_graph *g, const lw_node *n, int i)
{
    (void)self;
    const lw_type t = lw_val_type(g, i < 0 ? n->out[0] : n->in[i]);
    if (t.dtype != LW_F32 && t.dtype != LW_BF16)
        return false;
    if (n->op == LW_OP_GROUP_NORM || n->op == LW_OP_CAST)
        return i == 0;
    if (n->op == LW_OP_CONCAT) /* along the last dimension a row is a row of the operand */
        return ((const lw_attr_axis *)n->attr)->axis == t.rank - 1;
    return lw_product_pitched(n, i);
}
