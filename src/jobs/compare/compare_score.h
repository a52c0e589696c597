/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How good are these pictures? Measured against real ones that no training saw, with controls that
 * must fail: a measure that cannot say no measures nothing.
 *
 *   scorer = judge (optional) + reader (optional) + features + reference and training pictures
 *   pictures [n][h][w][3], classes asked for ──lw_scorer_score──► lw_score
 *   lw_score ──lw_score_check──► pass or fail, by criterion
 *
 * The judge may answer "no picture of the data"; the reader is a plain classifier that may not.
 * What the reader reads legibly, the judge may still refuse. Without a reader the judge's answers
 * among the real classes stand in. Features are the reader's pooled ones (without one the judge's),
 * or another encoder's when one is named.
 */
#ifndef LW_COMPARE_SCORE_H
#define LW_COMPARE_SCORE_H

#include "data/data.h"
#include "eval/eval.h"
#include "base/observer.h"
#include "session/session_features.h"

typedef struct lw_scorer_opts {
    const char *data;    /* spec the generators were trained on */
    const char *data_of; /* the run that named it; NULL: the caller did */
    int32_t image_size;
    int64_t limit;       /* training rows they saw; 0: all */
    const char *judge;   /* run of a judge, or NULL */
    const char *reader;  /* run of a classifier of the same classes, or NULL */
    const char *encoder; /* spec for Frechet distances, or NULL: the reader's or judge's features */
    int32_t on_error;    /* lw_on_error, of pictures that cannot be read */
    int64_t n;           /* pictures of the largest set to be scored: sizes the reference */
    uint64_t seed;
    const lw_observer *obs; /* may stop opening and scoring between two blocks; NULL: nobody */
} lw_scorer_opts;

typedef struct lw_score {
    char name[64];
    int64_t n;
    bool judged;       /* strict and plain are set */
    lw_verdict strict; /* junk competes: accepted = own class >= 0.9 with "no picture" possible */
    lw_verdict plain;  /* the reader's: accepted_any = legible, agreement */
    lw_interval fd;    /* Frechet distance to the reference, 95 % */
    double diversity;  /* within-class spread / that of real pictures */
    double colour;     /* distance of colour statistics; 0: right, near 1: gray */
    double near_median, near_min; /* RMS per number to the nearest training picture; of 1,000 */
    int64_t copies;     /* of those, closer to a training picture than scorer.copy_radius */
    int64_t duplicates; /* of those, that close to another of the set */
} lw_score;

/* Pictures whose own class the judge gives at least this are accepted: 0.9, of which
 * 0.9f falls a little short. */
#define LW_JUDGE_SURE (0.9 - 1e-6)

typedef struct lw_scorer lw_scorer;
/* Opens data, judge, features; measures the reference. Borrows the device. LW_EUSAGE: neither judge
 * nor encoder, or a judge of another data's classes. */
int lw_scorer_new(lw_device *dev, const lw_scorer_opts *o, lw_scorer **out);
void lw_scorer_free(lw_scorer **pp);

int32_t lw_scorer_side(const lw_scorer *s);
int32_t lw_scorer_classes(const lw_scorer *s); /* 0: the data has no labels */
bool lw_scorer_has_judge(const lw_scorer *s);
const char *lw_scorer_features(
    const lw_scorer *s); /* "the reader's pooled features (96 numbers)" */
const char *lw_scorer_reference(const lw_scorer *s); /* "5,000 held-out pictures" */
const char *lw_scorer_distance(const lw_scorer *s);  /* "Frechet distance, resnet56" */
const lw_dataset *lw_scorer_heldout(const lw_scorer *s);
const lw_dataset *lw_scorer_training(const lw_scorer *s);
/* Up to n held-out pictures that are not in the reference; x [n][h][w][3], classes [n]. Returns how
 * many. */
int64_t lw_scorer_real(const lw_scorer *s, int64_t n, float *x, int32_t *classes);

/* asked [n]: class asked of each picture, or NULL. */
int lw_scorer_score(lw_scorer *s, const char *name, const float *x, const int32_t *asked, int64_t n,
                    lw_score *out);

/* The training picture nearest to each of n pictures (pixels, root mean square): pictures into near
 * [n][h][w][3], distance [n]. */
int lw_scorer_nearest(const lw_scorer *s, const float *x, int64_t n, float *near, double *distance);
/* Distance of each of m pictures to the nearest of `count` pictures of bytes, likewise: near [m];
 * row [m] (or NULL): which. */
int lw_scorer_nearest_of(const lw_scorer *s, const uint8_t *pixels, int64_t count, const float *x,
                         int64_t m, double *near, int64_t *row);
/* Probability that the judge gives the class asked for, of each picture; needs a judge. */
int lw_scorer_own(lw_scorer *s, const float *x, const int32_t *asked, int64_t n, float *own);

/* ---- controls and the judge's own examination ------------------------------------------- */

enum { LW_CONTROLS = 7 };
/* Scores n pictures of each kind that must fail: uniform noise, averages of two, half splices, 2x
 * blur, class means, noised real pictures, ten pictures repeated. */
int lw_scorer_controls(lw_scorer *s, int64_t n, const lw_observer *obs, lw_score out[LW_CONTROLS]);

/* Is the judge fit to judge? */
typedef struct lw_judge_exam {
    double accuracy;         /* of the real classes on held-out pictures; >= 0.99 */
    double real_accepted;    /* >= 0.90 */
    double means_accepted;   /* class means with noise; <= 0.10 */
    double blurred_accepted; /* 2x blurred real pictures; <= 0.10 */
    bool accurate, fit;      /* the first of these; all of them */
} lw_judge_exam;
lw_judge_exam lw_judge_examine(const lw_score *real, const lw_score controls[LW_CONTROLS]);

/* ---- the bar ---------------------------------------------------------------------------- */

typedef enum lw_criterion {
    LW_BAR_LEGIBLE,   /* share whose likeliest class has >= 0.9 among the real ones: >= 0.90 */
    LW_BAR_AGREEMENT, /* share of the class asked for: >= 0.95 */
    LW_BAR_CLASSES,   /* every class 5 % to 20 % of ten; scaled for other counts */
    LW_BAR_DIVERSITY, /* >= 0.80 */
    LW_BAR_COLOUR,    /* <= 0.15 */
    LW_BAR_ACCEPTED,  /* own class >= 0.9 with junk possible: >= 0.40 */
    LW_BAR_COUNT
} lw_criterion;

typedef struct lw_bar_line {
    const char *name, *asked; /* "legible", ">= 90 %" */
    char value[40];
    bool applies, pass; /* without a fit judge some do not apply */
} lw_bar_line;
/* Returns how many lines apply and fail. */
int lw_score_check(const lw_score *s, int32_t classes, const lw_judge_exam *exam,
                   lw_bar_line out[LW_BAR_COUNT]);

#endif
