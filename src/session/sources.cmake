# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  session_adversarial.c session_battery.c session_contract.c session_device.c
  session_decoding.c session_diffusion.c session_diffusion_read.c session_features.c session_flow.c session_forward.c
  session_generator.c session_last_layer.c session_latents.c session_lineage.c session_machine.c session_machine_gpu.c session_machine_json.c
  session_passes.c session_planted.c session_quantization.c session_sampler.c
  session_sampler_turns.c session_translator.c session_tuned.c session_translator_framing.c session_translator_graph.c session_translator_moves.c session_translator_open.c session_unet.c session_verdict.c session_verdict_network.c session_verdict_text.c)
