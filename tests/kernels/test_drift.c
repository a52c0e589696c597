/* SPDX-License-Identifier: Apache-2.0 */
/* The drift field against known values of its definition and its own properties, at every level. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/check.h"
#include "kernels/test_drift.h"

/* ---- known values: two groups of a closed-form data set, computed independently in double ---- */

static double golden_f(int a, int b, int c, int k)
{
    return sin(0.7 * a + 1.3 * b + 2.1 * c + 0.37 * k * (a + 1) + 0.9 * k) + 0.5 * cos(1.9 * a * b + 0.61 * k + c);
}

static drift_problem golden_problem(check *t, double scale_tau)
{
    drift_problem p = drift_new(t, (lw_drift_shape){.g = 2, .n = 4, .nu = 2, .np = 5, .t = 1, .c = 6, .k = 3,
                                                    .tau = {0.2 * scale_tau, 0.05, 0.02}}, 0);
    for (int b = 0; b < 2; b++)
        for (int k = 0; k < 6; k++) {
            for (int i = 0; i < 4; i++)
                p.x_d[(b * 4 + i) * 6 + k] = golden_f(b, i, 0, k);
            for (int i = 0; i < 2; i++)
                p.unc_d[(b * 2 + i) * 6 + k] = 0.8 * golden_f(b, i, 5, k) + 0.3;
            for (int i = 0; i < 5; i++)
                p.pos_d[(b * 5 + i) * 6 + k] = 0.9 * golden_f(b, i, 9, k) - 0.2;
        }
    p.w_d[0] = 1.5;
    p.w_d[1] = 0.0;
    drift_narrow(&p);
    return p;
}

static void expect(check *t, double got, double want, double tol, const char *what)
{
    t->compared++;
    t->worst_error = LW_MAX(t->worst_error, fabs(got - want));
    if (!(fabs(got - want) <= tol * LW_MAX(1.0, fabs(want))))
        fail_msg("%s: got %.9g, want %.9g [%s]", what, got, want, lw_isa_name(t->isa));
}

static const double golden_f00[6] = {-3.7399032, -3.7011375, -5.5150580, -6.0475310, -2.7237524, 2.1894520};
static const double golden_f13[6] = {-0.2053715, 0.0919494, 0.0170923, -0.3417988, -0.2428436, 0.1324247};
static const double golden_dx00[6] = {0.154070528, 0.152473519, 0.227200505, 0.249136471, 0.112208777, -0.090197528};

static void expect_golden(check *t, const double *f, const double *dx, const double *stats, double tol)
{
    static const double want[6] = {2.477451603, 1.011415382, 7.730185823, 0.494998367, 0.320119998, 0.147422452};
    static const char *const names[6] = {"S", "sigma", "loss", "lambda .2", "lambda .05", "lambda .02"};
    for (int i = 0; i < 6; i++)
        expect(t, stats[i], want[i], tol, names[i]);
    for (int k = 0; k < 3; k++)
        expect(t, stats[6 + k], want[3 + k] * want[3 + k], tol, "m");
    for (int c = 0; c < 6; c++) {
        expect(t, f[c], golden_f00[c], tol, "F[0][0]");
        expect(t, f[7 * 6 + c], golden_f13[c], tol, "F[1][3]");
        expect(t, dx[c], golden_dx00[c], tol, "dX[0][0]");
    }
}

static void golden(check *t)
{
    drift_problem p = golden_problem(t, 1);
    expect(t, p.x_d[1], 1.36492486, 1e-8, "the data set");
    expect(t, p.pos_d[0], -0.56462820, 1e-8, "the data set");
    drift_oracle(t, &p);
    expect_golden(t, p.f_d, p.dx_d, p.stats_d, 1e-6 / 10);
    for (int regime = LW_DRIFT_AUTO; regime <= LW_DRIFT_SWEEP; regime++)
        for (int keep = -1; keep <= 1; keep++) {
            p.s.regime = (lw_drift_regime)regime;
            p.s.keep = keep;
            drift_run(t, &p, 0);
            expect_golden(t, drift_widen(t, p.f, 48), drift_widen(t, p.dx, 48), drift_widen(t, p.stats, 9), 1e-5);
        }
    for (int k = 0; k < 3; k++) { /* one temperature alone: loss 1 */
        drift_problem q = golden_problem(t, 1);
        q.s.k = 1;
        q.s.tau[0] = p.s.tau[k];
        drift_oracle(t, &q);
        drift_run(t, &q, 0);
        expect(t, q.stats_d[2], 1.0, 1e-12, "loss of one temperature");
        expect(t, (double)q.stats[2], 1.0, 1e-6, "loss of one temperature");
    }
}

/* The paper's Algorithm 2 on group 0. */
static void plain(check *t)
{
    static const double hot[2][6] = {{-.5368903, -.1473892, .0913183, -.0400176, -.1837138, .0290864},
                                     {-.7735720, -.3705013, .1264505, .1571627, -.1152991, -.1085979}};
    static const double cold[6] = {-6.479e-2, -2.304e-2, 1.365e-2, 5.856e-3, -1.737e-2, -5.902e-3};
    for (int tau = 0; tau < 2; tau++)
        for (int regime = LW_DRIFT_TILE; regime <= LW_DRIFT_SWEEP; regime++) {
            drift_problem p = golden_problem(t, 1);
            p.s.g = 1;
            p.s.nu = 0;
            p.s.k = 1;
            p.s.tau[0] = tau ? 0.05 : 0.5;
            p.s.variant = LW_DRIFT_PLAIN;
            p.s.regime = (lw_drift_regime)regime;
            drift_oracle(t, &p);
            drift_run(t, &p, 0);
            for (int c = 0; c < 6; c++) {
                double want = tau ? cold[c] : hot[0][c];
                expect(t, p.f_d[c], want, tau ? 5e-6 : 1e-7, "V[0]");
                expect(t, (double)p.f[c], want, tau ? 1e-5 : 1e-6, "V[0]");
                if (!tau)
                    expect(t, (double)p.f[3 * 6 + c], hot[1][c], 1e-6, "V[3]");
            }
        }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {{"golden", golden}, {"plain", plain}};
    return check_main(argc, argv, "drift", cases, LW_COUNT(cases));
}
