# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  bench.c bench_targets.c bench_time.c bench_judge.c bench_json.c bench_table.c bench_kinds.c
  bench_doctor.c bench_methods.c bench_tune.c bench_workload.c bench_calibrate.c suites/bench_networks.c bench_reference.c suites/bench_op.c
  suites/bench_kernels.c suites/bench_resample.c suites/bench_eval.c suites/bench_verdict.c suites/bench_unet.c suites/bench_train.c suites/bench_field.c suites/bench_mae.c suites/bench_dit.c suites/bench_sampling.c suites/bench_startup.c suites/bench_prove.c suites/bench_mc.c suites/bench_stream.c suites/bench_stream_live.c suites/bench_queue.c suites/bench_drift.c profile/bench_profile.c profile/bench_profile_groups.c profile/bench_profile_threads.c profile/bench_profile_text.c suites/bench_latents.c
  profile/bench_profile_page.c
  ladder/bench_ladder.c ladder/bench_ladder_run.c ladder/bench_ladder_inputs.c ladder/bench_ladder_text.c)
