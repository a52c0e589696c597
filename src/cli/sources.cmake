# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  cli_config.c cli_globals.c cli_help.c cli_main.c cli_observer.c cli_options.c cli_output.c cli_parse.c
  cli_progress.c cli_signal.c cli_value.c cmd_bench.c cmd_check.c cmd_compare.c cmd_data.c
  cmd_data_cache.c cmd_demo.c cmd_field.c cmd_info.c cmd_inspect.c cmd_profile.c cmd_quantize.c
  cmd_run.c cmd_sample.c cmd_train.c cmd_train_check.c cmd_train_ddpm.c cmd_train_drift.c
  cmd_train_encoder.c prove/cmd_prove.c prove/cmd_prove_bench.c prove/cmd_prove_check.c
  prove/cmd_prove_depths.c prove/cmd_prove_eval.c prove/cmd_prove_kge.c prove/cmd_prove_rank.c
  prove/cmd_prove_trace.c prove/cmd_prove_train.c)
