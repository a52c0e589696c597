# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  drift_train.c)
