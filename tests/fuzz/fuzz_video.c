/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as video files, through the module `libav`. */
#include "fuzz/fuzz.h"

#include "frames/frames.h"

static void read_all(const char *path)
{
    const lw_frame_options options = {0};
    LW_CLEANUP(lw_frame_source_close) lw_frame_source *s = NULL;
    if (lw_frame_source_open(path, &options, &s) < 0 ||
        (int64_t)s->format.w * s->format.h > 1 << 20)
        return;
    const size_t n = lw_pixels_bytes(&s->pixels);
    uint8_t *bytes = malloc(n);
    double captured;
    if (!bytes)
        abort();
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 8 && lw_frame_source_next(s, bytes, &captured) == 0; i++)
            fuzz_touch(bytes, n);
        if (lw_frame_source_rewind(s) < 0)
            break;
    }
    free(bytes);
}

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
    read_all(path);
    if (unlink(path) != 0)
        abort();
    return 0;
}
