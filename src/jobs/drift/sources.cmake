# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  drift_real_features.c drift_train.c)
