# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  convert_onnx.c
  convert_onnx_ew.c
  convert_onnx_ops.c
  convert_run.c)
