# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  encoders/models_conv_bn.c encoders/models_resnet_imagenet.c image/models_unet_blocks.c
  image/models_autoencoder.c image/models_autoencoder_kl.c image/models_autoencoder_pair.c image/models_autoencoder_tiny.c
  encoders/models_clip.c encoders/models_convnext.c encoders/models_dinov2.c encoders/models_efficientnet.c encoders/models_encoder.c encoders/models_encoder_config.c
  encoders/models_feature_filter.c encoders/models_feature_list.c encoders/models_features.c encoders/models_inception.c encoders/models_inverted.c encoders/models_mae.c encoders/models_mobilenet.c encoders/models_resnet.c encoders/models_siglip.c
  encoders/models_timm.c encoders/models_timm_write.c encoders/models_transformers.c encoders/models_vit.c image/models_dit.c image/models_dit_config.c image/models_unet.c
  image/models_rehearsal.c image/models_rehearsal_lsd.c
  image/models_rehearsal_stress.c image/models_unet_config.c image/models_unet_json.c image/models_unet_read.c proof/models_kge.c
  proof/models_kge_files.c proof/models_policy.c proof/models_policy_atoms.c
  proof/models_policy_config.c proof/models_policy_load.c proof/models_policy_state.c
  proof/models_policy_weights.c models_form.c models_network.c models_channels.c models_noise.c models_pictures.c models_sites.c models_taps.c)
