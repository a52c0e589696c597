# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  bench.c bench_time.c bench_judge.c bench_json.c bench_table.c bench_kinds.c
  bench_methods.c bench_lab.c bench_calibrate.c bench_networks.c bench_reference.c bench_op.c
  bench_kernels.c bench_unet.c bench_train.c bench_field.c bench_sampling.c bench_startup.c bench_prove.c
  bench_profile.c bench_profile_groups.c bench_profile_text.c bench_profile_page.c)
