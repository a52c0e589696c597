/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frechet distances to held-out pictures while a generator trains: the same measure for every
 * method, in features of the loss and, if asked for, of a network that the loss does not see.
 *
 * The pictures are samples of the averaged weights, as many as real training pictures go into the
 * floor. Half of the truth about a distance is the noises it was taken with: `fd` draws fresh ones
 * at each measure, `fd_fixed` has the same ones every time. All of them belong to streams of
 * sampling, so measuring changes no bit of training.
 */
#ifndef LW_TRAIN_HELDOUT_H
#define LW_TRAIN_HELDOUT_H

#include "train/train_config.h"
#include "session/session_sampler.h"

/* Distances to held-out pictures at --eval-every, of both methods. */
typedef enum lw_best { LW_BEST_NONE, LW_BEST_FD, LW_BEST_EVAL_FD } lw_best;
enum { LW_HELDOUT_SAMPLES = 2000 };
typedef struct lw_heldout_config {
    const char *eval_encoder; /* spec of a network that the loss does not see; NULL: none */
    int32_t samples;          /* of each distance and of its floor; 0: LW_HELDOUT_SAMPLES */
    int32_t keep_best;        /* lw_best: the checkpoint with the least of these is kept */
} lw_heldout_config;

typedef struct lw_heldout lw_heldout;

/* LW_EUSAGE: options that do not go together. */
int lw_heldout_check(const lw_heldout_config *c, int64_t eval_every);
/* encoder: that of the loss, NULL or none: mean and sd of the colours. Opens the held-out split of
 * the training data; obs (or NULL) may stop its decoding. */
int lw_heldout_new(lw_device *dev, const lw_dataset *train, const char *encoder,
                   const lw_heldout_config *c, const lw_observer *obs, lw_heldout **out);
void lw_heldout_free(lw_heldout **pp);
/*
 * Adds to row, of `step`: fd and fd_fixed, distances of as many samples to all held-out pictures,
 * and fd_floor, that of training pictures; eval_fd, ... likewise in the other network. With
 * keep_best also METRIC_choosing, of fresh noises to one half of the held-out pictures, and
 * METRIC_reporting, of the fixed noises to the other half, and METRIC_reporting_floor: what is
 * chosen by the first is not flattered by the second. LW_ESTOPPED: nothing was added.
 */
int lw_heldout_run(lw_heldout *v, lw_sampler *s, int64_t step, const lw_observer *obs, json_t *row);
/* What the columns are: "fd: Frechet distance, resnet56; eval_fd: Frechet distance, leeway". */
const char *lw_heldout_names(const lw_heldout *v);
/* The column of keep_best, or NULL; and all that its values depend on beside the weights. */
const char *lw_heldout_metric(const lw_heldout_config *c);
const char *lw_heldout_measure(const lw_heldout *v);

#endif
