/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of norms: of groups, layers and root mean squares. */
#ifndef LW_TESTS_OP_NORMS_H
#define LW_TESTS_OP_NORMS_H

#include "ops/op_build.h"

static lw_val b_norm_bf16(op_ctx *c)
{
    const lw_attr_norm n = {.groups = 4, .eps = 1e-5f, .act = LW_ACT_SILU, .store = LW_BF16};
    lw_val x = op_f32(c, false, -2, 3, DIMS(2, 5, 3, 24)), one = op_f32(c, false, .5f, 1, DIMS(24));
    lw_val y = lw_graph_op(G, LW_OP_GROUP_NORM, (lw_val[]){x, one, one}, 3, &n, sizeof n);
    return lw_cast(G, y, LW_F32, LW_NOVAL);
}

/* As one element wide, two, in sectors of several groups, in more rows than a GPU's threads keep, and wider than a block. */
static lw_val norm_of(op_ctx *c, int32_t groups, lw_val x)
{
    int32_t n = lw_type_last(lw_val_type(G, x));
    lw_val gamma = op_f32(c, false, .5f, 1.5f, DIMS(n)), beta = op_f32(c, false, -1, 1, DIMS(n));
    return lw_group_norm_op(G, x, gamma, beta, LW_NOVAL, LW_NOVAL, groups, 1e-5f, LW_ACT_SILU);
}
static lw_val b_norm_odd(op_ctx *c)
{
    return norm_of(c, 4, op_f32(c, false, 6, 9, DIMS(1, 66, 70, 12)));
}
static lw_val b_norm_even(op_ctx *c)
{
    return norm_of(c, 3, op_f32(c, false, 6, 9, DIMS(2, 40, 37, 18)));
}
static lw_val b_norm_far(op_ctx *c)
{
    return norm_of(c, 2, op_f32(c, false, 6, 9, DIMS(1, 46, 47, 8)));
}
static lw_val b_norm_sectors(op_ctx *c)
{
    return norm_of(c, 24, op_f32(c, false, -2, 3, DIMS(2, 30, 11, 96)));
}
static lw_val b_norm_wide(op_ctx *c)
{
    return norm_of(c, 1, op_f32(c, false, -2, 3, DIMS(2, 1, 3, 1030)));
}
static lw_val b_norm_rows(op_ctx *c)
{
    return norm_of(c, 2, op_f32(c, false, 6, 9, DIMS(5, 1, 1, 2 * 1100)));
}
static lw_val b_norm(op_ctx *c)
{
    return lw_group_norm_op(G, X(-2, 3, 2, 5, 3, 24), X(.5f, 1.5f, 24), X(-1, 1, 24), LW_NOVAL,
                            LW_NOVAL, 4, 1e-5f, LW_ACT_SILU);
}
static lw_val b_norm_ada(op_ctx *c)
{
    lw_val x = X(-2, 3, 3, 4, 4, 16);
    lw_val gm = X(.5f, 1.5f, 16), bt = X(-1, 1, 16);
    return lw_group_norm_op(G, x, gm, bt, X(-.5f, .5f, 3, 16), X(-1, 1, 3, 16), 8, 1e-5f,
                            LW_ACT_SILU);
}
/* Scale and shift are slices of a result, one of them by an offset that four numbers do not divide, and of a slice. */
static lw_val norm_slices(op_ctx *c, int32_t at, bool twice)
{
    lw_val x = op_f32(c, false, -2, 3, DIMS(3, 4, 4, 16));
    lw_val e = lw_linear_op(G, op_f32(c, false, -.5f, .5f, DIMS(3, 24)),
                            op_f32(c, false, -.5f, .5f, DIMS(36, 24)), LW_NOVAL);
    lw_val shift = lw_slice(G, e, 1, 16 + at, 32 + at);
    if (twice)
        shift = lw_slice(G, lw_slice(G, e, 1, 8, 36), 1, 8 + at, 24 + at);
    return lw_group_norm_op(G, x, op_f32(c, false, .5f, 1.5f, DIMS(16)),
                            op_f32(c, false, -1, 1, DIMS(16)), lw_slice(G, e, 1, 0, 16), shift, 4,
                            1e-5f, LW_ACT_SILU);
}
static lw_val b_norm_slices(op_ctx *c)
{
    return norm_slices(c, 0, false);
}
static lw_val b_norm_slices_odd(op_ctx *c)
{
    return norm_slices(c, 3, false);
}
static lw_val b_norm_slices_twice(op_ctx *c)
{
    return norm_slices(c, 4, true);
}
static lw_val b_norm_relu(op_ctx *c)
{
    return lw_group_norm_op(G, X(-2, 3, 2, 4, 4, 8), X(.5f, 1.5f, 8), X(-1, 1, 8), LW_NOVAL,
                            LW_NOVAL, 8, 1e-5f, LW_ACT_NONE);
}

/* LayerNorm and residual of rows of one slot. */
static lw_val b_layer_norm(op_ctx *c)
{
    lw_val x = X(-1, 1, 2, 3, 7, 50), gamma = X(.5f, 1.5f, 50), beta = X(-1, 1, 50);
    return lw_sqr(G, lw_layer_norm_op(G, x, gamma, beta, X(-1, 1, 2, 3, 7, 50), 1e-5f));
}
static lw_val b_layer_norm_rows(op_ctx *c)
{
    lw_val x = X(-1, 1, 37, 50), gamma = X(.5f, 1.5f, 50), beta = X(-1, 1, 50);
    return lw_layer_norm_op(G, x, gamma, beta, LW_NOVAL, 1e-5f);
}
static lw_val b_rms_norm(op_ctx *c)
{
    lw_val x = lw_rms_norm_op(G, X(-1, 2, 2, 3, 7, 50), X(.5f, 1.5f, 50), 1e-6f);
    return lw_sqr(G, lw_rms_norm_op(G, lw_reshape(G, x, lw_type_of(LW_F32, 4, 2, 21, 5, 10)),
                                    LW_NOVAL, 1e-6f));
}

static const op_case norm_cases[] = {
    CASE("norm_bf16", b_norm_bf16, 8e-3, 0), /* or a bf16 by its last bit */
    CASE("norm", b_norm, 2e-5, 5e-3),
    CASE("norm_odd", b_norm_odd, 2e-5, 0),
    CASE("norm_even", b_norm_even, 2e-5, 0),
    CASE("norm_far", b_norm_far, 2e-5, 0),
    CASE("norm_sectors", b_norm_sectors, 2e-5, 0),
    CASE("norm_wide", b_norm_wide, 2e-5, 0),
    CASE("norm_rows", b_norm_rows, 2e-5, 0),
    CASE("norm_ada", b_norm_ada, 2e-5, 5e-3),
    CASE("norm_slices", b_norm_slices, 2e-5, 0),
    CASE("norm_slices_odd", b_norm_slices_odd, 2e-5, 0),
    CASE("norm_slices_twice", b_norm_slices_twice, 2e-5, 0),
    CASE("norm_plain", b_norm_relu, 2e-5, 5e-3),
    CASE("layer_norm", b_layer_norm, 1e-5, 1e-2),
    CASE("layer_norm_rows", b_layer_norm_rows, 1e-5, 1e-2),
    CASE("rms_norm", b_rms_norm, 1e-5, 1e-2),
};

#endif
