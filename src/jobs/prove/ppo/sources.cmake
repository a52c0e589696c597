# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  prove_ppo.c prove_ppo_eval.c prove_ppo_graph.c prove_ppo_open.c prove_ppo_part.c prove_ppo_rollout.c prove_ppo_source.c prove_ppo_update.c)
