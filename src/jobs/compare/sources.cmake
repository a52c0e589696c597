# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  compare_curves.c compare_files.c compare_headline.c compare_latency.c compare_page.c compare_paired.c
  compare_pictures.c compare_planted.c compare_rows.c compare_run.c compare_score.c compare_score_bar.c
  compare_settings.c compare_tables.c compare_top.c compare_verdict.c compare_verdict_page.c compare_work.c)
