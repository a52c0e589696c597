# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  recipe_best.c recipe_ddpm.c recipe_device.c recipe_diffusion.c recipe_diffusion_read.c recipe_field.c recipe_generator.c recipe_net.c
  recipe_drift.c recipe_heldout.c recipe_encoder.c recipe_observer.c recipe_reals.c recipe_resume.c recipe_run_dir.c recipe_sampler.c recipe_schedule.c recipe_trainer.c
  recipe_machine.c recipe_machine_json.c recipe_source.c recipe_sample.c
  recipe_judge.c recipe_score_net.c recipe_score.c recipe_score_bar.c
  recipe_compare.c recipe_compare_paired.c recipe_compare_latency.c recipe_compare_files.c recipe_compare_headline.c recipe_compare_tables.c recipe_compare_work.c recipe_compare_curves.c recipe_curves.c recipe_run_page.c
  recipe_compare_page.c recipe_compare_top.c recipe_compare_pictures.c recipe_demo.c recipe_demo_settings.c
  recipe_sampler_turns.c recipe_turns.c
  recipe_precision.c recipe_ranges.c recipe_quantize.c recipe_quantize_inputs.c recipe_network.c recipe_forward.c recipe_run.c recipe_inspect.c recipe_inspect_graph.c)
