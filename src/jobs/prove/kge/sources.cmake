# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  prove_kge.c prove_kge_feed.c prove_kge_loss.c prove_kge_rank.c prove_kge_train.c)
