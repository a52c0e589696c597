/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frozen ResNets with BatchNorm in inference form. gamma / sqrt(var + eps) is multiplied into the
 * convolution's weights by graph ops that depend on parameters only, so plans do it once, in their
 * prepare segment. Inputs are images in [-1,1]; ImageNet's mean and standard deviation are applied
 * inside.
 */
#ifndef LW_MODELS_RESNET_H
#define LW_MODELS_RESNET_H

#include "store/store.h"

enum { LW_MAX_STAGES = 8 };

/* What an image encoder yields. map[0] is the stem's output (s0), map[i] that of stage i. */
typedef struct lw_encoder_maps {
    int32_t stages;                /* map[0..stages] are set */
    lw_val map[LW_MAX_STAGES + 1]; /* f32[B,H,W,C] each */
    lw_val pooled;                 /* f32[B,F]: mean of the last map over space */
    lw_val logits;                 /* f32[B,classes], absent without a head */
} lw_encoder_maps;

/* akamaster's CIFAR ResNets: 3 stages of n blocks (3, 5, 9: ResNet-20, 32, 56), widths 16, 32, 64,
 * option A shortcuts; head `linear`. */
void lw_resnet_cifar(lw_builder *b, int32_t n, lw_val x, lw_encoder_maps *out);
/* torchvision's ResNet-18 for small images: conv1 is the centre 3x3 of the 7x7 kernel at stride 1,
 * no max-pool, layer1, layer2; pooled has 128 numbers. */
void lw_resnet18_cut(lw_builder *b, lw_val x, lw_encoder_maps *out);
/* ((x + 1) / 2 - mean) / std per channel, ImageNet's numbers. */
lw_val lw_imagenet_normalise(lw_graph *g, lw_val x);

#endif
