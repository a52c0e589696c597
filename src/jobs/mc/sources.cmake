# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  mc_files.c mc_model.c mc_run.c mc_state.c)
