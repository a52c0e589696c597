# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  field_run.c)
