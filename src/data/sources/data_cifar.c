/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CIFAR-10 in its binary layout: records of one label byte and 32x32 red, green, blue planes; files
 * data_batch_*.bin (training, in order of name) and test_batch.bin (held out), in a directory or an
 * archive.
 */
#include <string.h>

#include "data/sources/data_cifar.h"
#include "data/sources/data_source.h"
#include "formats/formats.h"

enum { SIDE = 32, PLANE = SIDE * SIDE, CLASSES = 10, BLOCK = 1000 };

static int cifar_plan(lw_data_job *job)
{
    static const char *const names[CLASSES] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                               "dog",      "frog",       "horse", "ship", "truck"};
    const char *path;
    LW_TRY(lw_data_job_path(job, &path));
    LW_TRY(lw_data_job_place(job, path));
    cifar_set *set = job->priv = lw_calloc(1, sizeof *set);
    if (!set)
        return LW_ENOMEM;
    LW_TRY(lw_cifar_find(job, path, set));
    job->size = job->opts.image_size ? job->opts.image_size : SIDE;
    job->labelled = job->flip = true;
    for (int c = 0; c < CLASSES; c++)
        LW_TRY(lw_data_job_class(job, names[c]));
    return 0;
}

static void cifar_clear(lw_data_job *job)
{
    if (job->priv)
        lw_cifar_clear(job->priv);
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
    int64_t n = (int64_t)(len / CIFAR_RECORD);
    size_t row = (size_t)job->size * (size_t)job->size * 3;
    LW_CLEANUP(lw_free) uint8_t *pixels = lw_calloc(BLOCK, row);
    LW_CLEANUP(lw_free) int32_t *labels = lw_calloc(BLOCK, sizeof *labels);
    if (!pixels || !labels)
        return LW_ENOMEM;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t k = LW_MIN((int64_t)BLOCK, n - at);
        for (int64_t i = 0; i < k; i++) {
            const uint8_t *record = (const uint8_t *)bytes + (size_t)(at + i) * CIFAR_RECORD;
            if (record[0] >= CLASSES)
                return lw_fail(LW_EFORMAT,
                               "data '%s': %s: record %lld (byte %lld) has label %d, not 0..9: the "
                               "file is damaged",
                               job->spec, what, (long long)(at + i),
                               (long long)(at + i) * CIFAR_RECORD, record[0]);
            labels[i] = record[0];
            LW_TRY(one_record(job, record, pixels + (size_t)i * row));
        }
        LW_TRY(lw_data_sink_put(sink, pixels, labels, k));
    }
    return 0;
}

/* Two batches that are the same are one batch twice. Small sets may be anything. */
static int check_twice(const lw_data_job *job, const cifar_set *set, size_t i)
{
    for (size_t k = 0; set->full && k < i; k++)
        if (set->at[k].hash == set->at[i].hash)
            return lw_fail(LW_EFORMAT,
                           "data '%s': %s holds the same records as %s: a batch is there twice, "
                           "another is missing",
                           job->spec, set->at[i].what, set->at[k].name);
    return 0;
}

static int put_batch(lw_data_job *job, lw_data_sink *sink, cifar_set *set, size_t i)
{
    cifar_batch *b = &set->at[i];
    if (!b->bytes)
        LW_TRY(lw_file_read(b->what, CIFAR_BATCH * CIFAR_RECORD, &b->bytes, &b->len));
    LW_TRY(lw_cifar_whole(job, b)); /* a file may have changed since it was looked at */
    b->hash = lw_hash64(b->bytes, b->len);
    LW_TRY(check_twice(job, set, i));
    LW_TRY(put_file(job, sink, b->what, b->bytes, b->len));
    lw_free(&b->bytes);
    return 0;
}

static int cifar_build(lw_data_job *job, lw_data_sink *sink)
{
    cifar_set *set = job->priv;
    LW_TRY(lw_cifar_load(job, set));
    for (size_t i = 0; i < set->n; i++) {
        if (i + 1 == set->n)
            lw_data_sink_heldout(sink);
        LW_TRY(put_batch(job, sink, set, i));
    }
    return 0;
}

const lw_data_source lw_data_source_cifar = {
    .info = {"cifar10", "cifar10:PATH",
             "CIFAR-10, binary version: a folder with data_batch_*.bin and test_batch.bin, or a "
             "tar of them"},
    .plan = cifar_plan,
    .build = cifar_build,
    .clear = cifar_clear,
};
