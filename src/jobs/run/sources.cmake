# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  run_files.c)
