/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the pictures of a source to rows of the cache: in blocks, each picture of a block by one
 * task. What a task could not read is kept by picture, so that what is said does not depend on
 * which thread was first.
 */
#include <stdio.h>
#include <string.h>

#include "data/data_degrade.h"
#include "data/sources/data_source.h"
#include "formats/formats.h"

#define BLOCK_BYTES ((size_t)64 << 20)
enum { BLOCK_ROWS = 256, REASON = 256 };

typedef struct block {
    const lw_data_job *job;
    const lw_data_pictures *from;
    lw_preparation preparation;
    size_t row;
    int64_t n, cap;
    uint8_t *pixels; /* [cap][row] */
    int64_t index[BLOCK_ROWS], numbers[BLOCK_ROWS];
    int32_t labels[BLOCK_ROWS];
    const char *names[BLOCK_ROWS];
    int rc[BLOCK_ROWS];
    char reason[BLOCK_ROWS][REASON];
} block;

static void block_free(block **pp)
{
    if (*pp)
        lw_free(&(*pp)->pixels);
    lw_free(pp);
}

/* Large rows: fewer at once, but one for each thread. */
static int block_new(const lw_data_job *job, const lw_data_pictures *from, block **out)
{
    LW_CLEANUP(block_free) block *b = lw_calloc(1, sizeof *b);
    if (!b)
        return LW_ENOMEM;
    b->job = job;
    b->from = from;
    b->preparation = job->opts.preparation ? *job->opts.preparation : lw_preparation_square(job->h);
    if (job->opts.whole) {
        b->preparation.resize_w = b->preparation.width = job->w;
        b->preparation.fit = LW_FIT_SQUASH;
    }
    b->preparation.channels = job->channels;
    b->row = lw_data_job_row(job);
    int64_t threads = job->opts.pool ? lw_pool_size(job->opts.pool) : 1;
    b->cap = LW_MAX((int64_t)(BLOCK_BYTES / b->row), threads);
    b->cap = LW_MIN(LW_MIN(b->cap, from->n), (int64_t)BLOCK_ROWS);
    b->pixels = lw_calloc((size_t)b->cap, b->row);
    if (!b->pixels)
        return LW_ENOMEM;
    *out = lw_steal(&b);
    return 0;
}

static int make_row(block *b, int64_t k)
{
    LW_CLEANUP(lw_raster_clear) lw_raster im = {0};
    LW_TRY(b->from->get(b->from->from, b->index[k], &im, &b->labels[k]));
    if (b->job->opts.degradation)
        LW_TRY(lw_degrade(b->job->opts.degradation, b->job->opts.seed, b->numbers[k], &im));
    return lw_prepare_pixels(&b->preparation, im, b->pixels + (size_t)k * b->row);
}

static void row_task(void *arg, int64_t task, int worker)
{
    block *b = arg;
    (void)worker;
    b->rc[task] = make_row(b, task);
    if (b->rc[task] < 0)
        snprintf(b->reason[task], REASON, "%s", lw_errmsg());
}

/* Row i could not be made. */
static int refuse(const block *b, lw_data_sink *sink, int64_t i)
{
    const lw_data_job *job = b->job;
    bool broken = b->rc[i] == LW_EFORMAT || b->rc[i] == LW_EUNSUPPORTED;
    if (job->opts.on_error == LW_ON_ERROR_SKIP && broken) {
        lw_log(LW_LOG_WARN, "data", "%s: left out: %s", job->spec, b->reason[i]);
        lw_data_sink_skip(sink, b->reason[i]);
        return 0;
    }
    const char *more = " (`leeway data check` lists every such file)";
    return lw_fail(b->rc[i], "data '%s': %s%s", job->spec, b->reason[i],
                   job->source->scan && broken ? more : "");
}

static int put_rows(block *b, lw_data_sink *sink)
{
    int64_t n = 0;
    for (int64_t i = 0; i < b->n; i++) {
        if (b->rc[i] < 0) {
            LW_TRY(refuse(b, sink, i));
            continue;
        }
        if (n < i)
            memcpy(b->pixels + (size_t)n * b->row, b->pixels + (size_t)i * b->row, b->row);
        b->labels[n] = b->labels[i];
        b->numbers[n] = b->numbers[i];
        b->names[n++] = b->from->name ? b->from->name(b->from->from, b->index[i]) : NULL;
    }
    return lw_data_sink_put(sink, &(lw_data_block){.n = n,
                                                   .pixels = b->pixels,
                                                   .labels = b->labels,
                                                   .numbers = b->numbers,
                                                   .names = b->from->name ? b->names : NULL});
}

static int report_rows(block *b, lw_data_report *report)
{
    for (int64_t i = 0; i < b->n; i++)
        if (b->rc[i] < 0)
            LW_TRY(lw_data_report_add(report, b->from->path(b->from->from, b->index[i]),
                                      b->reason[i]));
    report->files_read += b->n;
    return 0;
}

static int flush(block *b, lw_data_sink *sink, lw_data_report *report)
{
    if (b->n == 0)
        return 0;
    lw_pool_run(b->job->opts.pool, b->n, row_task, b);
    int rc = sink ? put_rows(b, sink) : report_rows(b, report);
    b->n = 0;
    return rc;
}

static int run(const lw_data_job *job, const lw_data_pictures *p, lw_data_sink *sink,
               lw_data_report *report)
{
    LW_CLEANUP(block_free) block *b = NULL;
    if (p->n == 0)
        return 0;
    LW_TRY(block_new(job, p, &b));
    for (int64_t i = 0; i < p->n; i++) {
        if (sink && !lw_data_sink_wants(sink, &b->numbers[b->n]))
            continue;
        b->index[b->n++] = i;
        if (b->n == b->cap)
            LW_TRY(flush(b, sink, report));
    }
    return flush(b, sink, report);
}

int lw_data_fill(const lw_data_job *job, lw_data_sink *sink, const lw_data_pictures *p)
{
    return run(job, p, sink, NULL);
}

int lw_data_scan(const lw_data_job *job, const lw_data_pictures *p, lw_data_report *report)
{
    return run(job, p, NULL, report);
}
