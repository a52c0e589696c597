/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A queue of real pictures, as published drifting trainers keep one: a ring for each class and one for all, filled from a
 * shuffled pass over the data, sampled without taking anything out.
 *
 * It holds row numbers, and whether the picture is mirrored, not pictures: rows are mapped. What it holds at a step
 * is a function of the data, the options and the number of the step alone, so nothing of it is saved: a run that goes on
 * pushes again what was pushed before, which takes some nanoseconds a row.
 *
 * Where a ring has fewer rows than a group needs, it is filled with rows of its class before anything is drawn
 * (`backfilled`): never is anything drawn from an empty ring.
 */
#ifndef LW_DATA_QUEUE_H
#define LW_DATA_QUEUE_H

#include "data/data_classes.h"

typedef enum lw_queue_warmup { LW_QUEUE_RANDOM, LW_QUEUE_BALANCED } lw_queue_warmup;
typedef enum lw_queue_refill { LW_QUEUE_PER_STEP, LW_QUEUE_EVERY_N } lw_queue_refill;

typedef struct lw_queue_opts {
    int32_t per_class, global; /* capacities */
    int32_t push;              /* rows of a refill */
    int32_t prime;             /* rows before the first step */
    int32_t warmup;            /* lw_queue_warmup: the next of the pass, or as many of each class */
    int32_t min_per_class;     /* that the latter sees to */
    int32_t refill;            /* lw_queue_refill */
    int32_t refill_every;      /* steps */
    bool strict;  /* no entry of a ring twice in a group: rings hold what a group needs */
    bool ordered; /* the pass is in the order of the data, not shuffled */
    bool flip;    /* half of the rows are mirrored: rows + n */
} lw_queue_opts;

typedef struct lw_queue_counts {
    int64_t missing_labels;     /* classes of a step whose ring had too few rows */
    int64_t backfilled_samples; /* as many: both count classes, as the published trainers do */
} lw_queue_counts;

typedef struct lw_queue lw_queue;
/* Draws by o->groups, positives, unconditional and seed, and by their rule. Borrows d. LW_EUSAGE: rings that are too
 * small, a class (named) with too few rows. */
int lw_queue_new(const lw_dataset *d, const lw_class_opts *o, const lw_queue_opts *q,
                 lw_queue **out);
void lw_queue_free(lw_queue **pp);
/* As lw_class_sampler_draw, of step; a mirrored row is row + n. Steps in order are cheap; behind an earlier one it
 * begins again. */
int lw_queue_draw(lw_queue *q, int64_t step, int32_t *classes, int64_t *positives,
                  int64_t *unconditional);
lw_queue_counts lw_queue_step_counts(const lw_queue *q); /* of the step drawn last */
lw_queue_counts lw_queue_totals(const lw_queue *q);      /* of all steps up to it */
int64_t lw_queue_held(const lw_queue *q);                /* rows in the ring of all */
int32_t lw_queue_covered(const lw_queue *q);             /* classes with rows */
int64_t lw_queue_pushed(const lw_queue *q);              /* rows that went in so far */
int32_t lw_queue_rings(const lw_queue *q);              /* of classes; 1 where labels are ignored */
int32_t lw_queue_held_of(const lw_queue *q, int32_t c); /* rows in one of them */
size_t lw_queue_bytes(const lw_queue *q);

#endif
