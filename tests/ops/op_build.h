/* SPDX-License-Identifier: Apache-2.0 */
/* What cases of ops are written with. */
#ifndef LW_TESTS_OP_BUILD_H
#define LW_TESTS_OP_BUILD_H

#include "base/base.h"
#include "ir/ir.h"
#include "ops/op_check.h"

#define G c->g
/* An input between lo and hi, of these sizes, whose gradient is checked. */
#define X(lo, hi, ...) op_f32(c, true, lo, hi, DIMS(__VA_ARGS__))

/* Rows of a table. */
#define CASE(name, build, tol, grad_tol)  \
    {                                     \
        name, build, tol, grad_tol, false \
    }
#define KINKS(name, build, tol, grad_tol) \
    {                                     \
        name, build, tol, grad_tol, true  \
    }

static lw_val bf16(op_ctx *c, lw_val x)
{
    return lw_cast(G, x, LW_BF16, LW_NOVAL);
}

#endif
