/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of one op each: a row of numbers and a function that builds it. Private to this folder
 * and to the program that counts instructions. */
#ifndef LW_BENCH_OP_H
#define LW_BENCH_OP_H

#include "bench/bench_case.h"
#include "bench/bench_workload.h"

typedef struct lw_bench_op {
    const char *name;
    lw_workload_build_fn *build; /* `what` is this row */
    int32_t p[6];                /* sizes; what each is stands at the builder */
} lw_bench_op;

/* p: C, O, side, kernel, stride, B. [B,side,side,C] -> O channels, with a bias. */
int lw_bench_build_conv(lw_builder *b, const void *what);
/* A kernel of one row, without a bias. */
int lw_bench_build_conv_row(lw_builder *b, const void *what);
/* The same of what nearest upsampling by two makes of half the side. */
int lw_bench_build_upsampled_conv(lw_builder *b, const void *what);
int lw_bench_build_conv_dx(lw_builder *b, const void *what);
int lw_bench_build_conv_dw(lw_builder *b, const void *what);
/* p: M, N, K. [M,K] x [N,K] with a bias. */
int lw_bench_build_linear(lw_builder *b, const void *what);
/* A tenth of the results dropped. */
int lw_bench_build_linear_dropout(lw_builder *b, const void *what);
int lw_bench_build_linear_dx(lw_builder *b, const void *what);
int lw_bench_build_linear_dw(lw_builder *b, const void *what);
/* p: B, T, C, heads. _train: the gradient too. */
int lw_bench_build_attention(lw_builder *b, const void *what);
int lw_bench_build_attention_train(lw_builder *b, const void *what);
/* p: B, side, C, groups. GroupNorm, scale and shift, SiLU. */
int lw_bench_build_norm(lw_builder *b, const void *what);
int lw_bench_build_norm_train(lw_builder *b, const void *what);
/* p: B, side, C. */
int lw_bench_build_silu(lw_builder *b, const void *what);
int lw_bench_build_add(lw_builder *b, const void *what);
int lw_bench_build_upsample(lw_builder *b, const void *what);
int lw_bench_build_avg_pool(lw_builder *b, const void *what);
int lw_bench_build_resize(lw_builder *b, const void *what); /* to twice the side */
int lw_bench_build_stats(lw_builder *b, const void *what);
int lw_bench_build_mean(lw_builder *b, const void *what);
int lw_bench_build_normal(lw_builder *b, const void *what);
int lw_bench_build_dropout(lw_builder *b, const void *what);
/* p: rows, columns. */
int lw_bench_build_softmax(lw_builder *b, const void *what);
int lw_bench_build_cross_entropy(lw_builder *b, const void *what);
/* p: rows, rows, columns, lw_distance. _train: the gradient of the first rows too. */
int lw_bench_build_pairs(lw_builder *b, const void *what);
int lw_bench_build_pairs_train(lw_builder *b, const void *what);
/* p: groups, generated, positive, unconditional, slots, channels; three temperatures, f and stats
 * normalised over the generated samples too. */
int lw_bench_build_field(lw_builder *b, const void *what);
int lw_bench_build_field_bf16(lw_builder *b, const void *what); /* distances from bf16 products */

/* Runs a table of such cases as a suite's. */
int lw_bench_run_ops(lw_bench_run *r, const lw_bench_op *op, size_t n);
/* Pictures at another size, by the kernels alone. */
int lw_bench_resample(lw_bench_run *r);

#endif
