# SPDX-License-Identifier: Apache-2.0
# The emulating driver, a libcuda.so.1 in a folder of its own, with the GPU's kernels compiled as C.
set(dir ${CMAKE_BINARY_DIR}/emulated_gpu)
add_library(emulated_gpu SHARED ${CMAKE_SOURCE_DIR}/tests/cuda/emulated_driver.c
  ${CMAKE_SOURCE_DIR}/tests/cuda/emulated_threads.c ${CMAKE_SOURCE_DIR}/tests/cuda/emulated_words.c)
foreach(family ${LW_CUDA_FAMILIES})
  set(copy ${CMAKE_BINARY_DIR}/generated/emulated_${family}.c)
  file(GENERATE OUTPUT ${copy} CONTENT "#include \"backend/cuda/kernels/cuda_${family}.cu\"\n")
  target_sources(emulated_gpu PRIVATE ${copy})
endforeach()
target_include_directories(emulated_gpu PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/tests)
# fibers: no sanitizer follows their stacks
include(CheckCSourceRuns)
check_c_source_runs([[int main(void) {return !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"));}]] LW_TESTS_FMA)
if(LW_TESTS_FMA) # tests run where they are built
  target_compile_options(emulated_gpu PRIVATE -mavx2 -mfma)
endif()
target_compile_options(emulated_gpu PRIVATE -O3 -fvisibility=default -fno-sanitize=all -Wno-missing-prototypes -Wno-double-promotion)
target_link_libraries(emulated_gpu PRIVATE m)
set_target_properties(emulated_gpu PROPERTIES OUTPUT_NAME cuda SUFFIX ".so.1" LIBRARY_OUTPUT_DIRECTORY ${dir})
# gpu_cases(NAME LIMIT_S ENVIRONMENT ARGUMENTS..): `leeway check --device cuda` on the emulated GPU
function(gpu_cases name limit environment)
  add_test(NAME ${name} COMMAND leeway-check --device cuda ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS cuda TIMEOUT ${limit}
    ENVIRONMENT "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1;LD_LIBRARY_PATH=${dir};${environment}")
endfunction()
gpu_cases(test_cuda_ops 900 "" --filter ops. --least 188)
# without wgmma: products on the tensor cores of 8.0
gpu_cases(test_cuda_ops_8_0 300 "LW_EMULATED_GPU=8.0;LW_EMULATED_SHARED=101376"
  --filter fixed_bf16,few_tiles,narrow,apart,deep,rgb_tiles,dx_tiles --least 18)
# on one multiprocessor, for which few tiles are many
gpu_cases(test_cuda_ops_one 300 "LW_EMULATED_MULTIPROCESSORS=1" --filter conv3_halo,half_tiles,few_tiles --least 8)
gpu_cases(test_cuda_drift 900 "" --filter drift. --least 30)
add_test(NAME test_cuda_networks COMMAND test_golden_networks WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
add_test(NAME test_cuda_rehearsal COMMAND test_golden_rehearsal WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
set_tests_properties(test_cuda_networks test_cuda_rehearsal PROPERTIES LABELS cuda TIMEOUT 900
  ENVIRONMENT "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1;LD_LIBRARY_PATH=${dir};LW_GOLDEN_DEVICE=cuda")
add_test(NAME test_cuda_device COMMAND test_device cuda)
set_tests_properties(test_cuda_device PROPERTIES LABELS cuda
  ENVIRONMENT "UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1;LD_LIBRARY_PATH=${dir}")
foreach(case cuda cuda_networks cuda_auto)
  add_test(NAME cli_${case} COMMAND sh ${CMAKE_SOURCE_DIR}/tests/cli/run_case.sh
    ${CMAKE_SOURCE_DIR}/tests/cli/${case}.sh $<TARGET_FILE:leeway> ${CMAKE_BINARY_DIR}/cli/${case})
  set_tests_properties(cli_${case} PROPERTIES LABELS cli TIMEOUT 900
    ENVIRONMENT "LW_EMULATED_GPU_DIR=${dir}")
endforeach()
# the script for machines with a GPU, from end to end; sanitizers look at the same commands in cli_cuda
if(NOT LW_SANITIZE)
  add_test(NAME cuda_gpu_check COMMAND sh -c "rm -rf \"$2\" && exec bash \"$0\" --short \"$1\" \"$2\""
    ${CMAKE_SOURCE_DIR}/tools/gpu_check.sh ${CMAKE_BINARY_DIR} ${CMAKE_BINARY_DIR}/gpu_check)
  set_tests_properties(cuda_gpu_check PROPERTIES LABELS cuda TIMEOUT 900 ENVIRONMENT "LD_LIBRARY_PATH=${dir}")
endif()
# no nvcc: no machine code to look at
add_test(NAME cuda_kernel_use COMMAND sh ${CMAKE_SOURCE_DIR}/tests/cuda/kernel_use.sh ${CMAKE_BINARY_DIR}/generated
  ${CMAKE_SOURCE_DIR}/src/backend/cuda/cuda_kernels.def "${LW_NVCC}")
set_tests_properties(cuda_kernel_use PROPERTIES LABELS cuda SKIP_RETURN_CODE 77)
