# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  kb/logic_corrupt.c kb/logic_index.c kb/logic_kb.c kb/logic_load.c kb/logic_load_domains.c kb/logic_load_rules.c
  kb/logic_parse.c kb/logic_parse_mined.c kb/logic_parse_rule.c kb/logic_problems.c kb/logic_queries.c kb/logic_symbols.c
  search/logic_answers.c search/logic_depths.c search/logic_env.c search/logic_least_ask.c search/logic_least_join.c
  search/logic_least_model.c search/logic_least_rules.c search/logic_paths.c search/logic_rule_answers.c search/logic_rule_plans.c search/logic_search.c search/logic_survey.c
  search/logic_trace.c search/logic_trace_print.c search/logic_unify.c)
