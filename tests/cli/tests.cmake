# SPDX-License-Identifier: Apache-2.0
add_executable(make_model ${CMAKE_SOURCE_DIR}/tests/cli/make_model.c)
target_link_libraries(make_model PRIVATE lw_models lw_store lw_formats lw_base)
# lw_cli_test(NAME): runs cli/NAME.sh with LEEWAY (the program) and an empty directory as working directory.
function(lw_cli_test name)
  set(dir ${CMAKE_BINARY_DIR}/cli/${name})
  add_test(NAME cli_${name} COMMAND sh ${CMAKE_SOURCE_DIR}/tests/cli/run_case.sh
    ${CMAKE_SOURCE_DIR}/tests/cli/${name}.sh $<TARGET_FILE:leeway> ${dir})
  set_tests_properties(cli_${name} PROPERTIES LABELS cli TIMEOUT 900)
endfunction()
lw_cli_test(usage)
lw_cli_test(bench)
lw_cli_test(check)
lw_cli_test(field)
lw_cli_test(run)
lw_cli_test(inspect)
lw_cli_test(data)
lw_cli_test(sample)
