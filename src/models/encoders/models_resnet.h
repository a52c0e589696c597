/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frozen ResNets with BatchNorm in inference form. gamma / sqrt(var + eps) is multiplied into the
 * convolution's weights by graph ops that depend on parameters only, so plans do it once, in their
 * prepare segment. Inputs are images in [-1,1]; ImageNet's mean and standard deviation are applied
 * inside.
 */
#ifndef LW_MODELS_RESNET_H
#define LW_MODELS_RESNET_H

#include "models/models_taps.h"

/* akamaster's CIFAR ResNets: 3 stages of n blocks (3, 5, 9: ResNet-20, 32, 56), widths 16, 32, 64,
 * option A shortcuts; head `linear`. Taps logits, pooled, s0 .. s3. */
void lw_resnet_cifar(lw_builder *b, int32_t n, lw_val x, lw_taps *out);
/* torchvision's ResNet-18 for small images: conv1 is the centre 3x3 of the 7x7 kernel at stride 1,
 * no max-pool, layer1, layer2. Taps pooled (128 numbers), s0, s1, s2. */
void lw_resnet18_cut(lw_builder *b, lw_val x, lw_taps *out);
/* ((x + 1) / 2 - mean) / std per channel, ImageNet's numbers. */
lw_val lw_imagenet_normalise(lw_graph *g, lw_val x);

#endif
