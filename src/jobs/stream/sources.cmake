# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  stream_builder.c stream_compute.c stream_drift.c stream_intake.c stream_json.c stream_live.c stream_network.c stream_run.c stream_settings.c stream_similar.c stream_times.c
  stream_verbose.c)
