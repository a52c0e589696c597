/* SPDX-License-Identifier: Apache-2.0 */
/* Masked reconstruction, of Leeway's small encoder or the published one: a step's loss, what changes from step to step,
 * and the encoder alone in a folder. */
#ifndef LW_ENCODER_MAE_H
#define LW_ENCODER_MAE_H

#include "models/models.h"

#include "jobs/encoder/encoder_job.h"
#include "train/pictures/train_pictures.h"

typedef struct lw_encoder_mae {
    const lw_train_encoder_config *c;
    const lw_encoder_config *net; /* of the small one */
    lw_mae_config unet;           /* of the published one, --arch resnet34-unet */
} lw_encoder_mae;

/* Options that do not go together. */
int lw_encoder_mae_check(const lw_train_encoder_config *c);
/* Declares the published one for the data of p, config.json included. */
int lw_encoder_mae_declare(lw_encoder_mae *m, lw_picture_run *p);
/* f32[B] of pictures x; labels where lw_encoder_mae_labels. */
lw_val lw_encoder_mae_loss(const lw_encoder_mae *m, lw_builder *b, lw_val x);
/* Does the end of training go on with labels? */
static inline bool lw_encoder_mae_labels(const lw_train_encoder_config *c)
{
    return c->cls_ft_steps > 0;
}
/* Before each leaf of a step. */
void lw_encoder_mae_feed(const lw_encoder_mae *m, lw_exec *e, int64_t step);
/* The share of cells hidden at a step, and the share of the label's loss. */
double lw_encoder_mae_ratio(const lw_train_encoder_config *c, int64_t step);
double lw_encoder_mae_lambda(const lw_train_encoder_config *c, int64_t step);
/* The averaged encoder of a run, without its decoder, as a model folder. */
int lw_encoder_export(const char *run, const char *dir);

#endif
