/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MNIST and its kin as idx files: big-endian magic 2051, count, rows, columns, then bytes; labels
 * magic 2049, count, bytes. Gray becomes RGB; 28x28 gets a black border of 2 pixels, so that it
 * halves five times.
 */
#include <stdio.h>
#include <string.h>

#include "data/data_source.h"
#include "formats/formats.h"

enum { SIDE = 28, BORDER = 2, PADDED = SIDE + 2 * BORDER, CLASSES = 10, BLOCK = 1000, FILES = 4 };
#define MAX_FILE ((size_t)1 << 30)

typedef struct mnist_files {
    char *path[FILES]; /* train images, train labels, test images, test labels */
} mnist_files;

static const char *const stems[FILES][2] = {
    {"train-images-idx3-ubyte", "train-images.idx3-ubyte"},
    {"train-labels-idx1-ubyte", "train-labels.idx1-ubyte"},
    {"t10k-images-idx3-ubyte", "t10k-images.idx3-ubyte"},
    {"t10k-labels-idx1-ubyte", "t10k-labels.idx1-ubyte"},
};

/* The first of the usual spellings and compressions that is there. */
static int find_file(lw_data_job *job, const char *dir, const char *const stem[2], char **out)
{
    static const char *const ends[] = {"", ".gz", ".xz"};
    for (size_t i = 0; i < 2 * LW_COUNT(ends); i++) {
        LW_CLEANUP(lw_str_clear) lw_str s = {0};
        lw_str_addf(&s, "%s/%s%s", dir, stem[i % 2], ends[i / 2]);
        if (!lw_path_exists(lw_str_c(&s)))
            continue;
        *out = lw_strdup(lw_str_c(&s));
        return *out ? lw_data_job_file(job, *out) : LW_ENOMEM;
    }
    return lw_fail(LW_EIO, "data '%s': %s has no %s (plain, .gz or .xz)", job->spec, dir, stem[0]);
}

static int mnist_plan(lw_data_job *job)
{
    static const char *const names[CLASSES] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    const char *path;
    LW_TRY(lw_data_job_path(job, &path));
    LW_TRY(lw_data_job_place(job, path));
    mnist_files *f = job->priv = lw_calloc(1, sizeof *f);
    if (!f)
        return LW_ENOMEM;
    for (int i = 0; i < FILES; i++)
        LW_TRY(find_file(job, path, stems[i], &f->path[i]));
    job->size = job->opts.image_size ? job->opts.image_size : PADDED;
    job->labelled = true;
    for (int c = 0; c < CLASSES; c++)
        LW_TRY(lw_data_job_class(job, names[c]));
    return 0;
}

static void mnist_clear(lw_data_job *job)
{
    mnist_files *f = job->priv;
    for (int i = 0; f && i < FILES; i++)
        lw_free(&f->path[i]);
    lw_free(&job->priv);
}

static uint32_t big_endian(const char *bytes)
{
    const uint8_t *b = (const uint8_t *)bytes;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

/* Loads an idx file and checks magic and length; *n is its count. */
static int load_idx(const lw_data_job *job, const char *path, bool images, char **out, int64_t *n)
{
    LW_CLEANUP(lw_free) char *bytes = NULL;
    size_t len = 0, head = images ? 16 : 8, each = images ? SIDE * SIDE : 1;
    uint32_t magic = images ? 2051 : 2049;
    int rc = lw_archive_load(path, MAX_FILE, &bytes, &len);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    if (len < head || big_endian(bytes) != magic)
        return lw_fail(LW_EFORMAT, "data '%s': %s: not an idx file of %s (magic %u)", job->spec,
                       path, images ? "images" : "labels", magic);
    if (images && (big_endian(bytes + 8) != SIDE || big_endian(bytes + 12) != SIDE))
        return lw_fail(LW_EFORMAT, "data '%s': %s: pictures of %ux%u, expected 28x28", job->spec,
                       path, big_endian(bytes + 8), big_endian(bytes + 12));
    uint32_t count = big_endian(bytes + 4);
    if (count == 0 || len - head != (size_t)count * each)
        return lw_fail(
            LW_EFORMAT,
            "data '%s': %s: %zu bytes, but %u entries need %zu: the file is cut short or longer",
            job->spec, path, len, count, head + (size_t)count * each);
    *n = count;
    *out = lw_steal(&bytes);
    return 0;
}

static int one_picture(const lw_data_job *job, const uint8_t *gray, uint8_t *dst)
{
    uint8_t rgb[PADDED * PADDED * 3] = {0};
    int32_t border = job->size == SIDE ? 0 : BORDER, side = SIDE + 2 * border;
    for (int32_t y = 0; y < SIDE; y++)
        for (int32_t x = 0; x < SIDE; x++)
            memset(rgb + 3 * ((y + border) * side + x + border), gray[y * SIDE + x], 3);
    return lw_data_fit(rgb, side, side, job->size, dst);
}

static int put_pair(lw_data_job *job, lw_data_sink *sink, const char *image_path,
                    const char *label_path)
{
    LW_CLEANUP(lw_free) char *images = NULL;
    LW_CLEANUP(lw_free) char *marks = NULL;
    int64_t n = 0, m = 0;
    size_t row = (size_t)job->size * (size_t)job->size * 3;
    LW_TRY(load_idx(job, image_path, true, &images, &n));
    LW_TRY(load_idx(job, label_path, false, &marks, &m));
    if (n != m)
        return lw_fail(LW_EFORMAT, "data '%s': %s has %lld pictures, %s has %lld labels", job->spec,
                       image_path, (long long)n, label_path, (long long)m);
    LW_CLEANUP(lw_free) uint8_t *pixels = lw_calloc(BLOCK, row);
    LW_CLEANUP(lw_free) int32_t *labels = lw_calloc(BLOCK, sizeof *labels);
    if (!pixels || !labels)
        return LW_ENOMEM;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t k = LW_MIN((int64_t)BLOCK, n - at);
        for (int64_t i = 0; i < k; i++) {
            labels[i] = (uint8_t)marks[8 + at + i];
            if (labels[i] >= CLASSES)
                return lw_fail(LW_EFORMAT, "data '%s': %s: label %lld is %d, not 0..9", job->spec,
                               label_path, (long long)(at + i), labels[i]);
            const uint8_t *gray = (const uint8_t *)images + 16 + (size_t)(at + i) * SIDE * SIDE;
            LW_TRY(one_picture(job, gray, pixels + (size_t)i * row));
        }
        LW_TRY(lw_data_sink_put(sink, pixels, labels, k));
    }
    return 0;
}

static int mnist_build(lw_data_job *job, lw_data_sink *sink)
{
    const mnist_files *f = job->priv;
    LW_TRY(put_pair(job, sink, f->path[0], f->path[1]));
    lw_data_sink_heldout(sink);
    return put_pair(job, sink, f->path[2], f->path[3]);
}

const lw_data_source lw_data_source_mnist = {
    .info = {"mnist", "mnist:PATH",
             "MNIST as four idx files, plain, .gz or .xz; padded to 32x32, gray as RGB"},
    .plan = mnist_plan,
    .build = mnist_build,
    .clear = mnist_clear,
};
