# SPDX-License-Identifier: Apache-2.0
# Kernel tests: check is the shared part (buffers, comparisons, the run over ISA levels).
add_library(lw_check STATIC ${CMAKE_SOURCE_DIR}/tests/kernels/check.c)
target_include_directories(lw_check PUBLIC ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(lw_check PUBLIC lw_base ${CMOCKA_LIBRARY} m)
lw_test(test_ew kernels/test_ew.c kernels check base)
lw_test(test_norm kernels/test_norm.c kernels check base)
lw_test(test_kernels_gemm kernels/test_kernels_gemm.c kernels check base)
lw_test(test_kernels_conv kernels/test_kernels_conv.c kernels check base)
lw_test(test_reduce kernels/test_reduce.c kernels check base)
lw_test(test_optim kernels/test_optim.c kernels check base)
lw_test(test_attention kernels/test_attention.c kernels check base)
lw_test(test_random kernels/test_random.c kernels check base)
