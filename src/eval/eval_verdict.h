/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict of several networks on several sets of pictures (rows), from distances alone.
 *
 * Level of a row in a network, both measures as distances (a Frechet distance is a squared one),
 * against what as many real pictures that are not in the reference have:
 *
 *    level = ( 1/2 log(frechet / frechet_real) + log(sliced / sliced_real) ) / 2
 *
 * 0: as far from the reference as real pictures are; log 2: twice as far. The one number of a row is
 * the mean of its levels over the networks; exp of it is "times as far as real pictures". Its
 * interval comes from rows drawn anew, the same draws in every network: it says what other pictures
 * of the same generator would change, not what other networks would.
 *
 * Who disagrees: the network under which the row's rank among the rows lies farthest from its median
 * rank under the others.
 *
 * THE RULE ON CHEATERS. A set that was made to look good to one network lies nearer to real pictures
 * there than the others say. How much networks differ when nobody cheats is learnt from honest bad
 * sets: real pictures damaged in ways that look at no network, in several shares, and draws of
 * undamaged ones with as many of each class (lw_verdict_learn). Never from cheaters, never from the rows judged.
 *
 *    relative level   z[k] = level[k] / scale[k]     scale: how strongly network k answers to the
 *                                                    honest sets, mean 1 over the networks
 *    what others say  m[k] = median of z over the networks but k
 *    shortfall        u = max over k of (m[k] - z[k]) / (max(m[k], 0) + 4 noise)
 *                                                    noise: sd of z of undamaged real sets, which
 *                                                    differ by chance alone
 *    suspect          u > limit = max(largest u of an honest set, mean + 3.09 sd of them)
 *
 * u is near 1 when one network sees nothing of what the others see. False alarms: one honest row in
 * 1,000 if shortfalls of honest rows are normal; were they only exchangeable with those of the n
 * honest sets, no more than one in n + 1. Should the limit reach 0.95, networks disagree so much by
 * themselves that the rule could expose nobody: it is then blind, and says so. Fewer than
 * LW_VERDICT_LEAST networks give no verdict on cheaters at all: two cannot outvote one. A row made
 * against half of the networks or more is not found by it.
 *
 * COPIES. A copied picture, with noise on it too, lies near a picture that was learnt and not as near
 * to any that was not: its ratio
 *
 *    r = distance to the nearest training picture / distance to the nearest picture of the reference
 *
 * (in pixels) is small. What is near everything, a blur or a grey, is near both alike; what is far
 * from everything is no copy. How r falls for new pictures is learnt from unseen real ones:
 *
 *    copy         r < that of one in ten unseen pictures (data sets have near duplicates of their
 *                 own), and no farther from training pictures than nine in ten unseen pictures
 *    vote         of each training picture that is the nearest of some: are most of those copies?
 *                 Pictures nearly equal share their nearest one: else a single coincidence would
 *                 count as often as it is repeated
 *    suspect      surely (Wilson's interval at 3.29 sd) over 30 % of the votes: three times as many
 *                 as among unseen real pictures, and five votes at least
 */
#ifndef LW_EVAL_VERDICT_H
#define LW_EVAL_VERDICT_H

#include "eval/eval.h"

enum { LW_VERDICT_MOST = 32, LW_VERDICT_LEAST = 3 }; /* networks */
#define LW_VERDICT_BLIND 0.95

/*
 * The Frechet distance of rows [n][dim] to a reference, and its replicates to first order: to each
 * row belongs its influence 2 (mean - mean_r) (x - mean) + (x - mean) G (x - mean), less their mean,
 * with G of lw_frechet_gradient, and a replicate in which row i stands c[i] times is value + mean of
 * (c[i] - 1) influence[i]. One decomposition instead of one for each replicate; of hundreds of rows
 * its intervals are those of the exact replicates to some per cent. Not below 0. loss: of the
 * reference.
 */
int lw_frechet_linear(const float *rows, int64_t n, const lw_stats *reference,
                      const lw_frechet_loss *loss, const lw_resampling *how, double *value,
                      double *replicates);

/* A row in a network. Replicates belong to the same draws in every network; NULL: none. */
typedef struct lw_verdict_cell {
    double frechet, sliced;           /* to the reference */
    double frechet_real, sliced_real; /* of as many real pictures */
    const double *frechet_draws, *sliced_draws;
} lw_verdict_cell;

/* LW_ENUMERIC: a distance that is not finite or below 0, or a network that tells no real pictures
 * apart. Distances of 0 count as 1e-6 of the real ones. */
int lw_verdict_level(double frechet, double sliced, double frechet_real, double sliced_real,
                     double *out);

typedef struct lw_verdict_rule {
    int32_t networks, sets; /* honest sets it was learnt from; 0: no rule */
    double scale[LW_VERDICT_MOST];
    double noise;
    double mean, sd, worst; /* shortfalls of the honest sets */
    double limit;
    bool blind;
} lw_verdict_rule;
/* damaged [n_damaged][networks], whole [n_whole][networks]: levels of honest sets, whole those that
 * nothing was done to. LW_EUSAGE: fewer than LW_VERDICT_LEAST networks, 10 damaged or 5 whole sets. */
int lw_verdict_learn(int32_t networks, const double *damaged, int32_t n_damaged,
                     const double *whole, int32_t n_whole, lw_verdict_rule *out);

typedef struct lw_verdict_row {
    double level[LW_VERDICT_MOST];
    lw_interval number;     /* mean of the levels; low = high = value without replicates */
    int32_t apart;          /* the network that disagrees; -1: none does, or fewer than two rows */
    double rank, rank_rest; /* of the row there (1: nearest to real), median under the others */
    bool judged;            /* the rest is set: there is a rule */
    int32_t lowest;         /* the network of the largest shortfall */
    double shortfall;       /* u */
    bool suspect;
} lw_verdict_row;
/* cells [rows][networks]; replicates: of every cell that has draws; level: e.g. 0.95; rule or NULL.
 * counted [rows]: rows that stand for ranks and are compared (NULL: all); those not counted (planted
 * ones, controls) get everything but do not move the others. */
int lw_verdict_rows(int32_t networks, int32_t rows, const lw_verdict_cell *cells,
                    const bool *counted, int32_t replicates, double level,
                    const lw_verdict_rule *rule, lw_verdict_row *out);

/* A picture's distances, in the unit of pixels, to the nearest training picture and to the nearest
 * picture of the reference. */
typedef struct lw_nearness {
    double training, reference;
    int64_t which; /* the training picture */
} lw_nearness;
typedef struct lw_copying {
    int64_t n, near; /* pictures; copies among them */
    int64_t voters,
        ayes;          /* training pictures that are the nearest of some; those that were copied */
    double ratio;      /* limit of r */
    lw_interval share; /* ayes of voters */
    bool suspect;
} lw_copying;
/* made [n], unseen [m], which none of the reference is. LW_EUSAGE below 20 unseen pictures. */
int lw_copying_of(const lw_nearness *made, int64_t n, const lw_nearness *unseen, int64_t m,
                  lw_copying *out);

#endif
