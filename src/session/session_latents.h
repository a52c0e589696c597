/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks in the latents of an autoencoder: what is there of pictures before training, and the way back.
 *
 *   pictures ──encoder, once──► latents-KEY.data of the cache ──► lw_dataset of floats ──► training
 *   "leeway_latents" of config.json ──► decoder ──► lw_sampler_run's pictures
 */
#ifndef LW_SESSION_LATENTS_H
#define LW_SESSION_LATENTS_H

#include "data/data.h"
#include "models/models.h"
#include "session/session_forward.h"

/* ---- of a network ---------------------------------------------------------------------------- */

/* "leeway_latents" of a config.json: the autoencoder's spec (borrowed), or NULL: it is in pixels. */
const char *lw_latents_of(const json_t *config);
/* Of the pictures that a generator makes, decoded where it is in latents. */
int32_t lw_picture_side(const lw_network *n);
int32_t lw_picture_channels(const lw_network *n);

/* ---- there ----------------------------------------------------------------------------------- */

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
    size_t bytes;  /* of all latents */
    size_t frozen; /* of the encoder's and the decoder's weights */
    size_t frame;  /* of the plan that encodes, which is gone when training begins */
    double flops;  /* of encoding all; 0: they are there */
} lw_latents_cost;
lw_latents_cost lw_latents_get_cost(const lw_latents *l, lw_str *note);

/* ---- and back -------------------------------------------------------------------------------- */

typedef struct lw_decoding lw_decoding;
/* *out stays NULL where n is in pixels. LW_EIO, LW_EFORMAT: the autoencoder is not there, or is another
 * one. Borrows the device. */
int lw_decoding_new(lw_device *dev, const lw_network *n, lw_decoding **out);
void lw_decoding_free(lw_decoding **pp);
size_t lw_decoding_bytes(const lw_decoding *d); /* weights and plan */
/* n latents to n pictures in [-1, 1], a bounded number at a time. */
int lw_decoding_run(lw_decoding *d, const float *latents, int64_t n, float *pictures);

#endif
