# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  conv/conv_ref.c
  conv/conv_shape.c
  gemm/gemm_ref.c
  gemm/gemm_shape.c
  gemm/gemm_wgrad_shape.c
)
