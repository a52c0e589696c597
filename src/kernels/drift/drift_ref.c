/* SPDX-License-Identifier: Apache-2.0 */
/* Reference drift field: the official formulas line by line, row by row, for float and for double
 * data. */
#include <math.h>
#include <string.h>

#include "kernels/drift/drift_layout.h"

/* Memory of one run: the V of everything, normalisers of the group at hand, two rows. */
typedef struct drift_ref_work {
    void *v;             /* LW_REAL [K][G T][N][C] */
    double *d, *l;       /* [M] */
    double *lr;          /* [K][N] */
    double *cmax, *csum; /* [K][M] */
    double *state;       /* [lw_drift_state] */
    double stats[LW_DRIFT_STATS(LW_DRIFT_MAX_TAU)];
    lw_drift_rule rule;
} drift_ref_work;

static void drift_ref_work_of(drift_ref_work *w, const lw_drift_shape *s, void *work)
{
    ptrdiff_t m = s->n + s->nu + s->np;
    w->d = work;
    w->l = w->d + m;
    w->lr = w->l + m;
    w->cmax = w->lr + s->k * s->n;
    w->csum = w->cmax + s->k * m;
    w->state = w->csum + s->k * m;
    w->v = w->state + lw_drift_state(s);
}

/* What holds for a group at slot t, S being known. */
static void drift_ref_rule(drift_ref_work *w, const lw_drift_shape *s, ptrdiff_t t)
{
    lw_drift_rule_of(&w->rule, s,
                     s->own_scale
                         ? lw_drift_slot_scale_of(s, w->state, w->state[LW_DRIFT_STATE + t])
                         : lw_drift_scale_of(s, w->state));
}

static size_t ref_work(const lw_drift_shape *s, size_t real)
{
    ptrdiff_t m = s->n + s->nu + s->np;
    return sizeof(double) * (size_t)(2 * m + s->k * (s->n + 2 * m) + (ptrdiff_t)lw_drift_state(s)) +
           real * (size_t)(s->k * s->g * s->t * s->n * s->c);
}

size_t lw_drift_work_ref(const lw_drift_shape *s)
{
    return ref_work(s, sizeof(float));
}

size_t lw_drift_work_f64(const lw_drift_shape *s)
{
    return ref_work(s, sizeof(double));
}

#define LW_REAL float
#define LW_IO lw_drift_io
#define LW_REF(name) name##_ref
#include "kernels/drift/drift_ref.inc"
#undef LW_REAL
#undef LW_IO
#undef LW_REF
#define LW_REAL double
#define LW_IO lw_drift_io_f64
#define LW_REF(name) name##_f64
#include "kernels/drift/drift_ref.inc"

void lw_drift_run_f64(const lw_drift_io_f64 *io, const lw_drift_shape *s, void *work)
{
    drift_all_f64(io, s, work);
}

/* Everything happens in the last phase's first task; the split exists for the vector kernels. */
void lw_drift_run_ref(const lw_drift_io *io, const lw_drift_shape *s, int phase, int64_t task,
                      void *work, void *scratch)
{
    (void)scratch;
    if (phase == lw_drift_phases(s) - 1 && task == 0)
        drift_all_ref(io, s, work);
}
