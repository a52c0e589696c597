# SPDX-License-Identifier: Apache-2.0
# Benchmark programs of the kernels; built on demand: cmake --build BUILD --target bench_conv bench_gemm
set_source_files_properties(${CMAKE_SOURCE_DIR}/bench/bench_peak_avx2.c PROPERTIES COMPILE_OPTIONS "${LW_AVX2_FLAGS}")
set_source_files_properties(${CMAKE_SOURCE_DIR}/bench/bench_peak_avx512.c PROPERTIES COMPILE_OPTIONS "${LW_AVX512_FLAGS}")
add_library(bench_peak STATIC EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/bench_peak_avx2.c
  ${CMAKE_SOURCE_DIR}/bench/bench_peak_avx512.c)
target_link_libraries(bench_peak PUBLIC lw_kernels lw_base)
foreach(name bench_conv bench_gemm)
  add_executable(${name} EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/${name}.c)
  target_link_libraries(${name} PRIVATE bench_peak lw_kernels lw_base)
endforeach()

# Small cases whose instructions are counted: bench/instructions.sh
add_executable(bench_instructions EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/bench_instructions.c)
target_link_libraries(bench_instructions PRIVATE lw_bench lw_base)

# Many proofs walked by a policy: time and counts
add_executable(bench_walks EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/bench_walks.c)
target_link_libraries(bench_walks PRIVATE lw_prove lw_base)
