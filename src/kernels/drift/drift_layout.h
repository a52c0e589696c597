/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of the drift field's work and scratch memory, and its constants by variant. Private to
 * drift/. */
#ifndef LW_KERNELS_DRIFT_LAYOUT_H
#define LW_KERNELS_DRIFT_LAYOUT_H

#include "kernels/drift/drift.h"

#define LW_DRIFT_LANES 64                 /* generated samples of a strip, most */
#define LW_DRIFT_NR 32                    /* generated samples of a transposed panel */
#define LW_DRIFT_ROWS 32                  /* targets of a tile that stays in the first cache */
#define LW_DRIFT_TARGETS 128              /* targets of a tile, most */
#define LW_DRIFT_BLOCKS 64                /* most blocks of a group (tasks of a sweep) */
#define LW_DRIFT_AHEAD_BLOCKS 32          /* the same where sums are taken ahead */
#define LW_DRIFT_PROBES 8                 /* tasks of a group's guess */
#define LW_DRIFT_PACKS ((size_t)4 << 20)  /* TILE keeps packed operands up to this size */
#define LW_DRIFT_CACHED ((size_t)8 << 20) /* what a last cache holds beside the operands */
#define LW_DRIFT_CHEAP 32                 /* up to so many channels, distances are soon computed */
#define LW_DRIFT_NEAR_KINDS 3             /* sums that limits of near pairs come from */
#define LW_DRIFT_NEAR_RULE 32             /* floats that a group's limits take, most */
#define LW_DRIFT_AT_ONCE 8                /* targets of a group packed before those of the next */
#define LW_DRIFT_BATCH 16                 /* most groups of a task */
#define LW_DRIFT_DIRECT \
    8 /* up to this many channels, squared differences instead of the Gram product */

/* Phases of the two regimes, in order. */
enum { TILE_DIST, TILE_SCALE, TILE_FIELD, TILE_LAMBDA, TILE_COMBINE, TILE_PHASES };
enum {
    SWEEP_PACK,    /* group: centre, pack, norms, weights */
    SWEEP_PROBE,   /* group x probe: targets split; ahead: distances of a few samples */
    SWEEP_GUESS,   /* ahead, one: guess of S; from what distance on a pair is no near one */
    SWEEP_DIST,    /* group x block: distances, S, minima; ahead: sums, near pairs */
    SWEEP_SCALE,   /* one: S */
    SWEEP_MINIMA,  /* group: target minima over blocks; factors of the sums */
    SWEEP_SUM,     /* group x block: exponential sums over targets and over samples, where those
                    * ahead do not serve */
    SWEEP_MERGE,   /* group: the latter over blocks */
    SWEEP_FIELD,   /* group x block: V and its moments */
    SWEEP_LAMBDA,  /* one: m, lambda, loss */
    SWEEP_COMBINE, /* group x block: F, dX */
    SWEEP_PHASES
};

/*
 * Derived sizes; floats unless said otherwise. Generated samples lie along vector lanes and are cut
 * into strips of LW_DRIFT_LANES; a tile is some targets (its rows) times a strip (its columns).
 */
typedef struct lw_drift_dims {
    ptrdiff_t groups;       /* G T */
    ptrdiff_t whole;        /* G T of the key of which these are some: what choices go by */
    ptrdiff_t m, neg;       /* targets N + Nu + Np; of these gen and unc come first */
    ptrdiff_t lp;           /* lanes: N rounded up to 16 */
    ptrdiff_t strips;       /* of a group */
    ptrdiff_t lanes;        /* of its widest strip */
    ptrdiff_t cp;           /* channels rounded up to 16: pitch of V */
    ptrdiff_t pitch;        /* of packed vectors: cp made an odd number of cache lines */
    ptrdiff_t rows, blocks; /* samples of a task's block (whole strips), blocks of a group */
    ptrdiff_t batch;        /* TILE: groups of a task */
    ptrdiff_t jb;           /* targets of a tile */
    ptrdiff_t moments;      /* K (K + 1) / 2 products V_a . V_b */
    ptrdiff_t kept;         /* strips of a group whose distances are kept in work */
    ptrdiff_t near;         /* ahead: near pairs of a group there is room for, 0: none are noted */
    ptrdiff_t segments;     /* targets of a group in tiles of LW_DRIFT_ROWS, kind by kind */
    int tile;               /* regime is TILE */
    int ahead;              /* SWEEP: distances are not all kept; see drift_ahead.h */
    int low;                /* distances from vectors rounded to bf16 */
    int split;              /* from vectors as LW_NUM_BF16X3 has them */
    ptrdiff_t words;        /* of such a vector; 0: of neither */
    ptrdiff_t word_pitch;   /* between targets, an odd number of cache lines */
    int packs_kept;         /* packed operands stay in work between phases */
    int late;               /* TILE: in its second phase targets are only centred again: those of a
                             * task's one group whose distances are kept tile by tile, right before
                             * they are summed up; else those of all groups at its beginning */
} lw_drift_dims;

/* Byte offsets into work. Pitches of groups: lw_drift_pack's floats, m lp, ... */
typedef struct lw_drift_map {
    size_t v; /* float  [groups][K][N][cp] */
    size_t
        parts;   /* SWEEP: float [groups][parts][K][m], of csum: a part a block, ahead three. In the
                    * place of v, which is written when they have been added up */
    size_t kept; /* float  [groups][kept strips][m][lanes of the strip] */
    size_t s_part; /* double [groups * blocks] */
    size_t m_part; /* double [groups * blocks][moments] */
    size_t rmin;   /* float [groups][lp]: least distance of each sample */
    size_t cmin;   /* float [groups][blocks + 1][m] of each target; the last is the merged one */
    size_t pack;   /* float [groups][pack] when kept */
    size_t centre; /* late: float [groups][4][cp], base and mean of lw_drift_pack */
    size_t norms;  /* late, distances not kept: float [groups][m], tn of lw_drift_pack */
    size_t range;  /* SWEEP: float [groups][16], see drift_factors */
    size_t u, v_i; /* SWEEP: float [groups][K][m] and [groups][K][lp], factors of the sums */
    size_t rsum;   /* SWEEP: float [groups][K][lp] */
    size_t rmom;   /* ahead: float [groups][K][3][lp] */
    size_t csum;   /* SWEEP: float [groups][K][m] */
    size_t probes; /* ahead: double [groups][PROBES][2] */
    size_t guess;  /* ahead: double */
    /* Near pairs, see drift_near.h */
    size_t near_mean; /* float [groups][2][cp + 16], see drift_near_means */
    size_t near_sums; /* float [groups][PROBES][KINDS][K][LANES], see drift_near_decide */
    size_t near_rule; /* float [groups][NEAR_RULE]: a drift_near_rule */
    size_t near_root; /* float [groups][m + lp], halves of r of targets and of samples */
    size_t near_d;    /* float [groups][near] */
    size_t near_at;   /* uint16_t [groups][near] */
    size_t near_from; /* uint32_t [groups][strips][segments + 1] */
    size_t near_bad;  /* uint8_t [groups][segments + strips], see drift_near_check */
    size_t v_unit;    /* double, after *_SCALE: unit of v, see reduce_scale */
    size_t scale;     /* own_scale: double [T], S of each slot after *_SCALE */
    size_t stats;     /* double: S after *_SCALE, all of stats after *_LAMBDA */
    size_t bytes;
} lw_drift_map;

/* Float offsets into a worker's scratch. */
typedef struct lw_drift_pad {
    ptrdiff_t d, e, a; /* [jb][lanes] distances, exponentials; [lanes / 16][jb][16]
                        * affinities above the floor */
    ptrdiff_t out;     /* [K, at least 2][LANES][cp] what lies above the floor over positives; that
                        * over negatives is put where V goes, and V in its place */
    ptrdiff_t sums;    /* [2][K][LANES] affinity sums: negatives, positives */
    ptrdiff_t bits;    /* uint64_t [jb]: which affinities of a target lie above the floor */
    ptrdiff_t reach;   /* uint64_t [jb / 64 rounded up][64]: the same of a sample, by 64 targets */
    ptrdiff_t lanes;   /* SWEEP: a strip's samples as in lw_drift_pack.xt */
    /* TILE only: operands of a task's groups; distances (unless kept in work), factors and sums of
     * one group */
    ptrdiff_t pack, all, range, u, v, rsum, csum;
    ptrdiff_t floats;
} lw_drift_pad;

/* A group's packed operands, float offsets. Vectors are centred on the group's mean; targets are
 * gen | unc | pos, so the generated samples are the first. */
typedef struct lw_drift_pack {
    ptrdiff_t t;      /* [m][pitch], zeros behind channel C */
    ptrdiff_t tn;     /* [m] squared norms */
    ptrdiff_t xn;     /* [lp] of the generated, 1e36 in lanes without one */
    ptrdiff_t w;      /* [m] weights */
    ptrdiff_t base;   /* [3][cp] sum of w t over negatives, over positives, over the generated */
    ptrdiff_t excess; /* SWEEP: [3][cp] what rounding has made these sums too large by */
    ptrdiff_t mean;   /* [cp] the centre */
    ptrdiff_t tb;     /* rounded or split: uint32_t [m and ROWS][word_pitch], two channels a word */
    ptrdiff_t xt;     /* TILE: [lp / NR rounded up][C][NR] generated samples transposed; rounded or
                     * split: uint32_t [lp / NR rounded up][words][NR]. SWEEP: one strip, in
                     * scratch */
    ptrdiff_t floats;
} lw_drift_pack;

void lw_drift_pad_of(lw_drift_pad *pad, const lw_drift_shape *s, const lw_drift_dims *d);
void lw_drift_pack_of(lw_drift_pack *pack, const lw_drift_shape *s, const lw_drift_dims *d);
void lw_drift_dims_of(lw_drift_dims *d, const lw_drift_shape *s);
void lw_drift_map_of(lw_drift_map *map, const lw_drift_shape *s, const lw_drift_dims *d);
/* Number of the tile of LW_DRIFT_ROWS targets that begins at target j; these begin anew at each of
 * generated, unconditional and positive ones. */
ptrdiff_t lw_drift_segment(const lw_drift_shape *s, const lw_drift_dims *d, ptrdiff_t j);
/* Where the near pairs of strip number `strip` begin; that of the last + 1 is d->near. */
ptrdiff_t lw_drift_near_at(const lw_drift_dims *d, ptrdiff_t strip);

/* Work of the reference. */
size_t lw_drift_work_ref(const lw_drift_shape *s);

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
/* S from the sums over all groups, and that of one slot from its own sum of w d. */
double lw_drift_scale_of(const lw_drift_shape *s, const double *state);
double lw_drift_slot_scale_of(const lw_drift_shape *s, const double *state, double sum);
/* Rows of all groups of the key, N G T. */
double lw_drift_rows(const lw_drift_shape *s);

#endif
