# SPDX-License-Identifier: Apache-2.0
# Kernels for NVIDIA GPUs: nvcc makes a fat binary of each kernels/cuda_<family>.cu, which is embedded
# in the program at the symbol lw_cuda_blob_<family>. Without nvcc it is 64 bytes of zeros. Nothing of
# CUDA is linked.
set(LW_NVCC "")
if(LW_CUDA AND NOT (LW_SANITIZE AND LW_CUDA STREQUAL AUTO)) # sanitizers look at the host alone
  find_program(NVCC nvcc HINTS ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
  if(NVCC)
    set(LW_NVCC ${NVCC})
  elseif(NOT LW_CUDA STREQUAL AUTO)
    message(FATAL_ERROR "LW_CUDA=${LW_CUDA} and no nvcc was found")
  endif()
endif()
set(cuda_dir ${CMAKE_SOURCE_DIR}/src/backend/cuda)
set(blob_dir ${CMAKE_BINARY_DIR}/generated)
file(STRINGS ${cuda_dir}/cuda_families.def LW_CUDA_FAMILIES REGEX "^F")
list(TRANSFORM LW_CUDA_FAMILIES REPLACE "F\\((.*)\\)" "\\1")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${cuda_dir}/cuda_families.def)
foreach(family ${LW_CUDA_FAMILIES})
  set(image ".zero 64")
  set(blob ${blob_dir}/cuda_${family})
  if(LW_NVCC)
    set(image ".incbin \"${blob}.fatbin\"")
    set(flags "")
    if(family MATCHES "^(random|pixels)$") # the CPU's bits
      set(flags -fmad=false)
    elseif(family STREQUAL drift_mma) # ptxas at its best loads ahead of the products until it has to spill sums
      set(flags -Xptxas -O1)
    endif()
    set(machines -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80)
    if(family STREQUAL wgmma) # instructions of compute capability 9.0 alone
      set(machines -gencode arch=compute_90a,code=sm_90a)
    endif()
    # what ptxas says of registers and spills is kept for tests/cuda/kernel_use.sh, and shown if it fails
    add_custom_command(OUTPUT ${blob}.fatbin BYPRODUCTS ${blob}.use
      COMMAND sh -c "\"$@\" 2>${blob}.use || { cat ${blob}.use >&2; exit 1; }" nvcc
        ${LW_NVCC} -std=c++17 -O3 ${flags} -I${CMAKE_SOURCE_DIR}/src -Xptxas -v
        ${machines} -fatbin -MD -MF ${blob}.d ${cuda_dir}/kernels/cuda_${family}.cu -o ${blob}.fatbin
      DEPENDS ${cuda_dir}/kernels/cuda_${family}.cu DEPFILE ${blob}.d VERBATIM)
  endif()
  file(CONFIGURE OUTPUT ${blob}.S CONTENT ".section .rodata
.balign 64
.globl lw_cuda_blob_${family}
.hidden lw_cuda_blob_${family}
lw_cuda_blob_${family}:
${image}
.section .note.GNU-stack,\"\",%progbits
")
  if(LW_NVCC)
    set_source_files_properties(${blob}.S PROPERTIES OBJECT_DEPENDS ${blob}.fatbin)
  endif()
  target_sources(lw_backend PRIVATE ${blob}.S)
endforeach()
find_path(LW_CUDA_H cuda.h HINTS ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES include)
if(LW_CUDA AND LW_CUDA_H)
  set_source_files_properties(${cuda_dir}/cuda_driver.c PROPERTIES COMPILE_DEFINITIONS LW_HAVE_CUDA_H
    COMPILE_OPTIONS "-isystem;${LW_CUDA_H}")
endif()
