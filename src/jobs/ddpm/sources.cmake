# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  ddpm_train.c)
