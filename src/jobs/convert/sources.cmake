# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  convert_run.c)
