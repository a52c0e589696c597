# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  eval_answers.c eval_band.c eval_block.c eval_dense.c eval_dense_avx2.c eval_dense_avx512.c eval_eigen.c
  eval_factor.c eval_frechet.c eval_frechet_gradient.c eval_frechet_replicates.c
  eval_interval.c eval_judge.c eval_kid.c eval_laplace.c eval_near.c eval_passes.c eval_pictures.c eval_probe.c eval_rank.c eval_reliability.c eval_resample.c eval_restore.c eval_score.c eval_series.c eval_singular.c eval_sliced.c eval_stats.c eval_verdict.c eval_ranks.c eval_zero_shot.c)
