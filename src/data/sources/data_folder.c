/* SPDX-License-Identifier: Apache-2.0 */
/* `folder`: PNG and JPEG files, class = parent folder, decoded and cut to squares once. */
#include <stdio.h>
#include <string.h>

#include "data/sources/data_folder.h"
#include "data/sources/data_source.h"
#include "formats/formats.h"

enum { BLOCK = 256 };

static int folder_plan(lw_data_job *job)
{
    const char *dir;
    LW_TRY(lw_data_job_path(job, &dir));
    LW_TRY(lw_data_job_place(job, dir));
    if (!lw_path_is_dir(dir))
        return lw_fail(LW_EIO, "data '%s': %s is not a folder", job->spec, dir);
    folder_list *l = job->priv = lw_calloc(1, sizeof *l);
    if (!l)
        return LW_ENOMEM;
    int rc = lw_folder_list(dir, l);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    job->size = job->opts.image_size;
    job->flip = true;
    job->labelled = l->n_classes > 1;
    for (size_t c = 0; c < l->n_classes; c++)
        LW_TRY(lw_data_job_class(job, *l->classes[c] ? l->classes[c] : "."));
    for (size_t i = 0; i < l->n; i++) {
        LW_TRY(lw_data_job_file(job, l->at[i].path));
        lw_str_addf(&job->state, "%d %d\n", l->at[i].label, l->at[i].heldout);
    }
    return 0;
}

static void folder_clear(lw_data_job *job)
{
    if (job->priv)
        lw_folder_list_clear(job->priv);
    lw_free(&job->priv);
}

/* Files first..first+n of the list, each by one task; what failed is kept by file, for the caller's
 * thread. */
typedef struct folder_block {
    const lw_data_job *job;
    const folder_file *files;
    size_t row;
    uint8_t *pixels;
    int32_t labels[BLOCK];
    int rc[BLOCK];
    char reason[BLOCK][256];
} folder_block;

static int decode_one(const lw_data_job *job, const char *path, uint8_t *dst)
{
    LW_CLEANUP(lw_image_clear) lw_image im = {0};
    LW_TRY(lw_image_load(path, &im));
    return lw_data_fit(im.rgb, im.height, im.width, job->size, dst);
}

static void decode_task(void *arg, int64_t task, int worker)
{
    folder_block *b = arg;
    (void)worker;
    b->labels[task] = b->files[task].label;
    b->rc[task] = decode_one(b->job, b->files[task].path, b->pixels + (size_t)task * b->row);
    if (b->rc[task] < 0)
        snprintf(b->reason[task], sizeof b->reason[task], "%s", lw_errmsg());
}

static int block_new(lw_data_job *job, folder_block **out)
{
    LW_CLEANUP(lw_free) folder_block *b = lw_calloc(1, sizeof *b);
    if (!b)
        return LW_ENOMEM;
    b->job = job;
    b->row = (size_t)job->size * (size_t)job->size * 3;
    b->pixels = lw_calloc(BLOCK, b->row);
    if (!b->pixels)
        return LW_ENOMEM;
    *out = lw_steal(&b);
    return 0;
}

static void block_free(folder_block **pp)
{
    if (*pp)
        lw_free(&(*pp)->pixels);
    lw_free(pp);
}

static size_t decode_block(folder_block *b, const folder_list *l, size_t at, size_t end)
{
    size_t n = LW_MIN((size_t)BLOCK, end - at);
    b->files = l->at + at;
    lw_pool_run(b->job->opts.pool, (int64_t)n, decode_task, b);
    return n;
}

static int put_range(lw_data_job *job, lw_data_sink *sink, folder_block *b, size_t begin,
                     size_t end)
{
    const folder_list *l = job->priv;
    for (size_t at = begin, n; at < end; at += n) {
        n = decode_block(b, l, at, end);
        for (size_t i = 0; i < n; i++)
            if (b->rc[i] < 0)
                return lw_fail(b->rc[i],
                               "data '%s': %s (`leeway data check` lists every such file)",
                               job->spec, b->reason[i]);
        LW_TRY(lw_data_sink_put(sink, b->pixels, b->labels, (int64_t)n));
    }
    return 0;
}

static int folder_build(lw_data_job *job, lw_data_sink *sink)
{
    const folder_list *l = job->priv;
    LW_CLEANUP(block_free) folder_block *b = NULL;
    LW_TRY(block_new(job, &b));
    LW_TRY(put_range(job, sink, b, 0, l->n_train));
    lw_data_sink_heldout(sink);
    return put_range(job, sink, b, l->n_train, l->n);
}

static int folder_scan(lw_data_job *job, lw_data_report *report)
{
    const folder_list *l = job->priv;
    LW_CLEANUP(block_free) folder_block *b = NULL;
    LW_TRY(block_new(job, &b));
    for (size_t at = 0, n; at < l->n; at += n) {
        n = decode_block(b, l, at, l->n);
        report->files_read += (int64_t)n;
        for (size_t i = 0; i < n; i++)
            if (b->rc[i] < 0)
                LW_TRY(lw_data_report_add(report, b->files[i].path, b->reason[i]));
    }
    return 0;
}

const lw_data_source lw_data_source_folder = {
    .info = {"folder", "folder:DIR",
             "PNG and JPEG files; class = parent folder; DIR/train with DIR/test (or val), or "
             "every tenth held out"},
    .plan = folder_plan,
    .settle = lw_folder_settle,
    .build = folder_build,
    .scan = folder_scan,
    .clear = folder_clear,
};
