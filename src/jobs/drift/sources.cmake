# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  drift_train.c drift_sources.c drift_step.c drift_loss.c drift_fit.c drift_chunks.c drift_kept.c drift_summary.c drift_predict.c drift_draws.c drift_alpha.c drift_finish.c)
