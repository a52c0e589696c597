/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CIFAR-10 in its binary layout: records of one label byte and 32x32 red, green, blue planes; files
 * data_batch_*.bin (training, in order of name) and test_batch.bin (held out), in a directory or an
 * archive.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "data/data_source.h"
#include "formats/formats.h"

enum {
    SIDE = 32,
    PLANE = SIDE * SIDE,
    RECORD = 1 + 3 * PLANE,
    CLASSES = 10,
    USUAL_RECORDS = 10000,
    BLOCK = 1000
};
#define MAX_FILE ((size_t)1 << 30)
#define TEST_FILE "test_batch.bin"

typedef struct cifar_files {
    char **train; /* paths, sorted */
    size_t n_train, cap_train;
    char *test;
    char *archive; /* instead of the above */
} cifar_files;

static bool is_train(const char *name)
{
    return fnmatch("data_batch_*.bin", name, 0) == 0;
}

static int join(const char *dir, const char *name, char **out)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    *out = lw_strdup(lw_path_join(&s, dir, name));
    return *out ? 0 : LW_ENOMEM;
}

/* Takes the batch files of dir; 1 when it has none. */
static int take_dir(cifar_files *f, const char *dir, char **names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (is_train(names[i])) {
            LW_TRY(lw_grow(&f->train, &f->cap_train, f->n_train + 1, sizeof *f->train));
            LW_TRY(join(dir, names[i], &f->train[f->n_train]));
            f->n_train++;
        } else if (lw_str_eq(names[i], TEST_FILE)) {
            LW_TRY(join(dir, names[i], &f->test));
        }
    }
    return f->n_train == 0 && !f->test;
}

static int look_into(lw_data_job *job, cifar_files *f, const char *dir, char **names, size_t n)
{
    int rc = take_dir(f, dir, names, n);
    if (rc <= 0)
        return rc;
    LW_CLEANUP(lw_free) char *inner = NULL;
    LW_TRY(join(dir, "cifar-10-batches-bin", &inner));
    if (lw_path_is_dir(inner)) {
        char **in = NULL;
        size_t k = 0;
        LW_TRY(lw_list_dir(inner, &in, &k));
        rc = take_dir(f, inner, in, k);
        lw_list_free(&in, k);
        if (rc <= 0)
            return rc;
    }
    for (size_t i = 0; i < n; i++)
        if (fnmatch("cifar-10*.tar*", names[i], 0) == 0)
            return join(dir, names[i], &f->archive);
    return lw_fail(LW_EIO,
                   "data '%s': %s has neither data_batch_*.bin and " TEST_FILE
                   " nor cifar-10*.tar*: give the folder of the binary version of CIFAR-10",
                   job->spec, dir);
}

static int plan_files(lw_data_job *job, const cifar_files *f)
{
    if (f->archive)
        return lw_data_job_file(job, f->archive);
    if (f->n_train == 0 || !f->test)
        return lw_fail(LW_EIO, "data '%s': %s is missing", job->spec,
                       f->test ? "data_batch_*.bin" : TEST_FILE);
    for (size_t i = 0; i < f->n_train; i++)
        LW_TRY(lw_data_job_file(job, f->train[i]));
    return lw_data_job_file(job, f->test);
}

static int cifar_plan(lw_data_job *job)
{
    static const char *const names[CLASSES] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                               "dog",      "frog",       "horse", "ship", "truck"};
    const char *path;
    LW_TRY(lw_data_job_path(job, &path));
    LW_TRY(lw_data_job_place(job, path));
    cifar_files *f = job->priv = lw_calloc(1, sizeof *f);
    if (!f)
        return LW_ENOMEM;
    if (lw_path_is_dir(path)) {
        char **list = NULL;
        size_t n = 0;
        LW_TRY(lw_list_dir(path, &list, &n));
        int rc = look_into(job, f, path, list, n);
        lw_list_free(&list, n);
        LW_TRY(rc);
    } else {
        f->archive = lw_strdup(path);
        if (!f->archive)
            return LW_ENOMEM;
    }
    job->size = job->opts.image_size ? job->opts.image_size : SIDE;
    job->labelled = job->flip = true;
    for (int c = 0; c < CLASSES; c++)
        LW_TRY(lw_data_job_class(job, names[c]));
    return plan_files(job, f);
}

static void cifar_clear(lw_data_job *job)
{
    cifar_files *f = job->priv;
    if (!f)
        return;
    lw_list_free(&f->train, f->n_train);
    lw_free(&f->test);
    lw_free(&f->archive);
    lw_free(&job->priv);
}

static int one_record(const lw_data_job *job, const uint8_t *record, uint8_t *dst)
{
    uint8_t rgb[PLANE * 3];
    for (int i = 0; i < PLANE; i++)
        for (int c = 0; c < 3; c++)
            rgb[3 * i + c] = record[1 + c * PLANE + i];
    return lw_data_fit(rgb, SIDE, SIDE, job->size, dst);
}

static int put_file(lw_data_job *job, lw_data_sink *sink, const char *what, const char *bytes,
                    size_t len)
{
    if (len == 0 || len % RECORD != 0)
        return lw_fail(
            LW_EFORMAT,
            "data '%s': %s: %zu bytes are not whole records of %d: the file is cut short or not "
            "CIFAR-10's binary version",
            job->spec, what, len, RECORD);
    int64_t n = (int64_t)(len / RECORD);
    if (n != USUAL_RECORDS)
        lw_log(LW_LOG_WARN, "data", "%s: %lld records, not the usual %d", what, (long long)n,
               USUAL_RECORDS);
    size_t row = (size_t)job->size * (size_t)job->size * 3;
    LW_CLEANUP(lw_free) uint8_t *pixels = lw_calloc(BLOCK, row);
    LW_CLEANUP(lw_free) int32_t *labels = lw_calloc(BLOCK, sizeof *labels);
    if (!pixels || !labels)
        return LW_ENOMEM;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t k = LW_MIN((int64_t)BLOCK, n - at);
        for (int64_t i = 0; i < k; i++) {
            const uint8_t *record = (const uint8_t *)bytes + (size_t)(at + i) * RECORD;
            if (record[0] >= CLASSES)
                return lw_fail(LW_EFORMAT,
                               "data '%s': %s: record %lld (byte %lld) has label %d, not 0..9: the "
                               "file is damaged",
                               job->spec, what, (long long)(at + i), (long long)(at + i) * RECORD,
                               record[0]);
            labels[i] = record[0];
            LW_TRY(one_record(job, record, pixels + (size_t)i * row));
        }
        LW_TRY(lw_data_sink_put(sink, pixels, labels, k));
    }
    return 0;
}

static int put_path(lw_data_job *job, lw_data_sink *sink, const char *path)
{
    LW_CLEANUP(lw_free) char *bytes = NULL;
    size_t len = 0;
    LW_TRY(lw_file_read(path, MAX_FILE, &bytes, &len));
    return put_file(job, sink, path, bytes, len);
}

/* ---- archives: members may come in any order, so they are read first ---- */

typedef struct member {
    char *name, *bytes;
    size_t len;
} member;

typedef struct member_list {
    member *at;
    size_t n, cap;
} member_list;

static void members_clear(member_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        lw_free(&l->at[i].name);
        lw_free(&l->at[i].bytes);
    }
    lw_free(&l->at);
}

static int take_member(void *arg, lw_archive *a, const lw_archive_member *m)
{
    member_list *l = arg;
    const char *slash = strrchr(m->name, '/'), *base = slash ? slash + 1 : m->name;
    if (m->raw || (!is_train(base) && !lw_str_eq(base, TEST_FILE)))
        return 0;
    LW_TRY(lw_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at));
    member *to = &l->at[l->n];
    to->name = lw_strdup(base);
    if (!to->name)
        return LW_ENOMEM;
    l->n++;
    return lw_archive_read_all(a, MAX_FILE, &to->bytes, &to->len);
}

static int by_member_name(const void *a, const void *b)
{
    return strcmp(((const member *)a)->name, ((const member *)b)->name);
}

static int build_archive(lw_data_job *job, lw_data_sink *sink, const char *path)
{
    LW_CLEANUP(members_clear) member_list l = {0};
    int rc = lw_archive_each(path, take_member, &l);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    if (l.n > 1)
        qsort(l.at, l.n, sizeof *l.at, by_member_name); /* "test_batch.bin" comes last */
    if (l.n < 2 || !is_train(l.at[0].name) || is_train(l.at[l.n - 1].name))
        return lw_fail(LW_EFORMAT, "data '%s': %s does not hold data_batch_*.bin and " TEST_FILE,
                       job->spec, path);
    for (size_t i = 0; i < l.n; i++) {
        if (!is_train(l.at[i].name) && i + 1 < l.n)
            return lw_fail(LW_EFORMAT, "data '%s': %s holds %s twice", job->spec, path,
                           l.at[i].name);
        if (i + 1 == l.n)
            lw_data_sink_heldout(sink);
        LW_CLEANUP(lw_str_clear) lw_str what = {0};
        lw_str_addf(&what, "%s: %s", path, l.at[i].name);
        LW_TRY(put_file(job, sink, lw_str_c(&what), l.at[i].bytes, l.at[i].len));
    }
    return 0;
}

static int cifar_build(lw_data_job *job, lw_data_sink *sink)
{
    const cifar_files *f = job->priv;
    if (f->archive)
        return build_archive(job, sink, f->archive);
    for (size_t i = 0; i < f->n_train; i++)
        LW_TRY(put_path(job, sink, f->train[i]));
    lw_data_sink_heldout(sink);
    return put_path(job, sink, f->test);
}

const lw_data_source lw_data_source_cifar = {
    .info = {"cifar10", "cifar10:PATH",
             "CIFAR-10, binary version: a folder with data_batch_*.bin and test_batch.bin, or a "
             "tar of them"},
    .plan = cifar_plan,
    .build = cifar_build,
    .clear = cifar_clear,
};
