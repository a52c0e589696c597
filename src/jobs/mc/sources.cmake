# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  mc_arrays.c mc_errors.c mc_files.c mc_overall.c mc_laplace.c mc_model.c mc_forecast.c mc_plain.c mc_run.c mc_state.c
  mc_validity.c mc_zero_shot.c
  mc_page.c mc_page_geometry.c mc_page_read.c mc_page_scores.c mc_page_top.c mc_page_worth.c mc_record.c mc_sheets.c)
