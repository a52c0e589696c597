# SPDX-License-Identifier: Apache-2.0
lw_test(test_golden_field golden/test_golden_field.c recipes formats base)
lw_test(test_golden_unet golden/test_golden_unet.c models store backend/cpu formats base)
lw_test(test_golden_train golden/test_golden_train.c models store backend/cpu formats base)
lw_test(test_golden_encoders golden/test_golden_encoders.c models store backend/cpu formats base)
lw_test(test_golden_layers golden/test_golden_layers.c models store backend/cpu formats base)
foreach(name unet train encoders layers)
  target_sources(test_golden_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/golden/golden.c)
endforeach()
