/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks in the latents of an autoencoder: what is there of pictures before training; the way back is
 * session_decoding.h.
 *
 *   pictures ──encoder, once──► latents-KEY.data of the cache ──► lw_dataset of floats ──► training
 *   "leeway_latents" of config.json ──► decoder ──► lw_sampler_run's pictures
 */
#ifndef LW_SESSION_LATENTS_H
#define LW_SESSION_LATENTS_H

#include "data/data.h"
#include "session/session_decoding.h"

typedef struct lw_latents lw_latents;

/* flip: those of mirrored pictures, too; conv: lw_conv_mode of the device. Borrows device and pictures.
 * *rows is what is learnt: the latents of the pictures, not yet encoded, closed by the caller before
 * this. LW_EUSAGE: pictures that the autoencoder cannot take. */
int lw_latents_new(lw_device *dev, const char *spec, const lw_dataset *pictures, bool flip,
                   int32_t conv, lw_latents **out, lw_dataset **rows);
void lw_latents_free(lw_latents **pp);
/* Finds or encodes the latents, and lets go of the encoder. LW_ESTOPPED when the observer asks to stop. */
int lw_latents_fill(lw_latents *l, const lw_observer *obs);
/* "leeway_latents". New reference; NULL: no memory. */
json_t *lw_latents_json(const lw_latents *l);
/* What they take, and whether they are there, for --dry-run and the start of training. */
typedef struct lw_latents_cost {
    size_t held;   /* of all latents, where no file keeps them */
    size_t frozen; /* of the encoder's and the decoder's weights */
    size_t frame;  /* of the plan that encodes, which is gone when training begins */
    double flops;  /* of encoding all; 0: they are there */
} lw_latents_cost;
lw_latents_cost lw_latents_get_cost(const lw_latents *l, lw_str *note);

#endif
