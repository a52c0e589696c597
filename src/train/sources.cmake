# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  train_best.c train_curves.c train_goal.c train_init.c train_leaves.c train_loop.c train_page.c train_parts.c train_record.c train_resume.c
  train_run_dir.c train_schedule.c train_step.c train_turns.c
  pictures/train_generator.c pictures/train_heldout.c pictures/train_pictures.c pictures/train_real_features.c pictures/train_restored.c)
