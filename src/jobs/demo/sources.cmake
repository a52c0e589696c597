# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  demo_run.c demo_settings.c)
