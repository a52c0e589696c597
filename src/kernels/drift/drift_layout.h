/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of the drift field's work and scratch memory, and its constants by variant. Private to
 * drift/. */
#ifndef LW_KERNELS_DRIFT_LAYOUT_H
#define LW_KERNELS_DRIFT_LAYOUT_H

#include "kernels/drift/drift.h"

#define LW_DRIFT_NR 32     /* target columns and channels of a packed panel */
#define LW_DRIFT_RB 64     /* rows of a tile */
#define LW_DRIFT_CB 256    /* target columns of a tile */
#define LW_DRIFT_BLOCKS 64 /* most row blocks of a group (tasks of a sweep) */
#define LW_DRIFT_DIRECT \
    8 /* up to this many channels, squared differences instead of the Gram product */

/* Phases of the two regimes, in order. */
enum { TILE_DIST, TILE_SCALE, TILE_FIELD, TILE_LAMBDA, TILE_COMBINE, TILE_PHASES };
enum {
    SWEEP_PACK,    /* group: centre, panels, norms, weights */
    SWEEP_DIST,    /* group x row block: distances, S, minima */
    SWEEP_SCALE,   /* one: S */
    SWEEP_MINIMA,  /* group: column minima over row blocks */
    SWEEP_SUM,     /* group x row block: exponential sums of rows and columns */
    SWEEP_MERGE,   /* group: column sums over row blocks */
    SWEEP_FIELD,   /* group x row block: V and its moments */
    SWEEP_LAMBDA,  /* one: m, lambda, loss */
    SWEEP_COMBINE, /* group x row block: F, dX */
    SWEEP_PHASES
};

/* Derived sizes; floats unless said otherwise. */
typedef struct lw_drift_dims {
    ptrdiff_t groups;       /* G T */
    ptrdiff_t m;            /* targets N + Nu + Np */
    ptrdiff_t pos;          /* first padded column of the positives: N + Nu rounded up to NR */
    ptrdiff_t mp;           /* padded columns */
    ptrdiff_t cp;           /* channels rounded up to 16: pitch of V */
    ptrdiff_t panels;       /* channel panels of NR */
    ptrdiff_t rows, blocks; /* rows of a task's block, blocks of a group */
    ptrdiff_t moments;      /* K (K + 1) / 2 products V_a . V_b */
    ptrdiff_t rb, cb;       /* rows and columns of a tile in scratch */
    int tile, park;         /* regime is TILE; distances are kept */
} lw_drift_dims;

/* Byte offsets into work. */
typedef struct lw_drift_map {
    size_t v;      /* float  [K][groups][N][cp] */
    size_t park;   /* float  [groups][N][mp] when kept */
    size_t s_part; /* double [groups * blocks] */
    size_t m_part; /* double [groups * blocks][moments] */
    size_t pack;   /* SWEEP: float [groups][pack] */
    size_t rmin;   /* SWEEP: float [groups][N] */
    size_t rsum;   /* SWEEP: float [groups][K][N] */
    size_t cmin;   /* SWEEP: float [groups][blocks + 1][mp]; the last row is the merged one */
    size_t csum;   /* SWEEP: float [groups][blocks + 1][K][mp] */
    size_t stats;  /* double: S after *_SCALE, all of stats after *_LAMBDA */
    size_t bytes;
} lw_drift_map;

/* Float offsets into a worker's scratch. */
typedef struct lw_drift_pad {
    ptrdiff_t d, e, a; /* [rb][cb] distances, exponentials, affinities */
    ptrdiff_t opos;    /* [K][rb][cp] sums over positives */
    ptrdiff_t sums;    /* [2][K][rb] affinity sums: negatives, positives */
    ptrdiff_t mean;    /* [C] centre of the group */
    /* TILE only: the group's packed operands, distances (unless kept in work), minima and sums */
    ptrdiff_t pack, all, rmin, rsum, cmin, csum;
    ptrdiff_t floats;
} lw_drift_pad;

/* A group's packed operands, float offsets. Vectors are centred on the group's mean. Target columns
 * are gen | unc | pad | pos | pad, panels of NR; pads have norm 1e30 and weight 0. */
typedef struct lw_drift_pack {
    ptrdiff_t x;      /* [N][cp + 16] */
    ptrdiff_t xn, tn; /* [N], [mp] squared norms */
    ptrdiff_t w;      /* [mp] weights */
    ptrdiff_t cols;   /* [mp / NR][C][NR]: a panel of targets, transposed */
    ptrdiff_t rows;   /* [panels][mp][NR]: a panel of channels */
    ptrdiff_t floats;
} lw_drift_pack;

void lw_drift_pad_of(lw_drift_pad *pad, const lw_drift_shape *s, const lw_drift_dims *d);
void lw_drift_pack_of(lw_drift_pack *pack, const lw_drift_shape *s, const lw_drift_dims *d);
void lw_drift_dims_of(lw_drift_dims *d, const lw_drift_shape *s);
void lw_drift_map_of(lw_drift_map *map, const lw_drift_shape *s, const lw_drift_dims *d);

/* What a variant changes, given S. */
typedef struct lw_drift_rule {
    double unit;       /* distances are divided by this */
    double mask;       /* added to the distance of a sample to itself, in raw units */
    double tau_factor; /* temperatures are multiplied by this */
    double floor;      /* least A */
    double inside;     /* added under the root of A */
    double sigma;      /* reported; V is divided by v_unit, dX by v_unit again */
    double v_unit;
    int lambda; /* 1: V is scaled to unit RMS */
} lw_drift_rule;

void lw_drift_rule_of(lw_drift_rule *r, const lw_drift_shape *s, double scale);
/* m, lambda and loss from S and the sums over all rows and channels of V_a V_b, a <= b, row by row;
 * fills stats[]. */
void lw_drift_finish(double *stats, const lw_drift_shape *s, double scale, const double *moments);
/* Weight sum of S's denominator: N T sum_g (N + Nu w_u[g] + Np). */
double lw_drift_weight(const lw_drift_shape *s, double sum_w_u);

#endif
