# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  mc_files.c mc_laplace.c mc_model.c mc_run.c mc_state.c
  mc_page.c mc_page_read.c mc_page_scores.c mc_page_top.c mc_page_worth.c mc_record.c mc_sheets.c)
