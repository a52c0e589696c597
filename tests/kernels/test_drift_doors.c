/* SPDX-License-Identifier: Apache-2.0 */
/* The drift field met in parts, door by door: the bits of the field met at once, at every level. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "kernels/check.h"
#include "kernels/kernels.h"
#include "kernels/test_drift.h"

/* Groups g0 .. of a problem; results into F, dX and stats of `to`. */
static lw_drift_io part_of(const drift_problem *p, const drift_problem *to, ptrdiff_t g0,
                           double *state)
{
    const lw_drift_shape *s = &p->s;
    return (lw_drift_io){.f = to->f + g0 * s->n * s->f_row,
                         .dx = to->dx + g0 * s->n * s->f_row,
                         .stats = to->stats,
                         .x = p->x + g0 * s->n * s->x_row,
                         .pos = p->pos + g0 * s->np * s->pos_row,
                         .unc = s->nu ? p->unc + g0 * s->nu * s->unc_row : NULL,
                         .w_u = s->nu ? p->w + g0 : NULL,
                         .before = state,
                         .after = state};
}

/* All doors, `chunk` groups at a time. */
static void run_doors(check *t, const drift_problem *p, const drift_problem *to, ptrdiff_t chunk)
{
    double *state = check_doubles(t, (int64_t)lw_drift_state(&p->s));
    memset(state, 0, lw_drift_state(&p->s) * sizeof *state);
    for (int door = LW_DRIFT_SCALE; door <= LW_DRIFT_FIELD; door++)
        for (ptrdiff_t g0 = 0; g0 < p->s.g; g0 += chunk) {
            lw_drift_io io = part_of(p, to, g0, state);
            lw_drift_shape s = p->s;
            s.g = LW_MIN(chunk, p->s.g - g0);
            s.whole = p->s.g;
            s.door = (lw_drift_door)door;
            drift_run_phases(t, &io, &s, 1);
        }
}

static void expect_same(check *t, drift_problem *p)
{
    static const ptrdiff_t chunks[] = {1, 2, 3, 4, 1000};
    drift_run(t, p, 0);
    for (size_t i = 0; i < LW_COUNT(chunks); i++) {
        drift_problem q = *p;
        q.f = check_out(t, p->nf, 0);
        q.dx = check_out(t, p->nf, 0);
        q.stats = check_out(t, LW_DRIFT_STATS(LW_DRIFT_MAX_TAU), 0);
        run_doors(t, p, &q, chunks[i]);
        const char *form = "%s of %td groups at a time, of n=%td np=%td c=%td keep=%d";
        const lw_drift_shape *s = &p->s;
        check_same(t, q.f, p->f, (size_t)p->nf * 4, form, "F", chunks[i], s->n, s->np, s->c,
                   s->keep);
        check_same(t, q.dx, p->dx, (size_t)p->nf * 4, form, "dX", chunks[i], s->n, s->np, s->c,
                   s->keep);
        check_same(t, q.stats, p->stats, (size_t)LW_DRIFT_STATS(s->k) * 4, form, "statistics",
                   chunks[i], s->n, s->np, s->c, s->keep);
    }
}

/* Small groups; a shape that is of many small groups by their number alone; packs that are kept in a
 * part, not in the whole. */
static const lw_drift_shape sizes[] = {
    {.g = 5, .n = 7, .np = 33, .nu = 3, .t = 3, .c = 5, .k = 3, .tau = {0.02, 0.05, 0.2}},
    {.g = 6, .n = 33, .np = 40, .nu = 5, .t = 1, .c = 33, .k = 4, .tau = {0.3, 0.11, 0.05, 0.1}},
    {.g = 9, .n = 48, .np = 280, .nu = 0, .t = 1, .c = 12, .k = 1, .tau = {0.1}},
    {.g = 5, .n = 4, .np = 120, .nu = 2, .t = 24, .c = 70, .k = 2, .tau = {0.2, 0.05}},
};

static void parts(check *t)
{
    for (size_t i = 0; i < LW_COUNT(sizes); i++)
        for (int variant = 0; variant < 3; variant++) {
            lw_drift_shape s = sizes[i];
            s.variant = (lw_drift_variant)variant;
            s.own_scale = variant != LW_DRIFT_PLAIN && i % 2 == 0;
            drift_problem p = drift_random(t, s, 0, 0.3, 0.6);
            if (s.own_scale)
                drift_stretch(&p);
            if (i < 3 || variant == 0)
                expect_same(t, &p);
            check_next(t);
        }
}

/* Large groups, distances kept, in part, and not at all: the sums taken ahead go by one guess. */
static void large_groups(check *t)
{
    for (int keep = -1; keep <= 2; keep++) {
        lw_drift_shape s = {
            .g = 4, .n = 130, .np = 70, .nu = 9, .t = 1, .c = 20, .k = 3, .tau = {0.2, 0.05, 0.02}};
        s.regime = LW_DRIFT_SWEEP;
        s.keep = keep;
        drift_problem p = drift_random(t, s, 0, 0.3, 0.6);
        expect_same(t, &p);
        s.t = 2;
        s.n = 70;
        s.own_scale = 1;
        p = drift_random(t, s, 0, 0.3, 0.6);
        drift_stretch(&p);
        expect_same(t, &p);
        check_next(t);
    }
}

/* Negative control: a scale of each part's own is another field. */
static void own_scale(check *t)
{
    drift_problem p = drift_random(t, sizes[0], 0, 0.3, 0.6), q = p;
    drift_run(t, &p, 0);
    q.f = check_out(t, p.nf, 0);
    q.dx = check_out(t, p.nf, 0);
    for (ptrdiff_t g0 = 0; g0 < p.s.g; g0++) {
        lw_drift_io io = part_of(&p, &q, g0, NULL);
        lw_drift_shape s = p.s;
        s.g = 1;
        drift_run_phases(t, &io, &s, 1);
    }
    t->compared++;
    assert_memory_not_equal(q.f, p.f, (size_t)p.nf * 4);
}

/* What costs: the door to S no more than distances. */
static void cost(check *t)
{
    lw_drift_shape s = sizes[0];
    double all = lw_drift_flops(&s);
    s.door = LW_DRIFT_SCALE;
    t->compared++;
    drift_expect(t, lw_drift_flops(&s) * (s.k + 1), all, 1e-12, "FLOP of the door to S");
}

int main(int argc, char **argv)
{
    static const check_case cases[] = {
        {"parts", parts},
        {"large_groups", large_groups},
        {"own_scale", own_scale},
        {"cost", cost},
    };
    return check_main(argc, argv, "drift_doors", cases, LW_COUNT(cases));
}
