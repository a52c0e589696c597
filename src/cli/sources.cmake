# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  cli_config.c cli_device.c cli_globals.c cli_help.c cli_main.c cli_man.c cli_observer.c cli_options.c cli_output.c cli_parse.c
  cli_progress.c cli_signal.c cli_value.c commands/cmd_bench.c commands/cmd_check.c
  commands/cmd_compare.c commands/cmd_completion.c commands/cmd_convert.c commands/cmd_data.c
  commands/cmd_data_cache.c commands/cmd_demo.c commands/cmd_encode.c commands/cmd_fid.c commands/cmd_field.c commands/cmd_info.c commands/cmd_mc.c
  commands/cmd_inspect.c commands/cmd_profile.c commands/cmd_quantize.c commands/cmd_report.c
  commands/cmd_run.c commands/cmd_sample.c commands/cmd_stream.c commands/cmd_stream_doctor.c commands/cmd_train.c commands/cmd_train_autoencoder.c commands/cmd_train_check.c
  commands/cmd_train_ddpm.c commands/cmd_train_drift.c
  commands/cmd_train_encoder.c commands/cmd_train_toy.c prove/cmd_prove.c prove/cmd_prove_answers.c prove/cmd_prove_bench.c prove/cmd_prove_check.c
  prove/cmd_prove_compare.c prove/cmd_prove_candidates.c prove/cmd_prove_depths.c prove/cmd_prove_eval.c prove/cmd_prove_kge.c prove/cmd_prove_rank.c
  prove/cmd_prove_trace.c prove/cmd_prove_train.c)
