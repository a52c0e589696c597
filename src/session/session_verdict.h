/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A battery's verdict on sets of pictures: distances of every set in every network that counts,
 * beside those of as many real pictures, and what eval_verdict.h makes of them.
 *
 *    real pictures ──lw_verdict_split──► reference | unseen ──► floors; honest sets: unseen ones
 *                                        damaged by data_junk.h, and draws of undamaged ones
 *    rows of pictures ──lw_verdict_run──► levels, the one number, who disagrees, who is suspect
 */
#ifndef LW_SESSION_VERDICT_H
#define LW_SESSION_VERDICT_H

#include "eval/eval.h"
#include "session/session_battery.h"

enum {
    LW_VERDICT_ROWS = 80,
    LW_VERDICT_TEXT = 256 * LW_VERDICT_ROWS, /* characters of it in words, at most */
    LW_VERDICT_REFERENCE = 5000, /* real pictures that rows are measured against, at most */
    LW_VERDICT_HONEST = 500      /* pictures of each honest set, at most */
};

/* Real pictures that no training saw, in memory: two disjoint draws of the same classes. */
typedef struct lw_verdict_real {
    int64_t reference, unseen; /* pictures, one behind the other in `pixels` */
    int32_t side, classes;
    uint8_t *pixels; /* [reference + unseen][side][side][3] */
    int32_t *labels; /* [reference + unseen] */
} lw_verdict_real;
/* Of a dataset of squares: `unseen` pictures (that of the largest row), half of them all at most, and
 * up to LW_VERDICT_REFERENCE others. LW_EUSAGE: fewer than 100 pictures. */
int lw_verdict_split(const lw_dataset *d, int64_t unseen, lw_verdict_real *out);
void lw_verdict_real_clear(lw_verdict_real *r);

typedef enum lw_verdict_part {
    LW_VERDICT_MADE,    /* a generator's: the rows that are ranked */
    LW_VERDICT_REAL,    /* real pictures, for comparison */
    LW_VERDICT_CONTROL, /* damaged ones, for comparison */
    LW_VERDICT_PLANTED  /* a cheater of ours, which must be exposed */
} lw_verdict_part;
const char *lw_verdict_part_name(lw_verdict_part p); /* "made", "real", "control", "planted" */

/* A row: n pictures as bytes [n][side][side][3], borrowed. */
typedef struct lw_verdict_set {
    const char *name;
    lw_verdict_part part;
    const uint8_t *rgb;
    int64_t n;
    const int32_t *labels; /* [n] or NULL: intervals are drawn by class */
    int32_t classes;
} lw_verdict_set;

typedef struct lw_verdict_opts {
    int32_t replicates; /* for intervals; 0: 100 */
    int32_t directions; /* of sliced distances; 0: LW_SLICED_DIRECTIONS */
    double level;       /* of intervals; 0: 0.95 */
    uint64_t seed;
    bool afresh; /* features of real pictures are neither looked for nor kept in the cache */
} lw_verdict_opts;

/* Row r in network number k of those that count. */
typedef struct lw_verdict_value {
    double frechet, sliced, frechet_real, sliced_real;
    lw_interval frechet_ratio, sliced_ratio; /* over those of real pictures */
} lw_verdict_value;

typedef struct lw_verdict_result {
    int32_t networks, rows, families;
    int32_t network[LW_VERDICT_MOST]; /* numbers in the battery of those that count */
    lw_verdict_rule rule;             /* sets 0: too few networks for one */
    lw_verdict_row row[LW_VERDICT_ROWS];
    lw_verdict_value value[LW_VERDICT_ROWS][LW_VERDICT_MOST];
    int64_t reference, unseen, honest; /* pictures; of each honest set */
    int32_t replicates, directions;
    double level, seconds;
} lw_verdict_result;

/* *out: heap (lw_free). LW_EUSAGE: no network counts; LW_ENUMERIC: a distance that is none;
 * LW_ESTOPPED. Same bits for any number of threads, for a row whatever other rows there are. */
int lw_verdict_run(lw_device *dev, lw_battery *b, const lw_verdict_real *real,
                   const lw_verdict_set *rows, int32_t n_rows, const lw_verdict_opts *o,
                   const lw_observer *obs, lw_verdict_result **out);
/* How long that will take, measured on pieces of it: rows give n alone. Features of real pictures that
 * are in the cache cost nothing. */
int lw_verdict_forecast(lw_device *dev, lw_battery *b, const lw_verdict_real *real,
                        const lw_verdict_set *rows, int32_t n_rows, const lw_verdict_opts *o,
                        double *seconds);

#endif
