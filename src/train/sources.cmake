# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  train_best.c train_curves.c train_generator.c train_heldout.c train_leaves.c train_loop.c train_step.c train_record.c train_goal.c train_page.c train_pictures.c train_resume.c
  train_run_dir.c train_schedule.c train_turns.c)
