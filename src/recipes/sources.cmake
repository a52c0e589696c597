# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  recipe_ddpm.c recipe_device.c recipe_diffusion.c recipe_field.c recipe_generator.c recipe_net.c
  recipe_drift.c recipe_drift_eval.c recipe_encoder.c recipe_observer.c recipe_reals.c recipe_resume.c recipe_run_dir.c recipe_sampler.c recipe_schedule.c recipe_trainer.c
  recipe_machine.c recipe_source.c recipe_sample.c
  recipe_judge.c recipe_score_net.c recipe_score.c recipe_score_bar.c
  recipe_compare.c recipe_compare_paired.c recipe_compare_latency.c recipe_compare_files.c recipe_compare_tables.c recipe_compare_curves.c recipe_curves.c recipe_run_page.c
  recipe_compare_page.c recipe_compare_pictures.c recipe_demo.c recipe_demo_settings.c
  recipe_precision.c recipe_ranges.c recipe_quantize.c recipe_quantize_inputs.c recipe_network.c recipe_forward.c recipe_run.c recipe_inspect.c recipe_inspect_graph.c
  recipe_machine_json.c recipe_bench.c recipe_bench_time.c recipe_bench_stats.c recipe_bench_judge.c recipe_bench_json.c
  recipe_bench_table.c recipe_bench_profile.c recipe_bench_methods.c recipe_bench_lab.c recipe_bench_calibrate.c recipe_bench_networks.c
  recipe_bench_reference.c recipe_bench_op.c recipe_bench_kernels.c recipe_bench_unet.c recipe_bench_train.c
  recipe_bench_field.c recipe_bench_sampling.c recipe_bench_startup.c recipe_bench_prove.c
  recipe_kge.c recipe_kge_feed.c recipe_kge_loss.c recipe_kge_rank.c recipe_kge_train.c
  recipe_walks.c recipe_walks_steps.c recipe_state_rows.c recipe_state_rows_run.c
  recipe_prove_policy.c recipe_prove_eval.c recipe_prove_eval_count.c recipe_prove_eval_scores.c recipe_prove_eval_means.c recipe_prove_eval_tables.c
  recipe_prove_eval_json.c recipe_prove_eval_save.c recipe_prove_eval_page.c
  recipe_prove_bench.c recipe_prove_bench_tables.c recipe_prove_bench_page.c
  recipe_ppo.c recipe_ppo_open.c recipe_ppo_states.c recipe_ppo_rollout.c recipe_ppo_part.c recipe_ppo_graph.c recipe_ppo_update.c recipe_ppo_eval.c
  recipe_profile.c recipe_profile_groups.c recipe_profile_text.c recipe_profile_page.c)
