/* SPDX-License-Identifier: Apache-2.0 */
/* Names shared by sys_output.c (files) and sys_output_dir.c (directories). */
#ifndef LW_BASE_SYS_OUTPUT_NAME_H
#define LW_BASE_SYS_OUTPUT_NAME_H

#include "base/str.h"

/* dir/.tmp_NAME.RANDOM, NAME being the last part of path. */
int lw_tmp_name(const char *dir, const char *path, lw_str *out);
/* fsync of the directory that holds path, so that a rename in it survives a power cut. */
int lw_sync_parent(const char *path);

#endif
