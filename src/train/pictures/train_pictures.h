/* SPDX-License-Identifier: Apache-2.0 */
/* What all trainers on pictures share: device, data, store, the step's plan, and leaves of pictures in order. */
#ifndef LW_TRAIN_PICTURES_H
#define LW_TRAIN_PICTURES_H

#include "data/data.h"
#include "train/train_loop.h"

typedef struct lw_picture_config {
    int64_t limit;      /* rows of the training split used; 0: all */
    int32_t image_size; /* 0: the data's own */
    int32_t channels;   /* 0: 3 */
    int32_t on_error;   /* lw_on_error */
    bool flip;          /* mirrored copies, where the data allows them */
} lw_picture_config;

typedef struct lw_picture_run {
    const lw_train_config *c;
    const lw_picture_config *pictures;
    const lw_observer *obs;
    lw_leaves leaves;
    lw_device *dev;
    lw_dataset *data;
    lw_store *store;
    json_t *model, *files; /* lw_train_job */
    const char *weights;
    lw_plan *plan;
    lw_exec *exec;
    lw_loader *loader;
    int64_t next; /* leaf that the loader gives next */
} lw_picture_run;

/* Opens device, data (obs may stop its decoding) and an empty store. Cleared in any case. */
int lw_picture_run_open(lw_picture_run *r);
void lw_picture_run_clear(lw_picture_run *r);
/* With data, store, model and leaves there: compiles the step's graph and fills in what it is of the job. */
int lw_picture_run_job(lw_picture_run *r, const lw_graph *g, lw_train_job *job);
/* The first n samples of a leaf, which all leaves have; valid until the next call. */
int lw_picture_run_next(lw_picture_run *r, int64_t leaf, int64_t n, const lw_batch **out);
/* Gives the step's plan a leaf of pictures, with labels where it takes them. */
int lw_picture_run_feed(lw_picture_run *r, int64_t leaf, bool labels);

#endif
