/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to compute a network that are timed beside each other. */
#include "bench/bench_case.h"

const lw_bench_method lw_bench_methods[] = {
    {"f32-unfused", "_unfused", {.opt = 0}, LW_NUM_F32, true, false},
    {"f32", "", {.opt = 1}, LW_NUM_F32, true, false},
    {"f32-recompute", "_recompute", {.opt = 1, .recompute = true}, LW_NUM_F32, true, true},
    {"bf16", "_bf16", {.opt = 1, .precision = LW_NUM_BF16}, LW_NUM_BF16, true, false},
    {"int8", "_int8", {.opt = 1, .precision = LW_NUM_S8}, LW_NUM_S8, false, false},
};
const size_t lw_bench_n_methods = LW_COUNT(lw_bench_methods);

bool lw_bench_asked_for(const lw_bench_run *r, const lw_bench_method *m)
{
    return m->opts.opt && !m->train_only && (int32_t)m->num == r->config->precision;
}
