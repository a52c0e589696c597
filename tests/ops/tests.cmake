lw_test(test_ops ops/test_ops.c backend)
target_sources(test_ops PRIVATE ${CMAKE_SOURCE_DIR}/tests/ops/op_cases.c ${CMAKE_SOURCE_DIR}/tests/ops/op_check.c)
add_test(NAME test_drift_device COMMAND leeway-check --device cpu --filter drift. --least 29)
set_tests_properties(test_drift_device PROPERTIES LABELS ops TIMEOUT 900
  ENVIRONMENT "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1")
