/* SPDX-License-Identifier: Apache-2.0 */
/* Problems for the tests of the drift field: operands in float and double, one run at a level, the
 * oracle. */
#ifndef LW_TESTS_TEST_DRIFT_H
#define LW_TESTS_TEST_DRIFT_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/check.h"
#include "kernels/kernels.h"

typedef struct drift_problem {
    lw_drift_shape s;
    int64_t nx, npos, nunc, nf; /* floats of x, pos, unc and of F and dX */
    float *x, *pos, *unc, *w, *f, *dx, *stats;
    double *x_d, *pos_d, *unc_d, *w_d, *f_d, *dx_d, *stats_d;
} drift_problem;

static inline lw_drift_run_fn *drift_kernel(lw_isa isa, const lw_drift_shape *s)
{
    static lw_kernels k;
    lw_kernels_init(&k, isa);
    return lw_drift_runner(&k.drift, s);
}

/* Dense operands of s's sizes; gap > 0 puts that many floats between slots and samples. Contents:
 * zeros. */
static inline drift_problem drift_new(check *t, lw_drift_shape s, ptrdiff_t gap)
{
    lw_drift_dense(&s);
    if (gap) {
        s.x_slot = s.c + gap;
        s.x_row = s.t * s.x_slot + gap;
        s.pos_slot = s.c + 2 * gap;
        s.pos_row = s.t * s.pos_slot;
        s.unc_slot = s.c;
        s.unc_row = s.t * s.c + gap;
        s.f_slot = s.c + gap;
        s.f_row = s.t * s.f_slot + 2 * gap;
    }
    drift_problem p = {.s = s,
                       .nx = s.g * s.n * s.x_row,
                       .npos = s.g * s.np * s.pos_row,
                       .nunc = s.g * s.nu * s.unc_row,
                       .nf = s.g * s.n * s.f_row};
    p.x_d = check_doubles(t, p.nx);
    p.pos_d = check_doubles(t, p.npos);
    p.unc_d = check_doubles(t, p.nunc + 1);
    p.w_d = check_doubles(t, s.g);
    p.f_d = check_doubles(t, p.nf);
    p.dx_d = check_doubles(t, p.nf);
    p.stats_d = check_doubles(t, LW_DRIFT_STATS(LW_DRIFT_MAX_TAU));
    p.x = check_out(t, p.nx, 1);
    p.pos = check_out(t, p.npos, 1);
    p.unc = check_out(t, p.nunc, 1);
    p.w = check_out(t, s.g, 1);
    p.f = check_out(t, p.nf, 1);
    p.dx = check_out(t, p.nf, 1);
    p.stats = check_out(t, LW_DRIFT_STATS(LW_DRIFT_MAX_TAU), 0);
    return p;
}

static inline void drift_round(float *to, double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)from[i];
}

/* Floats from the doubles (which stay as they are). */
static inline void drift_narrow(drift_problem *p)
{
    drift_round(p->x, p->x_d, p->nx);
    drift_round(p->pos, p->pos_d, p->npos);
    drift_round(p->unc, p->unc_d, p->nunc);
    drift_round(p->w, p->w_d, p->s.g);
}

static inline double *drift_widen(check *t, const float *from, int64_t n)
{
    double *d = check_doubles(t, n);
    for (int64_t i = 0; i < n; i++)
        d[i] = (double)from[i];
    return d;
}

static inline void drift_oracle(check *t, drift_problem *p)
{
    lw_drift_io_f64 io = {.f = p->f_d,
                          .dx = p->dx_d,
                          .stats = p->stats_d,
                          .x = p->x_d,
                          .pos = p->pos_d,
                          .unc = p->unc_d,
                          .w_u = p->w_d};
    lw_drift_run_f64(&io, &p->s, check_bytes(t, lw_drift_work_f64(&p->s), 0));
}

/* All phases of a shape at level t->isa; order 0: tasks forwards, 1: backwards. Memory starts full of
 * NaN. Where there are tile registers these multiply f32, too. */
static inline void drift_run_phases(check *t, const lw_drift_io *io, const lw_drift_shape *shape,
                                    int order)
{
    lw_drift_shape s = *shape;
    if (s.num == LW_NUM_F32 && t->isa >= LW_ISA_AMX)
        s.num = LW_NUM_BF16X3;
    lw_drift_run_fn *run = drift_kernel(t->isa, &s);
    void *work = check_out(t, (int64_t)(lw_drift_work(&s) + 3) / 4, 0);
    void *scratch = check_out(t, (int64_t)(lw_drift_scratch(&s) + 3) / 4, 0);
    for (int phase = 0; phase < lw_drift_phases(&s); phase++) {
        int64_t tasks = lw_drift_tasks(&s, phase);
        for (int64_t i = 0; i < tasks; i++)
            run(io, &s, phase, order ? tasks - 1 - i : i, work, scratch);
    }
}

static inline void drift_run(check *t, drift_problem *p, int order)
{
    lw_drift_io io = {.f = p->f,
                      .dx = p->dx,
                      .stats = p->stats,
                      .x = p->x,
                      .pos = p->pos,
                      .unc = p->s.nu ? p->unc : NULL,
                      .w_u = p->s.nu ? p->w : NULL};
    drift_run_phases(t, &io, &p->s, order);
}

static inline void drift_expect(check *t, double got, double want, double tol, const char *what)
{
    t->compared++;
    t->worst_error = LW_MAX(t->worst_error, fabs(got - want));
    if (!(fabs(got - want) <= tol * LW_MAX(1.0, fabs(want))))
        fail_msg("%s: got %.9g, want %.9g [%s]", what, got, want, lw_isa_name(t->isa));
}

/* Clustered vectors around a few centres, plus a common offset; spread of a cluster relative to its
 * distance. */
static inline void drift_cluster(check *t, drift_problem *p, double *to, int64_t n, double offset,
                                 double spread)
{
    float *u = check_in(t, n, 0, -1, 1), *centre = check_in(t, 8 * p->s.c, 0, -1, 1);
    t->draws = 7; /* the same centres for x, pos and unc */
    for (int64_t i = 0; i < n; i++) {
        int64_t row = i / p->s.c % 5, c = i % p->s.c;
        to[i] = offset + (double)centre[row * p->s.c + c] + spread * (double)u[i];
    }
}

/* The doubles become what the floats hold. */
static inline void drift_round_all(drift_problem *p)
{
    for (int64_t i = 0; i < p->nx; i++)
        p->x_d[i] = (double)p->x[i];
    for (int64_t i = 0; i < p->npos; i++)
        p->pos_d[i] = (double)p->pos[i];
    for (int64_t i = 0; i < p->nunc; i++)
        p->unc_d[i] = (double)p->unc[i];
    for (ptrdiff_t g = 0; g < p->s.g; g++)
        p->w_d[g] = (double)p->w[g];
}

static inline void drift_stretch_rows(double *x, int64_t rows, ptrdiff_t row, ptrdiff_t slot,
                                      const lw_drift_shape *s)
{
    for (int64_t i = 0; i < rows; i++)
        for (ptrdiff_t at = 0; at < s->t * s->c; at++)
            x[i * row + at / s->c * slot + at % s->c] *= 1.0 + 2.0 * (double)(at / s->c);
}

/* Slot t times 1 + 2 t: slots whose scales differ. */
static inline void drift_stretch(drift_problem *p)
{
    const lw_drift_shape *s = &p->s;
    drift_stretch_rows(p->x_d, s->g * s->n, s->x_row, s->x_slot, s);
    drift_stretch_rows(p->pos_d, s->g * s->np, s->pos_row, s->pos_slot, s);
    drift_stretch_rows(p->unc_d, s->g * s->nu, s->unc_row, s->unc_slot, s);
    drift_narrow(p);
    drift_round_all(p);
}

static inline drift_problem drift_random(check *t, lw_drift_shape s, ptrdiff_t gap, double offset,
                                         double spread)
{
    drift_problem p = drift_new(t, s, gap);
    drift_cluster(t, &p, p.x_d, p.nx, offset, spread);
    drift_cluster(t, &p, p.pos_d, p.npos, offset + 0.05, spread);
    drift_cluster(t, &p, p.unc_d, p.nunc, offset, spread);
    float *w = check_in(t, p.s.g, 0, 0, 2);
    for (ptrdiff_t g = 0; g < p.s.g; g++)
        p.w_d[g] = g == 1 ? 0.0 : (double)w[g];
    drift_narrow(&p);
    drift_round_all(&p);
    return p;
}

#endif
