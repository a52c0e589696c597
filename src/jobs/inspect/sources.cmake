# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  inspect_graph.c inspect_path.c)
