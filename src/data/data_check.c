/* SPDX-License-Identifier: Apache-2.0 */
/* Counting and measuring a dataset; when it cannot be opened, finding every file that is the
 * reason. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/sources/data_source.h"

void lw_data_report_clear(lw_data_report *r)
{
    lw_data_close(&r->set);
    lw_free(&r->class_counts);
    for (size_t i = 0; i < r->n_problems; i++) {
        lw_free(&r->problems[i].path);
        lw_free(&r->problems[i].reason);
    }
    lw_free(&r->problems);
    *r = (lw_data_report){0};
}

/* From exact histograms of bytes, so that no sum depends on an order. */
static int measure(lw_data_report *r)
{
    const lw_dataset *d = r->set;
    LW_CLEANUP(lw_free) int64_t *bins = lw_calloc((size_t)d->channels * 256, sizeof *bins);
    r->class_counts = lw_calloc((size_t)d->classes, sizeof *r->class_counts);
    if (!bins || !r->class_counts)
        return LW_ENOMEM;
    int64_t pixels = d->n * d->h * d->w;
    for (int64_t i = 0; i < pixels; i++)
        for (int c = 0; c < d->channels; c++)
            bins[c * 256 + d->pixels[d->channels * i + c]]++;
    for (int64_t i = 0; i < d->n; i++)
        r->class_counts[d->labels[i]]++;
    for (int c = 0; c < d->channels; c++) {
        double sum = 0, square = 0;
        int lo = 255, hi = 0;
        for (int v = 0; v < 256; v++) {
            double x = v / 127.5 - 1, n = (double)bins[c * 256 + v];
            sum += n * x;
            square += n * x * x;
            lo = n > 0 && v < lo ? v : lo;
            hi = n > 0 && v > hi ? v : hi;
        }
        r->mean[c] = sum / (double)pixels;
        r->sd[c] = sqrt(LW_MAX(square / (double)pixels - r->mean[c] * r->mean[c], 0.0));
        r->min[c] = lo / 127.5 - 1;
        r->max[c] = hi / 127.5 - 1;
    }
    return 0;
}

typedef struct row_hash {
    uint64_t hash;
    int64_t row;
} row_hash;

static int by_hash_then_row(const void *a, const void *b)
{
    const row_hash *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int find_duplicates(lw_data_report *r)
{
    const lw_dataset *d = r->set;
    size_t bytes = (size_t)lw_data_row_size(d);
    LW_CLEANUP(lw_free) row_hash *h = lw_calloc((size_t)d->n, sizeof *h);
    if (!h)
        return LW_ENOMEM;
    for (int64_t i = 0; i < d->n; i++)
        h[i] = (row_hash){lw_hash64(d->pixels + (size_t)i * bytes, bytes), i};
    qsort(h, (size_t)d->n, sizeof *h, by_hash_then_row);
    r->duplicate_a = r->duplicate_b = -1;
    for (int64_t i = 1, first = 0; i < d->n; i++) {
        if (h[i].hash != h[first].hash) {
            first = i;
            continue;
        }
        if (memcmp(d->pixels + (size_t)h[i].row * bytes, d->pixels + (size_t)h[first].row * bytes,
                   bytes) != 0)
            continue;
        r->duplicates++;
        if (r->duplicate_b < 0 || h[i].row < r->duplicate_b) {
            r->duplicate_a = h[first].row;
            r->duplicate_b = h[i].row;
        }
    }
    return 0;
}

/* The data is damaged: the message of opening is a problem, or the source looks at every file. */
static int find_problems(lw_data_job *job, lw_data_report *out)
{
    LW_CLEANUP(lw_free) char *reason = lw_strdup(lw_errmsg());
    if (!reason)
        return LW_ENOMEM;
    if (job->source && job->source->scan) {
        LW_TRY(lw_data_job_settle(job));
        LW_TRY(job->source->scan(job, out));
    }
    if (out->n_problems == 0)
        LW_TRY(lw_data_report_add(out, job->spec, reason));
    lw_errclear();
    return 0;
}

int lw_data_check(const char *spec, const lw_data_opts *opts, lw_data_report *out)
{
    LW_CLEANUP(lw_data_job_clear) lw_data_job job = {0};
    *out = (lw_data_report){.duplicate_a = -1, .duplicate_b = -1};
    int rc = lw_data_job_init(&job, spec, opts);
    if (rc == LW_EFORMAT) { /* it could not even be planned: nothing to look at file by file */
        LW_TRY(lw_data_report_add(out, spec, lw_errmsg()));
        lw_errclear();
        return 0;
    }
    LW_TRY(rc);
    job.thorough = true;
    rc = lw_data_job_open(&job, &out->set);
    if (rc == LW_EFORMAT || (rc == LW_EUNSUPPORTED && job.source->scan))
        return find_problems(&job, out);
    LW_TRY(rc);
    if (job.damaged.len > 0)
        LW_TRY(lw_data_report_add(out, spec, lw_str_c(&job.damaged)));
    LW_TRY(measure(out));
    return find_duplicates(out);
}
