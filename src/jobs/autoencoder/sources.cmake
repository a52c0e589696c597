# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  autoencoder_train.c)
