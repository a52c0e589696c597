/* SPDX-License-Identifier: Apache-2.0 */
/* What this binary was built from: for `leeway info`, env.json and checkpoints. */
#ifndef LW_BASE_BUILD_H
#define LW_BASE_BUILD_H

const char *lw_build_version(void); /* "0.1.0" */
const char *lw_build_commit(
    void); /* "1a2b3c4d", "-dirty" behind it when edited; "unknown" outside git */
const char *lw_build_release(void);  /* "0.1.0 (1a2b3c4d)" */
const char *lw_build_compiler(void); /* "gcc 12.2.0" */

#endif
