/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: bytes as a data set. The first chooses what the others are: a spec, the batches of
 * CIFAR-10, the idx files of MNIST, a folder of pictures.
 */
#include "fuzz/fuzz_folder.h"

#include <stdio.h>
#include <stdlib.h>

#include "data/sources/data_source.h"

static const char *root; /* a directory of this process, empty at first */

static void open_and_touch(const char *spec)
{
    lw_data_opts o = {.cache_dir = "", .image_size = 0};
    lw_data_report r;
    lw_dataset *d = NULL;
    for (int split = 0; split < LW_SPLIT_COUNT; split++) {
        o.split = (lw_split)split;
        if (lw_data_open(spec, &o, &d) != 0)
            continue;
        fuzz_touch(d->pixels, (size_t)d->n * (size_t)d->h * (size_t)d->w * 3);
        for (int64_t i = 0; i < d->n; i++)
            if (d->labels[i] < 0 || d->labels[i] >= d->classes)
                abort();
        lw_data_close(&d);
    }
    lw_data_check(spec, &o, &r);
    lw_data_report_clear(&r);
}

/* Plans only: opening would draw thousands of digits or walk somebody's disk. */
static void plan(const uint8_t *data, size_t size)
{
    lw_data_job job;
    char spec[512];
    size_t n = LW_MIN(size, sizeof spec - 1);
    for (size_t i = 0; i < n; i++)
        spec[i] = (char)(data[i] == '/' || data[i] == '.' ? '_' : data[i]);
    spec[n] = '\0';
    lw_data_job_init(&job, spec, NULL);
    lw_data_job_clear(&job);
}

/* A file of `len` bytes made by repeating a piece: records are thousands of bytes, inputs small. */
static void put_file(const char *name, const uint8_t *piece, size_t n, size_t len)
{
    static uint8_t bytes[1 << 16];
    char path[256];
    len = n ? LW_MIN(len, sizeof bytes) : 0;
    for (size_t i = 0; i < len; i++)
        bytes[i] = piece[i % n];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, len, f) != len || fclose(f) != 0)
        abort();
}

/* Files one after the other: two bytes of length, one of what it is, the piece of that length; the
 * file is as long as the piece, or as `each` records more. */
static void put_files(const char *const *names, size_t count, const uint8_t *data, size_t size,
                      size_t each)
{
    for (size_t i = 0; i < count && size >= 3; i++) {
        size_t n = LW_MIN((size_t)(data[0] | data[1] << 8), size - 3);
        size_t len = data[2] & 1 ? n : (data[2] >> 1) % 20 * each;
        if (!(data[2] & 128) || len > 0)
            put_file(names[i], data + 3, n, len);
        data += 3 + n;
        size -= 3 + n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const cifar[] = {"data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"};
    static const char *const mnist[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                        "t10k-images.idx3-ubyte", "t10k-labels-idx1-ubyte"};
    static const char *const pictures[] = {"a.png", "b.jpg", "c.jpeg", "d.png"};
    static const char *const source[] = {"cifar10", "mnist", "folder"};
    char spec[128];
    if (size == 0)
        return 0;
    root = fuzz_folder(data, 0);
    lw_log_set(LW_LOG_ERROR);
    switch (data[0] % 4) {
    case 0:
        put_files(cifar, LW_COUNT(cifar), data + 1, size - 1, 3073);
        break;
    case 1:
        put_files(mnist, LW_COUNT(mnist), data + 1, size - 1, 784);
        break;
    case 2:
        put_files(pictures, LW_COUNT(pictures), data + 1, size - 1, 1);
        break;
    default:
        plan(data + 1, size - 1);
        return 0;
    }
    snprintf(spec, sizeof spec, "%s:%s", source[data[0] % 4], root);
    open_and_touch(spec);
    return 0;
}
