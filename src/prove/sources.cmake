# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  prove_walks.c prove_walks_steps.c prove_walks_turn.c prove_state_rows.c prove_state_rows_run.c prove_policy.c
  prove_eval.c prove_eval_count.c prove_eval_scores.c prove_eval_means.c prove_eval_tables.c prove_eval_json.c
  prove_eval_save.c prove_eval_page.c
  prove_ppo.c prove_ppo_open.c prove_ppo_states.c prove_ppo_rollout.c prove_ppo_part.c prove_ppo_graph.c
  prove_ppo_update.c prove_ppo_eval.c
  prove_kge.c prove_kge_feed.c prove_kge_loss.c prove_kge_rank.c prove_kge_train.c
  prove_bench.c prove_bench_tables.c prove_bench_page.c)
