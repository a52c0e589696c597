/* SPDX-License-Identifier: Apache-2.0 */
/* The drift field with products of bf16: how far it is from the oracle, and that nothing else
 * changes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/check.h"
#include "kernels/test_drift.h"
#include "base/base.h"
#include "kernels/kernels.h"

static const lw_drift_shape sizes[] = {
    {.g = 2, .n = 7, .np = 33, .nu = 3, .t = 3, .c = 9, .k = 3, .tau = {0.02, 0.05, 0.2}},
    {.g = 2, .n = 33, .np = 40, .nu = 5, .t = 1, .c = 35, .k = 4, .tau = {0.3, 0.11, 0.05, 0.1}},
    {.g = 1, .n = 65, .np = 70, .nu = 0, .t = 2, .c = 16, .k = 3, .tau = {0.2, 0.05, 0.02}},
    {.g = 2, .n = 130, .np = 300, .nu = 40, .t = 1, .c = 64, .k = 3, .tau = {0.2, 0.05, 0.02}},
    {.g = 1, .n = 20, .np = 31, .nu = 2, .t = 1, .c = 300, .k = 1, .tau = {0.1}},
    {.g = 1, .n = 5, .np = 31, .nu = 2, .t = 1, .c = 300, .k = 1, .tau = {0.1}},
};

/* Relative error of F, L2. */
static double error_of(const drift_problem *p)
{
    double err = 0, norm = 0;
    for (int64_t i = 0; i < p->nf; i++) {
        err += ((double)p->f[i] - p->f_d[i]) * ((double)p->f[i] - p->f_d[i]);
        norm += p->f_d[i] * p->f_d[i];
    }
    return sqrt(err / norm);
}

static void fresh_results(check *t, drift_problem *p)
{
    p->f = check_out(t, p->nf, 1);
    p->dx = check_out(t, p->nf, 1);
}

/* Every regime, each way of keeping distances; bits do not depend on the order of tasks. */
static void products(check *t)
{
    for (size_t i = 0; i < LW_COUNT(sizes); i++) {
        drift_problem p = drift_random(t, sizes[i], 0, 0.3, 0.6);
        drift_oracle(t, &p);
        p.s.num = LW_NUM_BF16;
        for (int r = 0; r < 5; r++) {
            p.s.regime = r & 1 || r == 4 ? LW_DRIFT_SWEEP : LW_DRIFT_TILE;
            p.s.keep = r == 4 ? 2 : r & 2 ? 1 : -1;
            fresh_results(t, &p);
            drift_run(t, &p, 0);
            double error = error_of(&p);
            drift_expect(t, error, 0, 2e-2, "F, relative"); /* worst of 31 seeds: 1.2e-2 */
            if (t->isa != LW_ISA_REF && error < 1e-5)
                fail_msg("F is off by %.3g only: products are not of bf16", error);
            for (int k = 0; k < LW_DRIFT_STATS(p.s.k); k++)
                drift_expect(t, (double)p.stats[k], p.stats_d[k], 3e-3, "statistics");
            float *f = p.f, *dx = p.dx;
            fresh_results(t, &p);
            drift_run(t, &p, 1);
            check_same(t, p.f, f, (size_t)p.nf * sizeof(float), "order of tasks, F");
            check_same(t, p.dx, dx, (size_t)p.nf * sizeof(float), "order of tasks, dX");
        }
        check_next(t);
    }
}

/* Vectors that are all the same have distance 0 (1e-4, the least there is), whatever rounding does
 * to them, and nothing moves. */
static void nothing_apart(check *t)
{
    drift_problem p = drift_new(
        t, (lw_drift_shape){.g = 1, .n = 40, .np = 50, .t = 1, .c = 37, .k = 1, .tau = {0.2}}, 0);
    for (int64_t i = 0; i < p.nx; i++)
        p.x_d[i] = sin((double)(i % 37)) * 7;
    for (int64_t i = 0; i < p.npos; i++)
        p.pos_d[i] = p.x_d[i % 37];
    drift_narrow(&p);
    p.s.num = LW_NUM_BF16;
    for (int regime = LW_DRIFT_TILE; regime <= LW_DRIFT_SWEEP; regime++) {
        p.s.regime = (lw_drift_regime)regime;
        drift_run(t, &p, 0);
        drift_expect(t, (double)p.stats[0], 1e-4, 1e-8, "S");
        for (int64_t i = 0; i < p.nf; i++)
            drift_expect(t, (double)p.dx[i], 0, 1e-4, "dX");
    }
}

/* What is not asked for does not change: f32 at the level with bf16 has the bits of the level
 * below, and few channels are measured by differences. */
static void same_bits(check *t)
{
    drift_problem p = drift_random(t, sizes[3], 0, 0.3, 0.6), few;
    fresh_results(t, &p);
    drift_run(t, &p, 0);
    if (t->isa == LW_ISA_AVX512BF16) { /* tile registers multiply f32 as three bf16 */
        const lw_isa isa = t->isa;
        float *f = p.f;
        fresh_results(t, &p);
        t->isa = LW_ISA_AVX512;
        drift_run(t, &p, 0);
        t->isa = isa;
        check_same(t, p.f, f, (size_t)p.nf * sizeof(float), "f32 with and without bf16");
    }
    lw_drift_shape s = sizes[0];
    s.c = 8;
    few = drift_random(t, s, 0, 0.3, 0.6);
    drift_run(t, &few, 0);
    float *f = few.f;
    fresh_results(t, &few);
    few.s.num = LW_NUM_BF16;
    drift_run(t, &few, 0);
    check_same(t, few.f, f, (size_t)few.nf * sizeof(float), "few channels");
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"products", products}, {"nothing_apart", nothing_apart}, {"same_bits", same_bits}};
    return check_main(argc, argv, "drift_low", cases, LW_COUNT(cases));
}
