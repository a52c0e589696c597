# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  toy_graph.c toy_measure.c toy_page.c toy_suite.c toy_train.c)
