# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  logic_corrupt.c logic_depths.c logic_env.c logic_index.c logic_kb.c logic_load.c logic_load_domains.c
  logic_load_rules.c logic_parse.c logic_parse_rule.c logic_paths.c logic_problems.c logic_queries.c
  logic_search.c logic_survey.c logic_symbols.c logic_trace.c logic_trace_print.c logic_unify.c)
