/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an encoder's features say of held-out pictures, without a layer trained on them: the ten
 * training pictures (of the first 5,000 drawn) nearest to each of up to 2,000 held-out ones by
 * cosine, and the class these vote for.
 */
#ifndef LW_ENCODER_NEIGHBOURS_H
#define LW_ENCODER_NEIGHBOURS_H

#include "session/session_forward.h"
#include "train/pictures/train_pictures.h"

enum { LW_NEIGHBOURS = 10 };

typedef struct lw_neighbours {
    const lw_picture_run *p;
    lw_picture_held held;
    int64_t *train_drawn;   /* [among] rows of the training data */
    int64_t queries, among; /* pictures held out, and looked among */
    float *query, *base;    /* [queries], [among] of unit vectors */
    int64_t *near;          /* [queries][LW_NEIGHBOURS], of base */
} lw_neighbours;

/* Rows of a dataset in their drawn order, and a feed's fill with their pictures. */
typedef struct lw_drawn {
    const lw_dataset *data;
    const int64_t *rows;
} lw_drawn;
int lw_drawn_fill(void *self, int64_t first, int64_t n, void *images);

/* Opens the held-out rows and makes room for vectors of up to `dim` numbers. train_drawn: rows of the
 * training data in their drawn order; copied. Borrows p. LW_EUSAGE: too few training pictures.
 * Cleared in any case. */
int lw_neighbours_open(const lw_picture_run *p, const int64_t *train_drawn, int32_t dim,
                       lw_neighbours *out);
void lw_neighbours_clear(lw_neighbours *n);
/* Scales n vectors of `dim` numbers at x to length 1 (zeros stay). */
void lw_unit_vectors(float *x, int64_t n, int32_t dim);
/* base and query from the output "pooled" [.., dim] of f, whose input is "images". */
int lw_neighbours_encode(lw_neighbours *n, lw_forward *f, int32_t dim);
/* From base and query into near [queries][LW_NEIGHBOURS]. */
int lw_neighbours_look(const lw_neighbours *n, int32_t dim, int64_t *near);
/* Share of held-out pictures whose neighbours vote for their class; ties go to the nearest. Labelled
 * data. */
int lw_neighbours_vote(const lw_neighbours *n, const int64_t *near, double *out);

#endif
