/* SPDX-License-Identifier: Apache-2.0 */
/* Accuracy of the elementary functions of simd/simd_math.h, reached through one-instruction
 * elementwise programs, in units of the last place (ulp) of the correctly rounded result; the same
 * bits on every level. */
#include <math.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

static double f_exp(double x)
{
    return exp(x);
}
static double f_log(double x)
{
    return log(x);
}
static double f_sin(double x)
{
    return sin(x);
}
static double f_cos(double x)
{
    return cos(x);
}
static double f_tanh(double x)
{
    return tanh(x);
}
static double f_erf(double x)
{
    return erf(x);
}
static double f_sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}
static double f_softplus(double x)
{
    return fmax(x, 0.0) + log1p(exp(-fabs(x)));
}

static const struct {
    const char *name;
    int op;
    double (*f)(double);
    double lo, hi, ulp;
} function[] = {
    {"exp", LW_TILE_exp, f_exp, -104.5, 88.7, 1.1},
    {"exp near 0", LW_TILE_exp, f_exp, -1, 1, 1.1},
    {"log", LW_TILE_log, f_log, 1e-6, 4, 0.9},
    {"log of denormals", LW_TILE_log, f_log, 1e-44, 1e-37, 0.9},
    {"log of large", LW_TILE_log, f_log, 1, 1e30, 0.9},
    {"tanh", LW_TILE_tanh, f_tanh, -10, 10, 1.5},
    {"tanh near 0", LW_TILE_tanh, f_tanh, -1, 1, 1.5},
    {"erf", LW_TILE_erf, f_erf, -5, 5, 2.5},
    {"sigmoid", LW_TILE_sigmoid, f_sigmoid, -80, 80, 2.5},
    {"softplus", LW_TILE_softplus, f_softplus, -80, 80, 2.5},
    {"sin", LW_TILE_sin, f_sin, -4, 4, 1.5},
    {"cos", LW_TILE_cos, f_cos, -4, 4, 1.5},
    {"sin of large", LW_TILE_sin, f_sin, -1e5, 1e5, 1.5},
    {"cos of large", LW_TILE_cos, f_cos, 0, 1e4, 1.5},
};

/* |got - want| in spacings of float at want. */
static double ulp_error(float got, double want)
{
    if (isinf(want) || isnan(want) || isinf(got))
        return (double)got == (double)(float)want ? 0.0 : HUGE_VAL;
    int e;
    frexp(want, &e);
    return fabs((double)got - want) / ldexp(1.0, e < -125 ? -149 : e - 24);
}

static void accuracy(check *t)
{
    enum { N = 200000 };
    lw_kernels k;
    lw_kernels_init(&k, t->isa);
    if (t->isa == LW_ISA_REF)
        k.ew.run = lw_ew_run_ref; /* double: at most half an ulp */
    float *x = check_out(t, N, 1), *y = check_out(t, N, 1), *plain = check_out(t, N, 0);
    for (size_t i = 0; i < LW_COUNT(function); i++) {
        lw_ew_program p = {.n_in = 1, .n_instr = 1, .n_out = 1, .out = {1}};
        p.instr[0].op = (uint8_t)function[i].op;
        LW_ASSERT(lw_ew_prepare(&p) == 0, "%s", lw_errmsg());
        for (int e = 0; e < N; e++)
            x[e] = (float)(function[i].lo + (function[i].hi - function[i].lo) * e / N);
        const float *in = x;
        const lw_ew_shape shape = {1, N, 1};
        k.ew.run(&y, &in, &p, &shape, 0, N);
        float worst = 0.0f;
        for (int e = 0; e < N; e++)
            worst = fmaxf(worst, (float)ulp_error(y[e], function[i].f((double)x[e])));
        const double zero = 0.0;
        check_close(t, &worst, &zero, 1, (check_tol){.abs = function[i].ulp}, "ulp of %s",
                    function[i].name);
        if (t->isa == LW_ISA_AVX512) {
            lw_ew_run_avx2(&plain, &in, &p, &shape, 0, N);
            check_same(t, y, plain, N * sizeof *y, "%s on avx2 and avx512", function[i].name);
        }
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"accuracy", accuracy}};
    return check_main(argc, argv, "simd", cases, LW_COUNT(cases));
}
