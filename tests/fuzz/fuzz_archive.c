/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: bytes as an archive or compressed file (tar, zip; gzip, xz, bzip2, zstd), and as an
 * npz. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "base/base.h"
#include "formats/formats.h"

enum { MAX = 1 << 20 };

static int read_member(void *arg, lw_archive *a, const lw_archive_member *m)
{
    char *bytes = NULL;
    size_t n = 0;
    int *left = arg;
    fuzz_touch(m->name, strlen(m->name));
    if (lw_archive_read_all(a, MAX, &bytes, &n) == 0) {
        if (n > MAX || bytes[n] != '\0')
            abort();
        fuzz_touch(bytes, n);
    }
    lw_free(&bytes);
    return --*left == 0;
}

static int touch_array(void *arg, const char *name, lw_array *a)
{
    size_t *sum = arg;
    fuzz_touch(name, strlen(name));
    if (a->data)
        fuzz_touch(a->data, a->bytes);
    *sum += a->bytes;
    return *sum > MAX; /* a header may ask for gigabytes: see the size before reading */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("lw-fuzz-archive", data, size);
    int left = 16;
    size_t headers = 0, arrays = 0;
    lw_archive_each(path, read_member, &left);
    if (lw_npz_each(path, false, touch_array, &headers) == 0 && headers <= MAX)
        lw_npz_each(path, true, touch_array, &arrays);
    return 0;
}
