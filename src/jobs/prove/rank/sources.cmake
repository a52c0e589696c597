# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  prove_eval.c prove_eval_count.c prove_eval_json.c prove_eval_means.c prove_eval_page.c
  prove_eval_save.c prove_eval_scores.c prove_eval_stages.c prove_eval_tables.c
  prove_rank_lists.c prove_rules.c)
