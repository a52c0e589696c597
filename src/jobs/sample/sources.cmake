# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  sample_pictures.c)
