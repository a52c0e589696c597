/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MNIST and its kin as idx files: big-endian magic 2051, count, rows, columns, then bytes; labels
 * magic 2049, count, bytes. Gray becomes RGB; 28x28 gets a black border of 2 pixels, so that it
 * halves five times.
 */
#include <stdio.h>
#include <string.h>

#include "data/sources/data_source.h"
#include "formats/formats.h"

enum {
    SIDE = 28,
    BORDER = 2,
    PADDED = SIDE + 2 * BORDER,
    CLASSES = 10,
    BLOCK = 1000,
    FILES = 4,
    LABEL_HEAD = 8
};
#define MAX_ROWS ((size_t)1 << 24) /* no kin of MNIST has a tenth of it */

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
    lw_data_job_size(job, PADDED);
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

static int check_count(const lw_data_job *job, const char *path, uint32_t count)
{
    if (count >= 1 && count <= MAX_ROWS)
        return 0;
    return lw_fail(LW_EFORMAT, "data '%s': %s: %u entries; 1 to %zu are read", job->spec, path,
                   count, MAX_ROWS);
}

static int load_labels(const lw_data_job *job, const char *path, char **out, uint32_t *n)
{
    LW_CLEANUP(lw_free) char *bytes = NULL;
    size_t len = 0;
    int rc = lw_archive_load(path, LABEL_HEAD + MAX_ROWS, &bytes, &len);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    if (len < LABEL_HEAD || big_endian(bytes) != 2049)
        return lw_fail(LW_EFORMAT, "data '%s': %s: not an idx file of labels (magic 2049)",
                       job->spec, path);
    uint32_t count = big_endian(bytes + 4);
    LW_TRY(check_count(job, path, count));
    if (len - LABEL_HEAD != count)
        return lw_fail(
            LW_EFORMAT,
            "data '%s': %s: %zu bytes, but %u entries need %zu: the file is cut short or longer",
            job->spec, path, len, count, LABEL_HEAD + (size_t)count);
    *n = count;
    *out = lw_steal(&bytes);
    return 0;
}

/* An idx file of pictures, read as a stream: no header makes it take more memory than a block. */
typedef struct images {
    lw_archive *in;
    const char *path;
    uint32_t n;
} images;

static void images_close(images *f)
{
    lw_archive_close(&f->in);
}

static int read_bytes(const lw_data_job *job, images *f, char *to, size_t n, size_t *got)
{
    size_t k = 1;
    for (*got = 0; *got < n && k > 0; *got += k) {
        int rc = lw_archive_read(f->in, to + *got, n - *got, &k);
        if (rc < 0)
            return lw_fail_in(rc, "data '%s': ", job->spec);
    }
    return 0;
}

static int open_images(const lw_data_job *job, const char *path, images *f)
{
    lw_archive_member m;
    char head[16];
    size_t got = 0;
    f->path = path;
    int rc = lw_archive_open(path, &f->in);
    if (rc == 0)
        rc = lw_archive_next(f->in, &m);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    if (rc == 0 && !m.raw)
        return lw_fail(LW_EFORMAT, "data '%s': %s: is an archive; one file is expected here",
                       job->spec, path);
    if (rc == 0)
        LW_TRY(read_bytes(job, f, head, sizeof head, &got));
    if (got < sizeof head || big_endian(head) != 2051)
        return lw_fail(LW_EFORMAT, "data '%s': %s: not an idx file of images (magic 2051)",
                       job->spec, path);
    if (big_endian(head + 8) != SIDE || big_endian(head + 12) != SIDE)
        return lw_fail(LW_EFORMAT, "data '%s': %s: pictures of %ux%u, expected 28x28", job->spec,
                       path, big_endian(head + 8), big_endian(head + 12));
    f->n = big_endian(head + 4);
    return check_count(job, path, f->n);
}

/* The next k pictures; behind the last of all nothing may follow. */
static int next_images(const lw_data_job *job, images *f, int64_t at, int64_t k, char *gray)
{
    size_t got, want = (size_t)k * SIDE * SIDE, more = 0;
    char past;
    LW_TRY(read_bytes(job, f, gray, want, &got));
    if (got == want && at + k == f->n)
        LW_TRY(read_bytes(job, f, &past, 1, &more));
    if (got == want && more == 0)
        return 0;
    return lw_fail(LW_EFORMAT, "data '%s': %s: %u pictures are announced, %s: the file is %s",
                   job->spec, f->path, f->n, more ? "more follows" : "not all are there",
                   more ? "longer" : "cut short");
}

/* A block of them, and their labels. */
typedef struct digits {
    const uint8_t *gray;
    const char *marks;
    const char *label_path;
    int64_t at;
    int32_t border;
} digits;

static int get_digit(const void *from, int64_t i, lw_raster *im, int32_t *label)
{
    const digits *d = from;
    const uint8_t *gray = d->gray + i * SIDE * SIDE;
    int32_t side = SIDE + 2 * d->border;
    *label = (uint8_t)d->marks[d->at + i];
    if (*label >= CLASSES)
        return lw_fail(LW_EFORMAT, "%s: label %lld is %d, not 0..9", d->label_path,
                       (long long)(d->at + i), *label);
    LW_TRY(lw_raster_init(im, side, side, 1));
    for (int32_t y = 0; y < SIDE; y++)
        memcpy(im->at + (y + d->border) * side + d->border, gray + y * SIDE, SIDE);
    return 0;
}

/* Pictures and labels of a split. */
typedef struct pair {
    images pictures;
    const char *label_path;
    char *marks;
} pair;

static void pair_close(pair *p)
{
    images_close(&p->pictures);
    lw_free(&p->marks);
}

static int pair_open(const lw_data_job *job, const char *image_path, const char *label_path,
                     pair *p)
{
    uint32_t n = 0;
    p->label_path = label_path;
    LW_TRY(open_images(job, image_path, &p->pictures));
    LW_TRY(load_labels(job, label_path, &p->marks, &n));
    if (p->pictures.n != n)
        return lw_fail(LW_EFORMAT, "data '%s': %s has %u pictures, %s has %u labels", job->spec,
                       image_path, p->pictures.n, label_path, n);
    return 0;
}

static int put_rows(lw_data_job *job, lw_data_sink *sink, pair *p)
{
    images *f = &p->pictures;
    LW_CLEANUP(lw_free) char *gray = lw_calloc(BLOCK, SIDE * SIDE);
    if (!gray)
        return LW_ENOMEM;
    for (int64_t at = 0; at < f->n; at += BLOCK) {
        int64_t k = LW_MIN((int64_t)BLOCK, f->n - at);
        LW_TRY(next_images(job, f, at, k, gray));
        const digits d = {.gray = (const uint8_t *)gray,
                          .marks = p->marks + LABEL_HEAD,
                          .label_path = p->label_path,
                          .at = at,
                          .border = job->opts.preparation || job->h == SIDE ? 0 : BORDER};
        const lw_data_pictures block = {.n = k, .from = &d, .get = get_digit};
        LW_TRY(lw_data_fill(job, sink, &block));
    }
    return 0;
}

static int mnist_build(lw_data_job *job, lw_data_sink *sink)
{
    const mnist_files *f = job->priv;
    LW_CLEANUP(pair_close) pair train = {0};
    LW_CLEANUP(pair_close) pair held = {0};
    LW_TRY(pair_open(job, f->path[0], f->path[1], &train));
    LW_TRY(pair_open(job, f->path[2], f->path[3], &held));
    LW_TRY(lw_data_sink_expect(sink, train.pictures.n, held.pictures.n));
    LW_TRY(put_rows(job, sink, &train));
    lw_data_sink_heldout(sink);
    return put_rows(job, sink, &held);
}

const lw_data_source lw_data_source_mnist = {
    .info = {"mnist", "mnist:PATH",
             "MNIST as four idx files, plain, .gz or .xz; padded to 32x32, gray"},
    .plan = mnist_plan,
    .build = mnist_build,
    .clear = mnist_clear,
};
