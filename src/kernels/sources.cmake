# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  conv/conv_ref.c
  conv/conv_shape.c
  gemm/gemm_ref.c
  gemm/gemm_shape.c
  gemm/gemm_wgrad_shape.c
  ew/ew_program.c
  ew/ew_ref.c
  optim/optim_ref.c
  pooling/pooling_copy.c
  pooling/pooling_ref.c
  random/random_avx2.c
  random/random_avx512.c
  random/random_ref.c
  reduce/reduce_ref.c
  resample/resample_ref.c
)
