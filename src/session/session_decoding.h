/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks in the latents of an autoencoder, and the way back to pictures. Opens no data set: what runs a model
 * (the C library) links this and not the readers of pictures; the way there is session_latents.h.
 */
#ifndef LW_SESSION_DECODING_H
#define LW_SESSION_DECODING_H

#include "models/models.h"
#include "session/session_forward.h"

/* ---- of a network ---------------------------------------------------------------------------- */

/* "leeway_latents" of a config.json: the autoencoder's spec (borrowed), or NULL: it is in pixels. */
const char *lw_latents_of(const json_t *config);
/* Writes it: `latents` is lw_latents_json's (stolen), NULL: no memory. */
int lw_latents_note(json_t *config, json_t *latents);
/* Of the pictures that a generator makes, decoded where it is in latents. */
int32_t lw_picture_side(const lw_network *n);
int32_t lw_picture_channels(const lw_network *n);
/* Opens the autoencoder that n's latents are of: `named`, or, for NULL, the one of its config.json. Closed by
 * the caller, also after an error. LW_EIO, LW_EFORMAT: it is not there, its latents have other channels, or
 * its weights are not those of n's training (networks trained elsewhere do not say). */
int lw_latents_coder(const lw_network *n, const char *named, lw_autoencoder *out);

/* Is what an encoder is shown what it was trained on? `shown`: the config.json of a network whose latents or pictures
 * these are, NULL: pictures. One that does not say (weights of others) is shown either. LW_EUSAGE: it is not; spec
 * names the encoder. */
int lw_latents_agree(const lw_network *encoder, const char *spec, const json_t *shown);

/* ---- of an autoencoder ------------------------------------------------------------------------- */

/* Of the weights of both halves. */
uint64_t lw_autoencoder_hash(const lw_autoencoder *a);
/* Pictures of so many pixels at a time: what a plan of several takes is bounded. */
int32_t lw_autoencoder_batch(int64_t pixels);

/* ---- pictures of latents ---------------------------------------------------------------------- */

typedef struct lw_decoding lw_decoding;
/* *out stays NULL where n is in pixels. LW_EIO, LW_EFORMAT: the autoencoder is not there, or is another
 * one. Borrows the device. */
int lw_decoding_new(lw_device *dev, const lw_network *n, lw_decoding **out);
void lw_decoding_free(lw_decoding **pp);
size_t lw_decoding_bytes(const lw_decoding *d); /* weights and plan */
/* n latents to n pictures in [-1, 1], a bounded number at a time. */
int lw_decoding_run(lw_decoding *d, const float *latents, int64_t n, float *pictures);

#endif
