set(SOURCES
  plan_grad.c plan_rewrite.c plan_simplify.c plan_upconv.c plan_fuse.c plan_join.c plan_precision.c plan_calibration.c plan_project.c plan_pack.c plan_chain.c plan_slices.c plan_recompute.c plan_schedule.c plan_place.c plan_memory.c
  plan_verify.c plan_outputs.c plan_lower.c plan_compile.c plan_dump.c plan_profile.c plan_derived.c plan_run.c)
