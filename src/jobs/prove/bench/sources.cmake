# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  prove_bench.c prove_bench_page.c prove_bench_tables.c)
