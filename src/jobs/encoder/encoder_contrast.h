/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Learning without labels, by contrast (SimCLR: Chen, Kornblith, Norouzi, Hinton 2020): two views of each
 * of a leaf's B pictures (data/data_view.h), and each view has to find the other among 2 B - 1.
 *
 *   z_i    the projection of view i, to length 1         s_ij = z_i z_j / tau, j != i
 *   loss   mean over i of log sum_j e^(s_ij) - s_ip, p the other view of i's picture      (NT-Xent)
 *
 * log(2 B - 1) where features say nothing. B is the size of a leaf: --leaf-size takes others away.
 *
 * Held out: the same loss of views that are always the same, and with labels the vote of the nearest
 * training pictures (encoder_neighbours.h).
 */
#ifndef LW_ENCODER_CONTRAST_H
#define LW_ENCODER_CONTRAST_H

#include "jobs/encoder/encoder_job.h"
#include "models/models.h"
#include "train/pictures/train_pictures.h"

typedef struct lw_contrast lw_contrast;

/* LW_EUSAGE: leaves of one picture; also of other objectives with its options. */
int lw_contrast_check(const lw_train_encoder_config *c, int64_t leaf);
/* Says how wide the projection is (net->projection). Borrows c, p and net. */
int lw_contrast_open(const lw_train_encoder_config *c, lw_picture_run *p, lw_encoder_config *net,
                     lw_contrast **out);
void lw_contrast_free(lw_contrast **pp);
/* Losses of all views, [2 B], of their projections z [2 B, P], where rows i and i + B are views of one
 * picture; declares the inputs "self" f32[2 B, 2 B] and "partner" i32[2 B]. */
lw_val lw_contrast_loss(lw_graph *g, lw_val z, double temperature);
/* What those two hold. */
void lw_contrast_pairs(float *self, int32_t *partner, int64_t pictures);
/* The loss of z [2 n][dim] in double, by loops, of any length; rows i and i + n are a pair. */
double lw_contrast_loss_of(const float *z, int64_t n, int32_t dim, double temperature);
int lw_contrast_prepare(lw_contrast *k, bool evaluates);
/* Two views of each picture of the leaf, into the step's "images". */
int lw_contrast_feed(lw_contrast *k, int64_t leaf);
int lw_contrast_evaluate(lw_contrast *k, json_t *row);
void lw_contrast_tell(const json_t *row, lw_str *out);

#endif
