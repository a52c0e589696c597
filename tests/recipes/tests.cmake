# SPDX-License-Identifier: Apache-2.0
foreach(name train_bits train_rules)
  lw_test(test_${name} recipes/test_${name}.c store formats base)
  target_sources(test_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests/recipes/recipe_lab.c)
  target_compile_definitions(test_${name} PRIVATE "LEEWAY=\"$<TARGET_FILE:leeway>\"")
  add_dependencies(test_${name} leeway)
endforeach()
