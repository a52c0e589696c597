/* SPDX-License-Identifier: Apache-2.0 */
/* Which operands may lie in the rows of something wider: those whose kernels take a pitch. */
#include "backend/cpu/cpu_private.h"

static bool product_pitched(const lw_node *n, int i)
{
    enum { OUTPUT = -1, RESULT_LIKE = 3, RESULT_LIKE_DX = 2 };
    switch (n->op) {
    case LW_OP_MATMUL:
        return !((const lw_attr_matmul *)n->attr)->trans_a &&
               (i == OUTPUT || i == 0 || i == RESULT_LIKE);
    case LW_OP_CONV2D:
    case LW_OP_DEPTHWISE:
        return i == OUTPUT || i == 0 || i == RESULT_LIKE;
    case LW_OP_CONV2D_DX:
    case LW_OP_DEPTHWISE_DX:
        return i == OUTPUT || i == 0 || i == RESULT_LIKE_DX;
    case LW_OP_CONV2D_DW:
    case LW_OP_DEPTHWISE_DW:
        return i == 0 || i == 1;
    default:
        return false;
    }
}

bool lw_cpu_pitched(void *self, const lw_graph *g, const lw_node *n, int i)
{
    (void)self;
    if (lw_val_type(g, i < 0 ? n->out[0] : n->in[i]).dtype != LW_F32)
        return false;
    if (n->op == LW_OP_GROUP_NORM || n->op == LW_OP_CAST)
        return i == 0;
    if (n->op == LW_OP_CONCAT) /* along the last dimension a row is a row of the operand */
        return i >= 0 && ((const lw_attr_axis *)n->attr)->axis == lw_val_type(g, n->in[i]).rank - 1;
    return product_pitched(n, i);
}
