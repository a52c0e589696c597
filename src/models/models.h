/* SPDX-License-Identifier: Apache-2.0 */
/*
 * models: networks as functions of a builder, a config struct and values; one const record each for
 * those that files hold; the feature keys of the drift loss. No module objects: building a function
 * again at another batch size finds the same parameters in the store. Images are [B,H,W,3] in
 * [-1,1] everywhere.
 *
 *    models_network  records, networks.def their one list; SOURCE or encoder spec -> lw_network
 *    models_form     a network as another library's folder
 *    models_taps     what a network offers by name
 *    models_noise    noise at named sites of a frozen network, for Monte-Carlo uncertainty
 *    models_unet     the shared U-Net (diffusers' UNet2DModel) and its config.json
 *    models_dit      the transformer that drifting generates with, and its config.json
 *    models_autoencoder_kl, _tiny  diffusers' AutoencoderKL and AutoencoderTiny, a record for each half
 *    models_rehearsal  networks without published weights, for benches: random ones, by name
 *    models_autoencoder_pair  both halves of one, whatever files hold them
 *    models_resnet   CIFAR ResNets, ResNet-18 cut after layer2 (BatchNorm folded into convolutions)
 *    models_resnet_imagenet  ResNets of full size in names of torchvision, timm and transformers
 *    models_inception, models_convnext  Inception-v3 (FID's too), ConvNeXt and ConvNeXt-V2
 *    models_encoder  Leeway's own encoder (MAE or classifier)
 *    models_mae      the masked autoencoder of the published drifting generators
 *    models_features images and taps -> the values [B,T,C] the drift field compares
 *    models_kge      embeddings of knowledge graphs: TransE, RotatE, ComplEx, DistMult
 *    models_policy   the policy over proof states: training and inference builders, model folders
 *
 *    encoder spec ──lw_encoder_open──► lw_network {record, arch, frozen store}
 *    images ──lw_network_append──► taps: s0, s1, ..., pooled ──lw_features_build──► one value per key
 */
#ifndef LW_MODELS_H
#define LW_MODELS_H

#include "models/proof/models_kge.h"
#include "models/image/models_rehearsal.h"
#include "models/image/models_autoencoder.h"
#include "models/image/models_autoencoder_pair.h"
#include "models/image/models_dit.h"
#include "models/image/models_unet.h"
#include "models/models_form.h"
#include "models/models_network.h"
#include "models/models_noise.h"
#include "models/models_taps.h"
#include "models/encoders/models_encoder.h"
#include "models/encoders/models_features.h"
#include "models/encoders/models_mae.h"
#include "models/proof/models_policy.h"

#endif
