# SPDX-License-Identifier: Apache-2.0
lw_test(test_plan_dump plan/test_plan_dump.c models store backend/cpu formats base)
lw_test(test_plan_precision plan/test_plan_precision.c models store backend/cpu formats base)
lw_test(test_plan_random plan/test_plan_random.c store backend/cpu formats base)
lw_test(test_plan_rewrite plan/test_plan_rewrite.c models store backend/cpu formats base)
lw_test(test_plan_run plan/test_plan_run.c models store backend/cpu formats base)
foreach(name dump precision rewrite run)
  target_sources(test_plan_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/plan/plan_util.c)
endforeach()
foreach(name random run)
  target_sources(test_plan_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/plan/plan_prover.c)
endforeach()
target_sources(test_plan_random PRIVATE ${CMAKE_SOURCE_DIR}/tests/plan/random_graph.c
  ${CMAKE_SOURCE_DIR}/tests/plan/random_graph_ops.c)
