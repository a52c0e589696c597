/* SPDX-License-Identifier: Apache-2.0 */
/* The drift field against known values of its definition and against the oracle, at every level. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/check.h"
#include "kernels/test_drift.h"
#include "base/base.h"
#include "kernels/kernels.h"

/* ---- known values: two groups of a closed-form data set, computed independently in double ---- */

static double golden_f(int a, int b, int c, int k)
{
    return sin(0.7 * a + 1.3 * b + 2.1 * c + 0.37 * k * (a + 1) + 0.9 * k) +
           0.5 * cos(1.9 * a * b + 0.61 * k + c);
}

static drift_problem golden_problem(check *t, double scale_tau)
{
    drift_problem p = drift_new(t,
                                (lw_drift_shape){.g = 2,
                                                 .n = 4,
                                                 .nu = 2,
                                                 .np = 5,
                                                 .t = 1,
                                                 .c = 6,
                                                 .k = 3,
                                                 .tau = {0.2 * scale_tau, 0.05, 0.02}},
                                0);
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

static const double golden_f00[6] = {-3.7399032, -3.7011375, -5.5150580,
                                     -6.0475310, -2.7237524, 2.1894520};
static const double golden_f13[6] = {-0.2053715, 0.0919494,  0.0170923,
                                     -0.3417988, -0.2428436, 0.1324247};
static const double golden_dx00[6] = {0.154070528, 0.152473519, 0.227200505,
                                      0.249136471, 0.112208777, -0.090197528};

static void expect_golden(check *t, const double *f, const double *dx, const double *stats,
                          double tol)
{
    static const double want[6] = {2.477451603, 1.011415382, 7.730185823,
                                   0.494998367, 0.320119998, 0.147422452};
    static const char *const names[6] = {"S",         "sigma",      "loss",
                                         "lambda .2", "lambda .05", "lambda .02"};
    for (int i = 0; i < 6; i++)
        drift_expect(t, stats[i], want[i], tol, names[i]);
    for (int k = 0; k < 3; k++)
        drift_expect(t, stats[6 + k], want[3 + k] * want[3 + k], tol, "m");
    for (int c = 0; c < 6; c++) {
        drift_expect(t, f[c], golden_f00[c], tol, "F[0][0]");
        drift_expect(t, f[7 * 6 + c], golden_f13[c], tol, "F[1][3]");
        drift_expect(t, dx[c], golden_dx00[c], tol, "dX[0][0]");
    }
}

static void golden(check *t)
{
    drift_problem p = golden_problem(t, 1);
    drift_expect(t, p.x_d[1], 1.36492486, 1e-8, "the data set");
    drift_expect(t, p.pos_d[0], -0.56462820, 1e-8, "the data set");
    drift_oracle(t, &p);
    expect_golden(t, p.f_d, p.dx_d, p.stats_d, 1e-6 / 10);
    for (int regime = LW_DRIFT_AUTO; regime <= LW_DRIFT_SWEEP; regime++)
        for (int keep = -1; keep <= 1; keep++) {
            p.s.regime = (lw_drift_regime)regime;
            p.s.keep = keep;
            drift_run(t, &p, 0);
            expect_golden(t, drift_widen(t, p.f, 48), drift_widen(t, p.dx, 48),
                          drift_widen(t, p.stats, 9), 1e-5);
        }
    for (int k = 0; k < 3; k++) { /* one temperature alone: loss 1 */
        drift_problem q = golden_problem(t, 1);
        q.s.k = 1;
        q.s.tau[0] = p.s.tau[k];
        drift_oracle(t, &q);
        drift_run(t, &q, 0);
        drift_expect(t, q.stats_d[2], 1.0, 1e-12, "loss of one temperature");
        drift_expect(t, (double)q.stats[2], 1.0, 1e-6, "loss of one temperature");
    }
}

/* The paper's Algorithm 2 on group 0. */
static void plain(check *t)
{
    static const double hot[2][6] = {
        {-.5368903, -.1473892, .0913183, -.0400176, -.1837138, .0290864},
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
                drift_expect(t, p.f_d[c], want, tau ? 5e-6 : 1e-7, "V[0]");
                drift_expect(t, (double)p.f[c], want, tau ? 1e-5 : 1e-6, "V[0]");
                if (!tau)
                    drift_expect(t, (double)p.f[3 * 6 + c], hot[1][c], 1e-6, "V[3]");
            }
        }
}

/* ---- random data ---- */

/* Relative L2 distance of F and of dX (of the live channels) to the oracle's, at most tol. */
static void expect_field(check *t, const drift_problem *p, double tol, const char *what)
{
    double err[2] = {0, 0}, norm[2] = {0, 0};
    const lw_drift_shape *s = &p->s;
    for (ptrdiff_t i = 0; i < s->g * s->n; i++)
        for (ptrdiff_t u = 0; u < s->t; u++)
            for (ptrdiff_t c = 0; c < s->c; c++) {
                ptrdiff_t at = i * s->f_row + u * s->f_slot + c;
                const double want[2] = {p->f_d[at], p->dx_d[at]},
                             got[2] = {(double)p->f[at], (double)p->dx[at]};
                for (int k = 0; k < 2; k++) {
                    err[k] += (got[k] - want[k]) * (got[k] - want[k]);
                    norm[k] += want[k] * want[k];
                }
            }
    for (int k = 0; k < 2; k++) {
        double rel = norm[k] > 0 ? sqrt(err[k] / norm[k]) : sqrt(err[k]);
        t->compared++;
        t->worst_error = LW_MAX(t->worst_error, rel);
        t->worst = LW_MAX(t->worst, rel / tol);
        if (!(rel <= tol))
            fail_msg("%s: %s is off by %.3g (relative L2, allowed %.3g) [%s g=%td n=%td np=%td "
                     "nu=%td t=%td c=%td "
                     "regime=%d keep=%d]",
                     what, k ? "dX" : "F", rel, tol, lw_isa_name(t->isa), s->g, s->n, s->np, s->nu,
                     s->t, s->c, (int)s->regime, s->keep);
    }
    for (int i = 0; i < LW_DRIFT_STATS(s->k); i++)
        if (fabs(p->stats_d[i]) < 3e38)
            drift_expect(t, (double)p->stats[i], p->stats_d[i], tol, what);
}

static const lw_drift_shape sizes[] = {
    {.g = 1, .n = 1, .np = 1, .nu = 0, .t = 1, .c = 1, .k = 1, .tau = {0.2}},
    {.g = 1, .n = 2, .np = 1, .nu = 1, .t = 1, .c = 2, .k = 2, .tau = {0.2, 0.05}},
    {.g = 2, .n = 7, .np = 33, .nu = 3, .t = 3, .c = 5, .k = 3, .tau = {0.02, 0.05, 0.2}},
    {.g = 3, .n = 16, .np = 16, .nu = 16, .t = 2, .c = 9, .k = 3, .tau = {0.2, 0.05, 0.02}},
    {.g = 2, .n = 33, .np = 40, .nu = 5, .t = 1, .c = 33, .k = 4, .tau = {0.3, 0.11, 0.05, 0.1}},
    {.g = 1, .n = 65, .np = 70, .nu = 0, .t = 2, .c = 16, .k = 3, .tau = {0.2, 0.05, 0.02}},
    {.g = 2, .n = 130, .np = 300, .nu = 40, .t = 1, .c = 48, .k = 3, .tau = {0.2, 0.05, 0.02}},
    {.g = 1, .n = 20, .np = 31, .nu = 2, .t = 1, .c = 300, .k = 1, .tau = {0.1}},
    /* tasks of several groups whose packs are too many to be kept */
    {.g = 2, .n = 9, .np = 20, .nu = 6, .t = 300, .c = 35, .k = 2, .tau = {0.2, 0.05}},
};

/* Both regimes, distances kept or computed again, every variant: the oracle's field; gaps stay
 * untouched; the order of tasks leaves no trace. */
static void regimes(check *t)
{
    for (size_t i = 0; i < LW_COUNT(sizes); i++)
        for (int variant = 0; variant < 3; variant++)
            for (int mode = 0; mode < 3; mode++) {
                lw_drift_shape s = sizes[i];
                s.variant = (lw_drift_variant)variant;
                s.rows_only = mode == 1;
                s.own_scale = mode == 2;
                if ((s.rows_only && variant != 0) || (s.own_scale && s.t == 1))
                    continue;
                drift_problem p = drift_random(t, s, i % 2 ? 3 : 0, 0.3, 0.6);
                if (s.own_scale)
                    drift_stretch(&p);
                double tol = variant == LW_DRIFT_OFFICIAL ? 2e-5 : 1e-4;
                drift_oracle(t, &p);
                for (int r = 0; r < 5; r++) {
                    p.s.regime = r & 1 || r == 4 ? LW_DRIFT_SWEEP : LW_DRIFT_TILE;
                    p.s.keep = r == 4 ? 2 : r & 2 ? 1 : -1;
                    p.f = check_out(t, p.nf, 1);
                    p.dx = check_out(t, p.nf, 1);
                    drift_run(t, &p, 0);
                    expect_field(t, &p, tol,
                                 mode == 0   ? "regimes"
                                 : mode == 1 ? "rows only"
                                             : "own scales");
                    for (ptrdiff_t e = 0; i % 2 && e < p.s.g * p.s.n * p.s.t; e++)
                        check_poisoned(t,
                                       p.f + e / p.s.t * p.s.f_row + e % p.s.t * p.s.f_slot + p.s.c,
                                       p.s.f_slot - p.s.c, "gap of F");
                    float *f = p.f, *dx = p.dx;
                    p.f = check_out(t, p.nf, 1);
                    p.dx = check_out(t, p.nf, 1);
                    drift_run(t, &p, 1);
                    check_same(t, p.f, f, (size_t)p.nf * sizeof(float), "order of tasks, F");
                    check_same(t, p.dx, dx, (size_t)p.nf * sizeof(float), "order of tasks, dX");
                }
                check_next(t);
            }
}

/* Rounding: zero mean, a common offset, near duplicates far from the origin. */
static void precision(check *t)
{
    static const double offset[] = {0, 3, 3}, spread[] = {0.6, 0.6, 0.02},
                        tol[] = {1e-5, 1e-5, 3e-4};
    for (int i = 0; i < 3; i++) {
        lw_drift_shape s = {.g = 2,
                            .n = 64,
                            .np = 96,
                            .nu = 16,
                            .t = 1,
                            .c = 256,
                            .k = 3,
                            .tau = {0.2, 0.05, 0.02}};
        drift_problem p = drift_random(t, s, 0, offset[i], spread[i]);
        drift_oracle(t, &p);
        for (int regime = LW_DRIFT_TILE; regime <= LW_DRIFT_SWEEP; regime++) {
            p.s.regime = (lw_drift_regime)regime;
            drift_run(t, &p, 0);
            expect_field(t, &p, tol[i], "precision");
        }
        check_next(t);
    }
}

/* pos[5] of group 0 goes opposite to the target nearest to x[2], as far from x[2] as that one. */
static void mirror(drift_problem *p)
{
    ptrdiff_t c = p->s.c, near = 0;
    const double *x = p->x_d + 2 * c;
    double least = HUGE_VAL;
    for (ptrdiff_t j = 0; j < p->s.np; j++) {
        double sum = 0;
        for (ptrdiff_t i = 0; i < c; i++)
            sum += (p->pos_d[j * c + i] - x[i]) * (p->pos_d[j * c + i] - x[i]);
        near = sum < least && j != 5 ? j : near;
        least = j == near ? sum : least;
    }
    for (ptrdiff_t i = 0; i < c; i++)
        p->pos_d[5 * c + i] = 2 * x[i] - p->pos_d[near * c + i];
}

/* Samples so far from all others that one exponential cannot serve rows and columns, and groups
 * large enough for few affinities to lie above the floor. */
static void spread(check *t)
{
    for (int kind = 0; kind < 4; kind++) { /* a far sample; and a far target; 3: a large group */
        lw_drift_shape s = {.g = 2,
                            .n = kind == 3 ? 220 : 40,
                            .np = kind == 3 ? 301 : 50,
                            .nu = kind == 1 ? 0 : 3,
                            .t = 1,
                            .c = kind == 1 ? 3 : 21,
                            .k = 3,
                            .tau = {0.05, 0.2, 0.02}};
        drift_problem p = drift_random(t, s, 0, 0, 0.6);
        for (int c = 0; kind < 3 && c < s.c; c++)
            p.x_d[2 * s.c + c] = 40;
        if (kind == 1 || kind == 2)
            mirror(&p);
        drift_narrow(&p);
        drift_round_all(&p);
        drift_oracle(t, &p);
        for (int regime = LW_DRIFT_TILE; regime <= LW_DRIFT_SWEEP; regime++) {
            p.s.regime = (lw_drift_regime)regime;
            drift_run(t, &p, 0);
            expect_field(t, &p, 2e-5, "spread");
        }
        check_next(t);
    }
}

/* Every way of keeping distances, in both regimes. */
static void expect_everywhere(check *t, drift_problem *p, double tol, const char *what)
{
    drift_narrow(p);
    drift_round_all(p);
    drift_oracle(t, p);
    for (int r = 0; r < 5; r++) {
        p->s.regime = r & 1 || r == 4 ? LW_DRIFT_SWEEP : LW_DRIFT_TILE;
        p->s.keep = r == 4 ? 2 : r & 2 ? 1 : -1;
        drift_run(t, p, 0);
        expect_field(t, p, tol, what);
    }
    check_next(t);
}

/* Large groups of which the first pass notes near pairs, see drift_near.h: what it takes for granted
 * of all vectors is that of 64 of them, here every seventh sample. That is true, and there is room
 * (0; 1: of different spreads); those have copies, the others none (2); or most pairs are near and
 * find no room (3). */
static void near_pairs(check *t)
{
    for (int kind = 0; kind < 4; kind++) {
        lw_drift_shape s = {.g = kind == 0 ? 2 : 1,
                            .n = 448,
                            .np = kind == 3 ? 901 : 521,
                            .nu = kind == 1 ? 0 : 37,
                            .t = 1,
                            .c = kind == 3 ? 9 : 40,
                            .k = kind == 3 ? 3 : 2,
                            .tau = {0.02, 0.05, 0.2}};
        if (kind == 2) {
            s.k = 1;
            s.tau[0] = 0.1;
        }
        drift_problem p = drift_new(t, s, 0);
        double *const to[] = {p.x_d, p.pos_d, p.unc_d};
        const int64_t n[] = {p.nx, p.npos, p.nunc};
        for (int side = 0; side < 3; side++) {
            float *u = check_in(t, n[side] + 1, 0, -1, 1);
            for (int64_t i = 0; i < n[side]; i++) {
                int copy = kind == 2 && side == 0 && i / s.c % 14 == 7;
                to[side][i] = (double)u[copy ? i - 7 * s.c : i] * (kind == 1 && !side ? 0.3 : 1.0);
            }
        }
        for (ptrdiff_t g = 0; g < s.g; g++)
            p.w_d[g] = g == 1 ? 0.0 : 1.5;
        expect_everywhere(t, &p, 2e-5, "near pairs");
    }
}

/* Samples and positives of one distribution: V is what their means differ by, and rounding of sums over all targets, which
 * all samples share, is seen. */
static void many_targets(check *t)
{
    lw_drift_shape s = {
        .g = 1, .n = 1024, .np = 1024, .nu = 0, .t = 1, .c = 64, .k = 1, .tau = {0.2}};
    drift_problem p = drift_new(t, s, 0);
    float *u = check_in(t, p.nx + p.npos, 0, -1, 1);
    for (int64_t i = 0; i < p.nx; i++)
        p.x_d[i] = (double)u[i];
    for (int64_t i = 0; i < p.npos; i++)
        p.pos_d[i] = (double)u[p.nx + i];
    drift_narrow(&p);
    drift_oracle(t, &p);
    drift_run(t, &p, 0);
    expect_field(t, &p, 1e-6, "many targets");
}

/* Many groups of few channels, whose distances are not kept but computed again: to the same bits, of
 * rounded vectors, too. */
static void computed_again(check *t)
{
    for (int low = 0; low < 2; low++) {
        lw_drift_shape s = {.g = 2,
                            .n = 15,
                            .np = 21,
                            .nu = 6,
                            .t = 1700,
                            .c = 13,
                            .k = 3,
                            .tau = {0.02, 0.05, 0.2},
                            .num = low ? LW_NUM_BF16 : LW_NUM_F32};
        drift_problem p = drift_random(t, s, 3, 0.3, 0.6);
        size_t bytes = lw_drift_work(&p.s);
        drift_run(t, &p, 0);
        if (!low) {
            drift_oracle(t, &p);
            expect_field(t, &p, 2e-5, "computed again");
        }
        float *f = p.f, *dx = p.dx;
        p.f = check_out(t, p.nf, 1);
        p.dx = check_out(t, p.nf, 1);
        p.s.keep = 1;
        drift_run(t, &p, 1);
        check_same(t, p.f, f, (size_t)p.nf * sizeof(float), "distances kept, F");
        check_same(t, p.dx, dx, (size_t)p.nf * sizeof(float), "distances kept, dX");
        if (bytes >= lw_drift_work(&p.s))
            fail_msg("distances of few channels are kept");
        check_next(t);
    }
}

/* Temperatures that are powers of powers of each other: no exponential is raised so far that its
 * rounding shows. */
static void far_powers(check *t)
{
    lw_drift_shape s = {.g = 1,
                        .n = 70,
                        .np = 90,
                        .t = 1,
                        .c = 16,
                        .k = 6,
                        .tau = {10, 1, 0.1, 0.01, 0.001, 0.0001}};
    drift_problem p = drift_random(t, s, 0, 0.3, 0.6);
    expect_everywhere(t, &p, 2e-5, "far powers");
}

/* Few targets so far away that they would take the centre, and with it the precision, along; with
 * a field that does not feel them. */
static void far_centre(check *t)
{
    for (int variant = 0; variant < 2; variant++) {
        lw_drift_shape s = {.g = 2,
                            .n = 70,
                            .np = 90,
                            .t = 1,
                            .c = variant ? 33 : 3,
                            .k = 2,
                            .tau = {0.5, 2},
                            .rows_only = variant,
                            .variant = LW_DRIFT_PLAIN};
        drift_problem p = drift_random(t, s, 0, 0, 0.6);
        for (ptrdiff_t c = 0; c < s.c; c++) {
            p.pos_d[c] = 1e6;
            p.pos_d[40 * s.c + c] = -3e5;
        }
        expect_everywhere(t, &p, 2e-5, "far targets");
    }
}

/* The field does not depend on the unit of coordinates: near the ends of what f32 holds too. */
static void units(check *t)
{
    static const double unit[] = {1e-20, 1e-3, 1e9, 1e15};
    for (int i = 0; i < 8; i++) {
        lw_drift_shape s = {.g = 2,
                            .n = 80,
                            .np = 70,
                            .nu = 3,
                            .t = 1,
                            .c = i & 1 ? 8 : 21,
                            .k = 3,
                            .tau = {0.02, 0.05, 0.2},
                            .rows_only = i & 1};
        drift_problem p = drift_random(t, s, 0, 0, 0.6);
        for (int64_t e = 0; e < p.nx; e++)
            p.x_d[e] *= unit[i / 2];
        for (int64_t e = 0; e < p.npos; e++)
            p.pos_d[e] *= unit[i / 2];
        for (int64_t e = 0; e < p.nunc; e++)
            p.unc_d[e] *= unit[i / 2];
        memcpy(p.pos_d, p.x_d, (size_t)(9 * s.c) * sizeof(double)); /* pairs without distance */
        expect_everywhere(t, &p, 2e-5, "units");
    }
}

/* Copies of six points only: attraction and repulsion have nearly everything in common, and what is
 * left is the field. */
static void copies(check *t)
{
    static const struct {
        lw_drift_variant variant;
        int rows_only;
        double tau[2];
    } kinds[] = {{LW_DRIFT_OFFICIAL, 0, {0.05, 0.02}},
                 {LW_DRIFT_OFFICIAL, 1, {0.05, 0.02}},
                 {LW_DRIFT_PLAIN, 0, {0.1, 0.05}},
                 {LW_DRIFT_PLAIN, 1, {0.1, 0.05}},
                 {LW_DRIFT_TAU_TIMES_DIM, 0, {0.01, 0.001}}};
    for (size_t i = 0; i < 2 * LW_COUNT(kinds); i++) {
        lw_drift_shape s = {.g = 1,
                            .n = 70,
                            .np = 90,
                            .nu = 5,
                            .t = 1,
                            .c = i & 1 ? 8 : 21,
                            .k = 2,
                            .tau = {kinds[i / 2].tau[0], kinds[i / 2].tau[1]},
                            .rows_only = kinds[i / 2].rows_only,
                            .variant = kinds[i / 2].variant};
        drift_problem p = drift_random(t, s, 0, 3, 1.0);
        double *points = check_doubles(t, 6 * s.c);
        memcpy(points, p.x_d, (size_t)(6 * s.c) * sizeof *points);
        for (ptrdiff_t j = 0; j < s.n * s.c; j++)
            p.x_d[j] = points[j % (6 * s.c)];
        for (ptrdiff_t j = 0; j < s.np * s.c; j++)
            p.pos_d[j] = points[(j / s.c * 5 + 1) % 6 * s.c + j % s.c];
        expect_everywhere(t, &p, 2e-4, "copies");
    }
}

/* Clusters far from each other, at temperatures that see nothing but the own one. */
static void far_clusters(check *t)
{
    for (int i = 0; i < 4; i++) {
        lw_drift_shape s = {.g = 1,
                            .n = 70,
                            .np = 60,
                            .nu = 5,
                            .t = 1,
                            .c = i & 1 ? 1 : 8,
                            .k = 2,
                            .tau = {0.01, 0.001},
                            .variant = i < 2 ? LW_DRIFT_OFFICIAL : LW_DRIFT_TAU_TIMES_DIM};
        drift_problem p = drift_random(t, s, 0, 0, 1.0);
        for (ptrdiff_t j = 0; j < s.n; j++)
            p.x_d[j * s.c] += j % 3 == 1 ? 1e5 : j % 3 == 2 ? -7e4 : 0;
        for (ptrdiff_t j = 0; j < s.np; j++)
            p.pos_d[j * s.c] += j % 3 == 1 ? 1e5 : j % 3 == 2 ? -7e4 : 0;
        expect_everywhere(t, &p, 2e-4, "far clusters");
    }
}

/* Raw features and weights so large that V^2 leaves f32. */
static void large(check *t)
{
    for (int variant = 0; variant < 3; variant++) {
        lw_drift_shape s = {.g = 1,
                            .n = 70,
                            .np = 60,
                            .nu = 50,
                            .t = 1,
                            .c = 21,
                            .k = 2,
                            .tau = {variant == LW_DRIFT_PLAIN ? 5e15 : 0.2, 1e15},
                            .variant = (lw_drift_variant)variant};
        drift_problem p = drift_random(t, s, 0, 0, 1.0);
        for (int64_t i = 0; i < p.nx; i++)
            p.x_d[i] *= 3e15;
        for (int64_t i = 0; i < p.npos; i++)
            p.pos_d[i] *= 3e15;
        for (int64_t i = 0; i < p.nunc; i++)
            p.unc_d[i] *= 3e15;
        p.w_d[0] = 1e6;
        expect_everywhere(t, &p, 2e-5, "large");
    }
}

/* A vector so far that its distances are none: everything says so, but where it is all double. */
static void out_of_reach(check *t)
{
    int ref = t->isa == LW_ISA_REF;
    for (int r = 0; r < (ref ? 2 : 5); r++) {
        drift_problem p = drift_random(t, sizes[r == 4 ? 6 : 4], 0, 0, 0.6);
        p.s.regime = r & 1 || r == 4 ? LW_DRIFT_SWEEP : LW_DRIFT_TILE;
        p.s.keep = r == 4 ? 2 : r & 2 ? 1 : -1;
        p.pos[p.s.c + 3] = r & 2 ? NAN : 1e18f;
        drift_run(t, &p, 0);
        for (int64_t i = 0; i < p.nf; i++)
            if (isnan(p.f[i]) == ref || isnan(p.dx[i]) == ref)
                fail_msg("F is %g, dX %g", (double)p.f[i], (double)p.dx[i]);
        if (isnan(p.stats[0]) == ref || isnan(p.stats[2]) == ref)
            fail_msg("S is %g, the loss %g", (double)p.stats[0], (double)p.stats[2]);
        t->compared += 2 * p.nf;
        check_next(t);
    }
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"golden", golden},
        {"plain", plain},
        {"regimes", regimes},
        {"precision", precision},
        {"spread", spread},
        {"far powers", far_powers},
        {"far centre", far_centre},
        {"units", units},
        {"copies", copies},
        {"far clusters", far_clusters},
        {"large", large},
        {"out of reach", out_of_reach},
        {"near pairs", near_pairs},
        {"many targets", many_targets},
        {"computed again", computed_again},
    };
    return check_main(argc, argv, "drift", cases, LW_COUNT(cases));
}
