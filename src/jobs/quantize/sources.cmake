# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  quantize_inputs.c quantize_model.c quantize_ranges.c)
