# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  encoder_judge.c encoder_mae.c encoder_settle.c encoder_train.c encoder_distill.c encoder_distill_measures.c
  encoder_neighbours.c encoder_contrast.c)
