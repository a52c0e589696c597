# SPDX-License-Identifier: Apache-2.0
# Benchmark programs of the kernels; built on demand: cmake --build BUILD --target bench_conv
set_source_files_properties(${CMAKE_SOURCE_DIR}/bench/bench_peak_avx2.c PROPERTIES COMPILE_OPTIONS "${LW_AVX2_FLAGS}")
set_source_files_properties(${CMAKE_SOURCE_DIR}/bench/bench_peak_avx512.c PROPERTIES COMPILE_OPTIONS "${LW_AVX512_FLAGS}")
add_executable(bench_conv EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/bench_conv.c
  ${CMAKE_SOURCE_DIR}/bench/bench_peak_avx2.c ${CMAKE_SOURCE_DIR}/bench/bench_peak_avx512.c)
target_link_libraries(bench_conv PRIVATE lw_kernels lw_base)
