/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as YUV4MPEG2, as JPEGs one behind the other, and as raw frames. */
#include "fuzz/fuzz_source.h"

/* Sources are known by their endings: links of these names to the file in memory. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char dir[] = "/tmp/fuzz_frames.XXXXXX", path[2][64];
    if (!path[0][0]) {
        const char *file = fuzz_file("frames", data, 0);
        if (!mkdtemp(dir))
            abort();
        for (int i = 0; i < 2; i++) {
            snprintf(path[i], sizeof path[i], "%s/f%s", dir, i ? ".mjpeg" : ".y4m");
            if (symlink(file, path[i]) != 0)
                abort();
        }
    }
    fuzz_file("frames", data, size);
    fuzz_source(path[0], NULL);
    fuzz_source(path[1], NULL);
    fuzz_source(path[0], "5x3:yuv420p");
    return 0;
}
