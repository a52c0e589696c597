# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  proof_symbols.c proof_problems.c proof_parse.c proof_parse_rule.c
  proof_kb.c proof_index.c proof_load.c proof_load_rules.c proof_load_domains.c proof_queries.c proof_corrupt.c
  proof_unify.c proof_env.c proof_paths.c proof_search.c proof_depths.c proof_survey.c
  proof_trace.c proof_trace_print.c)
