# SPDX-License-Identifier: Apache-2.0
# lw_fuzz(NAME "CORPUS FOLDERS" FOLDERS...): target fuzz_NAME from fuzz/fuzz_NAME.c; ctest replays its corpus.
# With -DLW_FUZZ=ON -DLW_SANITIZE="address;undefined" (clang) it is a libFuzzer program:
# `fuzz_NAME -max_total_time=20 NEW_INPUTS_DIR tests/fuzz/corpus/NAME`.
function(lw_fuzz name corpora)
  if(LW_FUZZ)
    add_executable(fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_${name}.c)
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(fuzz_${name} ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_${name}.c
      ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_replay.c)
  endif()
  foreach(dep ${ARGN})
    target_link_libraries(fuzz_${name} PRIVATE lw_${dep})
    if(LW_FUZZ) # coverage of the code under test steers the fuzzer
      target_compile_options(lw_${dep} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endforeach()
  target_link_libraries(fuzz_${name} PRIVATE fuzz_folder)
  target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR}/tests)
  list(TRANSFORM corpora PREPEND tests/fuzz/corpus/)
  if(LW_FUZZ)
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} -runs=0 ${corpora} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  else()
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} ${corpora} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endif()
endfunction()
if(LW_FUZZ) # kernels read no files, and with checks behind every load they take minutes to compile
  target_compile_options(lw_kernels PRIVATE -fno-sanitize=all)
endif()
add_library(fuzz_folder STATIC ${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz_folder.c) # linked where it is used
target_include_directories(fuzz_folder PUBLIC ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(fuzz_folder PUBLIC lw_formats lw_base)
lw_fuzz(safetensors safetensors formats base)
lw_fuzz(npy npy formats base)
lw_fuzz(json json formats base)
lw_fuzz(yaml "yaml;json" formats base)
lw_fuzz(png "png;jpeg" formats base)
lw_fuzz(kb kb proof base)
lw_fuzz(model model models store ir formats base)
lw_fuzz(run run recipes report store formats base)
lw_fuzz(bench bench bench formats base)
lw_fuzz(options options cli formats base)
