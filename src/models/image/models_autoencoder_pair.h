/* SPDX-License-Identifier: Apache-2.0 */
/* Both halves of an autoencoder of RGB pictures, whatever files hold them. */
#ifndef LW_MODELS_AUTOENCODER_PAIR_H
#define LW_MODELS_AUTOENCODER_PAIR_H

#include "models/models_network.h"

typedef struct lw_autoencoder {
    lw_network *encoder, *decoder; /* taps "latent" and "y" */
    int32_t shrink;                /* sides of a picture are so many times those of its latent */
    int32_t channels;              /* of a latent */
} lw_autoencoder;

/*
 * [taesd:|taef1:|taef2:|sd-vae:]SOURCE, where SOURCE is
 *
 *   a folder of diffusers (AutoencoderTiny, AutoencoderKL), or a pipeline's with vae/ in it
 *   a file with both halves
 *   one of two files whose names differ by "encoder" and "decoder", or their folder
 *
 * LW_EFORMAT: a network without halves; LW_EUNSUPPORTED: one not of RGB; else as lw_network_open.
 */
int lw_autoencoder_open(const char *spec, lw_autoencoder *out);
/* Does spec begin with one of these words? */
bool lw_autoencoder_named(const char *spec);
void lw_autoencoder_close(lw_autoencoder *a); /* accepts a zeroed struct */

#endif
