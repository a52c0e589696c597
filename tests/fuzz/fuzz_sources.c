/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: behind 'L' a list of shards beside two arrays that are there; anything else is a tar file. */
#include "fuzz/fuzz_folder.h"

#include "base/base.h"
#include "data/data.h"
#include "formats/formats.h"

static void put_arrays(const char *root)
{
    static const uint8_t pixels[4 * 8 * 8 * 3], labels[4] = {0, 2, 0, 2};
    char path[600];
    snprintf(path, sizeof path, "%s/a.npy", root);
    if (lw_npy_save(path, LW_ELEM_U8, 4, (const int64_t[]){4, 8, 8, 3}, pixels) < 0)
        abort();
    snprintf(path, sizeof path, "%s/l.npy", root);
    if (lw_npy_save(path, LW_ELEM_U8, 1, (const int64_t[]){4}, labels) < 0)
        abort();
}

static void open_all(const char *spec)
{
    for (int skip = 0; skip < 2; skip++) {
        lw_dataset *d = NULL;
        const lw_data_opts o = {.cache_dir = "", .image_size = 8, .on_error = (lw_on_error)skip};
        if (lw_data_open(spec, &o, &d) != 0)
            continue;
        for (int64_t i = 0; i < d->n; i++)
            if (d->labels[i] < 0 || d->labels[i] >= d->classes)
                abort();
        fuzz_touch(d->pixels, (size_t)d->n * 8 * 8 * 3);
        lw_data_close(&d);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[600], spec[640];
    const bool list = size > 0 && data[0] == 'L';
    const char *root = fuzz_folder(data, 0);
    lw_log_set(LW_LOG_ERROR);
    if (list)
        put_arrays(root);
    snprintf(path, sizeof path, "%s/%s", root, list ? "list.json" : "x.tar");
    snprintf(spec, sizeof spec, "%s:%s", list ? "shards" : "webdataset", path);
    if (lw_file_write(path, data + list, size - list) < 0)
        abort();
    open_all(spec);
    return 0;
}
