# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  demo_battery.c demo_run.c demo_settings.c)
