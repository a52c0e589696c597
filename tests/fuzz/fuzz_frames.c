/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as YUV4MPEG2, as JPEGs one behind the other, and as raw frames. */
#include "fuzz/fuzz.h"

#include "frames/frames.h"

static void read_all(const char *spec, const char *raw)
{
    const lw_frame_options options = {.raw = raw};
    LW_CLEANUP(lw_frame_source_close) lw_frame_source *s = NULL;
    if (lw_frame_source_open(spec, &options, &s) < 0 ||
        (int64_t)s->format.w * s->format.h > 1 << 20)
        return;
    const size_t n = lw_pixels_bytes(&s->pixels);
    uint8_t *bytes = malloc(n);
    double captured;
    if (!bytes)
        abort();
    for (int i = 0; i < 8 && lw_frame_source_next(s, bytes, &captured) == 0; i++)
        fuzz_touch(bytes, n);
    free(bytes);
}

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
    read_all(path[0], NULL);
    read_all(path[1], NULL);
    read_all(path[0], "5x3:yuv420p");
    return 0;
}
