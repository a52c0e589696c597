/* SPDX-License-Identifier: Apache-2.0 */
/* Version, commit and compiler, the first two from the build. */
#include "base/build.h"

#include "lw_commit.h" /* written into the build folder: #define LW_COMMIT "..." */

const char *lw_build_version(void)
{
    return LW_VERSION;
}

const char *lw_build_commit(void)
{
    return LW_COMMIT;
}

const char *lw_build_release(void)
{
    return LW_VERSION " (" LW_COMMIT ")";
}

const char *lw_build_compiler(void)
{
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}
