/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as video files, through the module `libav`. */
#include "fuzz/fuzz_source.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char dir[] = "/tmp/fuzz_video.XXXXXX", path[64];
    if (!path[0]) {
        if (!mkdtemp(dir))
            abort();
        snprintf(path, sizeof path, "%s/f.mp4", dir);
    }
    if (lw_file_write(path, data, size) < 0)
        abort();
    fuzz_source(path, NULL);
    if (unlink(path) != 0)
        abort();
    return 0;
}
