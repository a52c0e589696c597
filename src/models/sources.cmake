set(SOURCES
  models_unet.c models_unet_config.c models_unet_json.c models_unet_read.c models_resnet.c
  models_kge.c models_kge_files.c
  models_encoder.c models_encoder_config.c models_registry.c models_features.c models_feature_list.c
  models_policy.c models_policy_state.c models_policy_atoms.c models_policy_config.c models_policy_weights.c models_policy_load.c)
