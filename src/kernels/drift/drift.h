/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drift: the drift field of one feature key (Deng, Li, Li, Du, He, "Generative Modeling via
 * Drifting", 2026).
 *
 * Generated x [G,N,T,C], positives [G,Np,T,C] and unconditional negatives [G,Nu,T,C] with weight
 * w_u [G], in place. A group is one (g, t) pair: its rows are the N generated vectors of class g at
 * slot t, its targets the M = N + Nu + Np vectors gen | uncond | pos at the same slot. The scale S
 * and lambda are shared by all groups of the key; with own_scale each slot has its own S, over the
 * classes, and lambda is shared.
 *
 *   d_ij  = sqrt(max(|x_i - t_j|^2, 1e-8))
 *   S     = sum w_j d_ij / (N sum w_j)         sigma = max(S / sqrt C, 1e-3)
 *   l_ij  = -(d_ij / max(S, 1e-3) + 100 [i is j]) / tau
 *   A_ij  = w_j max(1e-3, sqrt(softmax over j * softmax over i))
 *   V_i   = (sum_{gen,unc} A * sum_pos A_ij t_j  -  sum_pos A * sum_{gen,unc} A_ij t_j) / sigma
 *   m     = mean V^2     lambda = sqrt(max(m, 1e-8))     F = sum_tau V / lambda
 *   loss  = mean F^2     dX     = -2 F / (G T N C sigma)
 *
 * Variants: PLAIN takes raw distances (mask 1e6), no floor, and S, sigma, lambda as 1.
 * TAU_TIMES_DIM takes tau sqrt(C) for tau, no floor (1e-30 in the root), mask 1e6, and V and dX in
 * raw features (sigma as 1).
 *
 * With own_scale the S that is reported is the mean of those of the slots, and so is sigma.
 *
 * The loss is flat by construction (1 with one tau, at most K^2): it shows no progress; m and S do.
 *
 * Work is cut into phases with a barrier between: run all tasks of phase 0, then of phase 1, ... in
 * any order inside a phase. Two regimes, chosen by shape: TILE (many small groups, a task is some
 * whole groups) and SWEEP (few large groups, a task is a block of generated samples). Distances are
 * kept between phases while all of them fit LW_DRIFT_PARK bytes (in TILE, of few channels,
 * LW_DRIFT_CACHED). Else TILE computes them again, and SWEEP meets them once: it takes the
 * normalisers ahead of S (drift_ahead.h) and notes the few pairs that may matter once these are
 * known (drift_near.h). Where affinities have no floor it keeps distances of a first part of the
 * samples, no more than the operands take and than LW_DRIFT_PARK, and computes the others again,
 * once. Memory beyond the operands is O(G T (N + M) (C + K) + K G T N C), never N x M.
 *
 * Doors: groups need not be met at once. A call with a door works on some groups of a key of
 * `whole` ones; sums are added up in `after`, going on from `before`, by group number. Where calls
 * take the groups in order, all that comes out has the bits of one call for all of them: regime,
 * kept distances and tasks are chosen by the whole's shape. Each door computes again what the doors
 * before it had (distances, V): nothing but the sums stays between calls.
 *
 * Cost: 2 N M C (K + 1) FLOP a group, of which large groups do less: most affinities lie at their
 * floor and share one vector. Of that floor at the peak of one thread, small groups take 1.25 to
 * 1.30 times the time, large ones 0.31 to 0.42, groups of 16 samples with 64 to 16 channels 3 to 6
 * (docs/performance-zen4.md).
 *
 * Files: drift_layout.h is the map of memory and of phases, drift_ref.inc the field in plain C.
 * drift_body.inc runs the phases in vector words; each header it stands on includes the one before:
 *
 *   drift_task.h      what a task works on: operands, places, strips of samples
 *   drift_bf16.h      products of rounded vectors
 *   drift_tiles.h     the same, and those of f32, on tile registers
 *   drift_pack.h      operands centred and packed
 *   drift_distance.h  tiles of distances
 *   drift_sums.h      temperatures, exponentials, normalisers
 *     drift_near.h      pairs that may matter, noted by the first pass
 *       drift_ahead.h     that pass: normalisers too, at a guess of S
 *       drift_field.h     affinities of a tile and what they gather
 *         drift_side.h      of all tiles of a side, or of what was noted of them
 *           drift_close.h     V of a strip from what was gathered
 */
#ifndef LW_KERNELS_DRIFT_H
#define LW_KERNELS_DRIFT_H

#include <stddef.h>
#include <stdint.h>

#include "base/kinds.h"

#define LW_DRIFT_PARK ((size_t)64 << 20)

typedef enum lw_drift_regime { LW_DRIFT_AUTO, LW_DRIFT_TILE, LW_DRIFT_SWEEP } lw_drift_regime;

typedef struct lw_drift_shape {
    ptrdiff_t g, n, np, nu, t, c; /* n, np >= 1; nu may be 0 */
    ptrdiff_t whole;              /* with a door: g of the key, of which these are some; 0: g */
    lw_drift_door door;
    ptrdiff_t x_row, x_slot;     /* elements between samples, slots of x; dense: t * c and c */
    ptrdiff_t pos_row, pos_slot; /* the same of the positives */
    ptrdiff_t unc_row, unc_slot; /* and of the unconditional negatives */
    ptrdiff_t f_row, f_slot;     /* and of both outputs F and dX */
    int k;                       /* temperatures, 1 .. LW_DRIFT_MAX_TAU */
    double tau[LW_DRIFT_MAX_TAU];
    int rows_only; /* 1: A = softmax over j only, no floor (normalize_over_x off) */
    int own_scale; /* 1: S of each slot */
    lw_drift_variant variant;
    lw_drift_regime regime; /* LW_DRIFT_AUTO but in tests */
    int keep;               /* distances kept, 0: by size; for tests 1: all, -1: none, 2: of the
                             * first strip of a group */
    lw_num num;             /* of the products of distances, above LW_DRIFT_DIRECT channels:
                             * LW_NUM_F32, LW_NUM_BF16 (of rounded vectors), LW_NUM_BF16X3 (f32 as
                             * gemm.h has it, at the level amx alone; TILE has f32 instead). The
                             * reference ignores it */
    double gain;            /* dX is multiplied by this (1, or a loss weight) */
    int add_dx;             /* 1: dX is added to */
} lw_drift_shape;

/* Numbers of before and after. */
static inline size_t lw_drift_state(const lw_drift_shape *s)
{
    return (size_t)LW_DRIFT_STATE_OF(s->own_scale, s->t);
}

/* Sample i of group g starts at (g * rows + i) * row + slot * t. Outputs F and dX may be NULL.
 * Distances must be below 1e17: where a vector is 5e16 from its group's centre or not a number, all
 * results are NaN (but the reference's, which computes in double). Affinities below e^-87 count as
 * 0. V is kept in f32 at any size of features and weights, the statistics m and loss are written as
 * f32.
 * stats: S, sigma, loss, lambda[K], m[K] (LW_DRIFT_STATS(k) numbers), written without a door and at
 * the last one. before, after [lw_drift_state]: with a door; may be the same. */
#define LW_DRIFT_IO(real)                \
    {                                    \
        real *f, *dx, *stats;            \
        const real *x, *pos, *unc, *w_u; \
        const double *before;            \
        double *after;                   \
    }
typedef struct lw_drift_io LW_DRIFT_IO(float) lw_drift_io;
typedef struct lw_drift_io_f64 LW_DRIFT_IO(double) lw_drift_io_f64;

/* One task of one phase. work: shared by all phases, scratch: one a worker; both 64-byte aligned,
 * contents of no matter at the start of phase 0. */
typedef void lw_drift_run_fn(const lw_drift_io *io, const lw_drift_shape *s, int phase,
                             int64_t task, void *work, void *scratch);

typedef lw_drift_run_fn lw_drift_run_low_fn;
typedef struct lw_drift_kernels {
    lw_drift_run_fn *run;
    lw_drift_run_low_fn *run_low; /* the same, for shapes whose num is not LW_NUM_F32 */
} lw_drift_kernels;

static inline lw_drift_run_fn *lw_drift_runner(const lw_drift_kernels *k, const lw_drift_shape *s)
{
    return s->num != LW_NUM_F32 ? k->run_low : k->run;
}

/* Pure functions of the shape, the same for every ISA. Sizes in bytes. */
int lw_drift_phases(const lw_drift_shape *s);
int64_t lw_drift_tasks(const lw_drift_shape *s, int phase);
size_t lw_drift_work(const lw_drift_shape *s);
size_t lw_drift_scratch(const lw_drift_shape *s);
/*
 * What the tasks of a phase leave in work for a later phase to put together, equal in number and
 * meaning on every rank that has a field of the same shape. Of the vector kernels; the reference
 * has no such parts.
 *   scale, moments    their mean over ranks with other groups, or other samples of the same
 *   minima, columns   of each target over the samples: over ranks with other samples of the same
 */
typedef enum lw_drift_join { LW_DRIFT_MEAN, LW_DRIFT_SUM, LW_DRIFT_MIN } lw_drift_join;
typedef struct lw_drift_part {
    const char *name;
    int phase;     /* at whose end they are whole */
    size_t offset; /* into work, bytes */
    int64_t count;
    int real64; /* doubles, else floats */
    lw_drift_join join;
} lw_drift_part;
#define LW_DRIFT_PARTS 4
int lw_drift_parts(const lw_drift_shape *s, lw_drift_part part[LW_DRIFT_PARTS]);
/* Arithmetic of a call: 2 N M C (K + 1) per group, of the door to S 2 N M C. */
double lw_drift_flops(const lw_drift_shape *s);

/* Fills the pitches of dense [G,N,T,C] operands and the defaults gain 1, dX written. */
void lw_drift_dense(lw_drift_shape *s);

/* The whole field in double by plain loops: oracle of tests and of `field` checks. Needs
 * lw_drift_work_f64 bytes. */
void lw_drift_run_f64(const lw_drift_io_f64 *io, const lw_drift_shape *s, void *work);
size_t lw_drift_work_f64(const lw_drift_shape *s);

#define K(family, isa, field, function) lw_drift_##field##_fn function;
#include "kernels/drift/drift.def"
#undef K

#endif
