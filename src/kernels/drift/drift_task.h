/* SPDX-License-Identifier: Apache-2.0 */
/* Drift field: what a task works on. */
#ifndef LW_KERNELS_DRIFT_TASK_H
#define LW_KERNELS_DRIFT_TASK_H

#include "kernels/drift/drift_layout.h"

/* Targets that are needed next, from `at` on: fetched a few at a time while products keep the
 * arithmetic busy, as all at once they fill the queue of misses. */
typedef struct drift_queue {
    ptrdiff_t at, end;
} drift_queue;

/* Where near pairs and what decides on them lie, see drift_near.h. NULL where none are noted. */
typedef struct drift_near {
    struct drift_near_rule *rule;
    float *column;  /* [m] r / 2 of targets among generated samples */
    float *row;     /* [lp] of samples among all targets */
    float *d;       /* [near] distances */
    uint16_t *at;   /* [near] row in a tile of LW_DRIFT_ROWS targets << 6 | lane */
    uint32_t *from; /* [strips][segments + 1] where those of a tile begin */
    uint8_t *bad;   /* [segments + strips] whose notes do not serve */
} drift_near;

/* What a task works on: shapes, the group's operands and the places of its intermediate results. */
typedef struct drift_job {
    const lw_drift_io *io;
    const lw_drift_shape *s;
    lw_drift_dims d;
    ptrdiff_t group;
    const float *first[3]; /* the group's first vector of each kind: gen | unc | pos */
    float w_u;
    ptrdiff_t out_at;                                   /* of its first sample in F and dX */
    float *t, *tn, *xn, *w, *base, *excess, *mean, *xt; /* the pack, see lw_drift_pack */
    uint32_t *tb, *xb;                                  /* the same, rounded or split */
    float *kept; /* distances of the group's first d.kept strips, or (TILE) of all, or NULL */
    float *rmin, *cmin;           /* [lp], [m] least distances of samples and of targets */
    float *range;                 /* see drift_factors */
    float *u, *v_i, *rsum, *csum; /* [K][m], [K][lp], [K][lp], [K][m] */
    float *parts;                 /* SWEEP: of csum, see lw_drift_map */
    float *rmom;                  /* SWEEP ahead: [K][3][lp], see drift_ahead.h */
    float *v;                     /* [K][N][cp] */
    drift_near near;
    float *buf_d, *buf_e, *buf_a, *out, *sums; /* scratch */
    uint64_t *bits, *reach;
    drift_queue *fetch; /* where targets are packed late, else NULL */
    int powers_kept;    /* kept holds exponentials of the one base temperature, not distances */
    lw_drift_rule rule;
    double v_scale; /* V is kept in units of this, a power of two */
} drift_job;

/* Where a target lies, the same in all groups: its kind (gen | unc | pos), and how far from the first of
 * these. */
typedef struct drift_place {
    int kind;
    ptrdiff_t offset;
} drift_place;

static inline drift_place drift_place_of(const drift_job *q, ptrdiff_t j)
{
    const lw_drift_shape *s = q->s;
    if (j < s->n)
        return (drift_place){0, j * s->x_row};
    if (j < q->d.neg)
        return (drift_place){1, (j - s->n) * s->unc_row};
    return (drift_place){2, (j - q->d.neg) * s->pos_row};
}

/* Where the targets of j's kind end. */
static inline ptrdiff_t drift_kind_end(const drift_job *q, ptrdiff_t j)
{
    return j < q->s->n ? q->s->n : j < q->d.neg ? q->d.neg : q->d.m;
}

/* Floats between two vectors of a kind. */
static inline ptrdiff_t drift_row_of(const drift_job *q, int kind)
{
    return kind == 0 ? q->s->x_row : kind == 1 ? q->s->unc_row : q->s->pos_row;
}

static inline const float *drift_vector(const drift_job *q, drift_place at)
{
    return q->first[at.kind] + at.offset;
}

/* Target number j of the job's group. */
static inline const float *drift_target(const drift_job *q, ptrdiff_t j)
{
    return drift_vector(q, drift_place_of(q, j));
}

/* Where the group's vectors begin. */
static void drift_operands(drift_job *q, const lw_drift_io *io)
{
    const lw_drift_shape *s = q->s;
    ptrdiff_t g = q->group / s->t, t = q->group % s->t;
    q->first[0] = io->x + g * s->n * s->x_row + t * s->x_slot;
    q->first[1] = s->nu ? io->unc + g * s->nu * s->unc_row + t * s->unc_slot : NULL;
    q->first[2] = io->pos + g * s->np * s->pos_row + t * s->pos_slot;
    q->out_at = g * s->n * s->f_row + t * s->f_slot;
    q->w_u = s->nu ? io->w_u[g] : 0.0f;
}

/* Lanes i0 .. i0 + lanes - 1 of a group, of which `live` are samples. */
typedef struct drift_strip {
    ptrdiff_t i0, lanes, live;
} drift_strip;

/* Where sample i of a strip lies in xt and xb: TILE has all samples there, SWEEP one strip. */
static ptrdiff_t drift_lane(const drift_job *q, drift_strip st, ptrdiff_t i)
{
    return q->d.tile ? st.i0 + i : i;
}

static drift_strip drift_strip_at(const drift_job *q, ptrdiff_t i0)
{
    drift_strip st = {i0, q->d.lp - i0, q->s->n - i0};
    st.lanes = st.lanes < LW_DRIFT_LANES ? st.lanes : LW_DRIFT_LANES;
    st.live = st.live < LW_DRIFT_LANES ? st.live : LW_DRIFT_LANES;
    return st;
}

/* The lanes that are samples, as bits. */
static inline uint64_t drift_live(drift_strip st)
{
    return st.live < LW_DRIFT_LANES ? ((uint64_t)1 << st.live) - 1 : ~(uint64_t)0;
}

#endif
