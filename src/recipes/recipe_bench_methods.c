/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to compute a network that are timed beside each other. */
#include "recipes/recipe_bench_case.h"

const lw_bench_method lw_bench_methods[] = {
    {"f32-unfused", "_unfused", {.opt = 0}, LW_NUM_F32, true, false},
    {"f32", "", {.opt = 1}, LW_NUM_F32, true, false},
    {"f32-recompute", "_recompute", {.opt = 1, .recompute = true}, LW_NUM_F32, true, true},
};
const size_t lw_bench_n_methods = LW_COUNT(lw_bench_methods);
