lw_test(test_ops ops/test_ops.c backend)
target_sources(test_ops PRIVATE ${CMAKE_SOURCE_DIR}/tests/ops/op_check.c)
lw_test(test_drift_device ops/test_drift_device.c backend)
