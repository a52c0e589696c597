# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  provers.c provers_groups.c provers_page.c provers_report.c)
