# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  build.c error.c log.c observer.c memory.c arena.c str.c str_clean.c str_number.c rng.c summary.c
  sys_clock.c sys_cpu.c sys_cgroup.c sys_file.c sys_output.c sys_output_dir.c sys_dir.c sys_map.c
  pool.c ring.c)
