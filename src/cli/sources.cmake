# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  cli_options.c cli_value.c cli_parse.c cli_config.c cli_help.c cli_globals.c cli_output.c
  cli_progress.c cli_signal.c cli_observer.c cli_main.c
  cmd_info.c cmd_run.c cmd_inspect.c cmd_bench.c cmd_profile.c cmd_check.c cmd_field.c
  cmd_data.c cmd_data_cache.c cmd_quantize.c cmd_sample.c cmd_compare.c cmd_demo.c
  cmd_prove.c cmd_prove_bench.c cmd_prove_check.c cmd_prove_depths.c cmd_prove_eval.c cmd_prove_trace.c cmd_prove_train.c cmd_prove_kge.c cmd_prove_rank.c
  cmd_train.c cmd_train_check.c cmd_train_ddpm.c cmd_train_drift.c cmd_train_encoder.c)
