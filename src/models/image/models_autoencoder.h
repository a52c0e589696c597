/* SPDX-License-Identifier: Apache-2.0 */
/* What autoencoders have in common: the scale of their latents, the sides of their pictures. */
#ifndef LW_MODELS_AUTOENCODER_H
#define LW_MODELS_AUTOENCODER_H

#include "models/models_taps.h"

enum { LW_TINY_LEVELS = 6 };

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

/* One of AutoencoderTiny's form, to be trained: each level but the first has half the sides. */
typedef struct lw_tiny_config {
    int32_t width;  /* channels of every level */
    int32_t latent; /* of a latent */
    int32_t blocks[LW_TINY_LEVELS],
        levels; /* of the encoder's levels; the decoder has them the other way round */
} lw_tiny_config;

/* LW_EUSAGE. */
int lw_tiny_check(const lw_tiny_config *c);
/* Sides of a picture over those of its latent. */
int32_t lw_tiny_shrink(const lw_tiny_config *c);
/* Both halves, tensors called as diffusers does. */
int lw_tiny_declare(const lw_tiny_config *c, lw_store *s);
/* Random numbers, from which it learns. */
void lw_tiny_init(lw_store *s, uint64_t seed);
lw_val lw_tiny_encode(lw_builder *b, const lw_tiny_config *c, lw_val x);
lw_val lw_tiny_decode(lw_builder *b, const lw_tiny_config *c, lw_val latent);
/* config.json. New reference, or NULL. */
json_t *lw_tiny_json(const lw_tiny_config *c);

#endif
