/* SPDX-License-Identifier: Apache-2.0 */
/* Without any instruction set in particular, the choice, and products in blocks on the pool. */
#define DENSE lw_dense_plain
#define LANES 2
#define VECTORS 2
#define ROWS 4
#define EACH_ROW(X) X(0) X(1) X(2) X(3)
#include "eval/eval_dense_body.inc"

const lw_dense *lw_dense_best(void)
{
    lw_isa isa;
    if (lw_isa_chosen(&isa) != 0)
        isa = LW_ISA_REF;
#if defined(__x86_64__)
    if (isa >= LW_ISA_AVX512)
        return &lw_dense_avx512;
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    if (isa >= LW_ISA_AVX2)
        return &lw_dense_avx2;
#endif
    return &lw_dense_plain;
}

size_t lw_gemm_doubles(int64_t m, int64_t n)
{
    return (size_t)(LW_ROUND_UP(LW_MIN(m, LW_GEMM_M), 8) + LW_ROUND_UP(LW_MIN(n, LW_GEMM_N), 24)) *
           LW_GEMM_DEPTH;
}

typedef struct gemm_job {
    double *c;
    int64_t ldc, m, n, k, across; /* blocks of b */
    double scale;
    lw_operand a, b;
    bool upper;
    double *memory; /* [workers][each] */
    size_t each;
} gemm_job;

static lw_operand from_row(const lw_operand *x, int64_t i)
{
    lw_operand at = *x;
    if (at.f64)
        at.f64 += i * at.row;
    else
        at.f32 += i * at.row;
    return at;
}

static void gemm_task(void *arg, int64_t task, int worker)
{
    const gemm_job *job = arg;
    int64_t i = task / job->across * LW_GEMM_M, j = task % job->across * LW_GEMM_N;
    int64_t m = LW_MIN(LW_GEMM_M, job->m - i), n = LW_MIN(LW_GEMM_N, job->n - j);
    if (job->upper && j + n <= i)
        return;
    lw_operand a = from_row(&job->a, i), b = from_row(&job->b, j);
    lw_dense_best()->gemm(job->c + i * job->ldc + j, job->ldc, job->scale, &a, m, &b, n, job->k,
                          job->memory + (size_t)worker * job->each);
}

int lw_gemm(lw_pool *pool, double *c, int64_t ldc, double scale, lw_operand a, int64_t m,
            lw_operand b, int64_t n, int64_t k, bool upper)
{
    size_t workers = pool ? (size_t)lw_pool_size(pool) : 1, each = lw_gemm_doubles(m, n);
    LW_CLEANUP(lw_free) double *memory = lw_calloc(LW_MAX(workers * each, 1), sizeof *memory);
    if (!memory)
        return LW_ENOMEM;
    gemm_job job = {c, ldc, m, n, k, LW_CEIL_DIV(n, LW_GEMM_N), scale, a, b, upper, memory, each};
    lw_pool_run(pool, LW_CEIL_DIV(m, LW_GEMM_M) * job.across, gemm_task, &job);
    return 0;
}
