# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  drift_reals.c drift_train.c)
