# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  build.c kinds.c error.c log.c observer.c memory.c arena.c str.c str_clean.c str_number.c rng.c summary.c
  sys/sys_clock.c sys/sys_cpu.c sys/sys_cores.c sys/sys_cgroup.c sys/sys_file.c sys/sys_output.c sys/sys_output_dir.c
  sys/sys_part.c sys/sys_dir.c sys/sys_map.c sys/sys_module.c
  thread/mailbox.c thread/pool.c thread/ring.c thread/thread.c)
