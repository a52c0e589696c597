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

enum { SIDE = 32, PLANE = SIDE * SIDE, CLASSES = 10 };

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
    lw_data_job_size(job, SIDE);
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

/* Records of a file. */
typedef struct records {
    const char *what;
    const uint8_t *bytes;
} records;

static int get_record(const void *from, int64_t i, lw_raster *im, int32_t *label)
{
    const records *r = from;
    const uint8_t *record = r->bytes + (size_t)i * CIFAR_RECORD;
    if (record[0] >= CLASSES)
        return lw_fail(LW_EFORMAT,
                       "%s: record %lld (byte %lld) has label %d, not 0..9: the file is damaged",
                       r->what, (long long)i, (long long)i * CIFAR_RECORD, record[0]);
    LW_TRY(lw_raster_init(im, SIDE, SIDE, 3));
    *label = record[0];
    for (int k = 0; k < PLANE; k++)
        for (int c = 0; c < 3; c++)
            im->at[3 * k + c] = record[1 + c * PLANE + k];
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
    const records r = {b->what, (const uint8_t *)b->bytes};
    const lw_data_pictures all = {
        .n = (int64_t)(b->len / CIFAR_RECORD), .from = &r, .get = get_record};
    LW_TRY(lw_data_fill(job, sink, &all));
    lw_free(&b->bytes);
    return 0;
}

static int cifar_build(lw_data_job *job, lw_data_sink *sink)
{
    cifar_set *set = job->priv;
    int64_t rows[2] = {0, 0};
    LW_TRY(lw_cifar_load(job, set));
    for (size_t i = 0; i < set->n; i++)
        rows[i + 1 == set->n] += (int64_t)(set->at[i].len / CIFAR_RECORD);
    LW_TRY(lw_data_sink_expect(sink, rows[0], rows[1]));
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
