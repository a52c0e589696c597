/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The masked autoencoder whose encoder the published drifting generators are trained with (Deng et al. 2026): a
 * ResNet-34 of GroupNorm at full resolution, and a decoder with skips.
 *
 *   conv1            conv3-GN-ReLU, width channels
 *   layer1..4        3, 4, 6, 3 basic blocks of width, 2, 4 and 8 times width channels; each stage but the first halves
 *                    the sides with its first block; a GroupNorm behind each stage, from which the next one goes on
 *   decoder.0        conv3-GN-ReLU
 *   decoder.1..4     bilinear to the sides of layer3, layer2, layer1, conv1, beside which it is put; GN, twice
 *                    conv3-GN-ReLU of as many channels as that has
 *   head             conv1 to the numbers of the input
 *   fc               classes from the mean of layer4
 *
 * GroupNorm is of the most groups up to 32 that divide the channels. Taps: those of the first two lines, and layerS_blkI,
 * what every second block of stage S gives, before the stage's GroupNorm.
 */
#ifndef LW_MODELS_MAE_H
#define LW_MODELS_MAE_H

#include "formats/formats.h"
#include "models/models_taps.h"
#include "store/store.h"

typedef struct lw_mae_config {
    int32_t image_size, channels; /* of its pictures, or latents */
    int32_t width;
    int32_t
        patchify; /* squares of so many pixels become one place of as many channels first; 1: none */
    int32_t classes; /* outputs of fc; 0: no head */
    bool decoder;    /* has the decoder's parameters */
} lw_mae_config;

/* LW_EUSAGE: what is wrong. */
int lw_mae_check(const lw_mae_config *c);
/* Pictures [B,H,W,channels] as the network sees them, [B,H/p,W/p,p p channels]. */
lw_val lw_mae_places(lw_graph *g, const lw_mae_config *c, lw_val images);
/* Of these. Taps logits (with a head), pooled, conv1, layer1_blk2, layer1, ... */
void lw_mae_net(lw_builder *b, const lw_mae_config *c, lw_val x, lw_taps *out);
/* Their reconstruction, from the taps of (masked) ones. Needs c->decoder. */
lw_val lw_mae_decode(lw_builder *b, const lw_mae_config *c, const lw_taps *taps);

json_t *lw_mae_to_json(const lw_mae_config *c); /* _class_name LeewayMAE; new reference */
int lw_mae_from_json(const json_t *j, const char *where, lw_mae_config *out);
/* Declares the parameters in a fresh store (decoder as the config says) and fixes it. */
int lw_mae_declare(const lw_mae_config *c, lw_store *s);

#endif
