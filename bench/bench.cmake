# SPDX-License-Identifier: Apache-2.0
# Small cases whose instructions are counted: bench/instructions.sh
add_executable(bench_instructions EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/bench_instructions.c)
target_link_libraries(bench_instructions PRIVATE lw_bench lw_base)
# A picture's way to a network, beside Pillow's: tools/peers/prepare_peer.py
add_executable(bench_prepare EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/bench/bench_prepare.c)
target_link_libraries(bench_prepare PRIVATE lw_data lw_formats lw_base)
