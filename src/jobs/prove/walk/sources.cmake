# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  prove_policy.c prove_state_rows.c prove_state_rows_run.c prove_walks.c prove_walks_contest.c
  prove_walks_steps.c prove_walks_turn.c)
