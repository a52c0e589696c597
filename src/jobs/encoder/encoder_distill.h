/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a distilled encoder learns from: features that a frozen teacher makes of the same pictures.
 *
 * Each number of the teacher is standardised over training pictures, so that none outweighs the
 * others; the loss of a picture is 0.9 (1 - cosine) + 0.1 smooth L1 of each place's prediction, as in
 * Theia (Shang et al. 2024), averaged over places and keys. The prediction is one linear layer on the
 * pooled feature, or on each place of the student's last map with as many places as the key has.
 *
 * Held out: that loss; the share of a picture's ten nearest training pictures (cosine, pooled
 * features) that the teacher has among its ten too (mutual nearest neighbours, Huh et al. 2024); and
 * with labels the accuracy of those neighbours' vote, beside that of the teacher's.
 */
#ifndef LW_ENCODER_DISTILL_H
#define LW_ENCODER_DISTILL_H

#include "jobs/encoder/encoder_job.h"
#include "models/models.h"
#include "train/pictures/train_pictures.h"

typedef struct lw_distill lw_distill;

/* Opens the teacher and says what the student predicts (net->predicted). Borrows c and p. LW_EUSAGE:
 * no teacher, keys that it lacks, a key with as many places as no map of the student. */
int lw_distill_open(const lw_train_encoder_config *c, lw_picture_run *p, lw_encoder_config *net,
                    lw_distill **out);
void lw_distill_free(lw_distill **pp);
/* Loss of each picture, [B], from the student's taps; declares the inputs it needs. */
lw_val lw_distill_loss(const lw_distill *d, lw_builder *b, const lw_taps *taps);
/* What features take, for the job; opens them, computes nothing. */
int lw_distill_job(lw_distill *d, lw_train_job *job);
/* The teacher's features, their means and deviations, and what is measured. */
int lw_distill_prepare(lw_distill *d, bool evaluates);
int lw_distill_feed(lw_distill *d, int64_t leaf);
int lw_distill_evaluate(lw_distill *d, json_t *row);
void lw_distill_tell(const json_t *row, lw_str *out);

#endif
