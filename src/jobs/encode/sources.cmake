# SPDX-License-Identifier: Apache-2.0
set(SOURCES
  encode_file.c encode_run.c encode_rows.c encode_state.c)
