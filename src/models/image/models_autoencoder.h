/* SPDX-License-Identifier: Apache-2.0 */
/* What autoencoders have in common: the scale of their latents, the sides of their pictures. */
#ifndef LW_MODELS_AUTOENCODER_H
#define LW_MODELS_AUTOENCODER_H

#include "models/models_taps.h"

/* Other networks see (raw - shift) factor of what the autoencoder makes: about variance 1. */
typedef struct lw_latent_scale {
    double factor, shift;
} lw_latent_scale;

/* "scaling_factor" and "shift_factor" of a config.json; absent: *s stays. */
int lw_latent_scale_read(const json_t *config, const char *where, lw_latent_scale *s);
lw_val lw_latent_of(lw_graph *g, const lw_latent_scale *s, lw_val raw);
lw_val lw_latent_raw(lw_graph *g, const lw_latent_scale *s, lw_val latent);
/* Fails g with LW_ESHAPE where a picture's side is no multiple. */
int lw_latent_sides(lw_graph *g, lw_val x, int32_t multiple);

#endif
