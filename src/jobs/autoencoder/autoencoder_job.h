/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train autoencoder: a small convolutional autoencoder of RGB pictures in the form of diffusers'
 * AutoencoderTiny, whose latents other networks work in.
 *
 *   loss = |y - x| or (y - x)^2, mean
 *        + gradient_weight  mean |differences of neighbours of y - x|, on both axes
 *        + latent_weight    (mean z^2 - 1)^2, so that latents z need no scaling
 */
#ifndef LW_AUTOENCODER_JOB_H
#define LW_AUTOENCODER_JOB_H

#include "models/models.h"
#include "train/train.h"

typedef enum lw_autoencoder_loss { LW_AUTOENCODER_MSE, LW_AUTOENCODER_L1 } lw_autoencoder_loss;

typedef struct lw_autoencoder_config {
    lw_train_config train;
    lw_picture_config pictures;
    lw_tiny_config net;
    int32_t crop; /* side of random crops that are trained on; 0: whole pictures */
    int32_t loss; /* lw_autoencoder_loss */
    double gradient_weight, latent_weight;
} lw_autoencoder_config;

/* Trains, or with dry_run only predicts. The checkpoints of the run directory open as autoencoders
 * (lw_autoencoder_open). LW_EUSAGE: pictures or crops that do not halve as often as the network does. */
int lw_train_autoencoder(const lw_autoencoder_config *c, const lw_observer *obs,
                         lw_train_result *out);

#endif
