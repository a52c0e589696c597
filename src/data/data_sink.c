/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoded rows as they come, into one image: header page, pixels, labels, hashes, texts. The image
 * is a file being written (nothing of it stays in memory but the tail) or a block of memory.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "data/sources/data_source.h"

struct lw_data_sink {
    const lw_data_job *job;
    int fd; /* -1: memory */
    uint8_t *mem;
    size_t len, cap; /* of mem; len also counts file bytes */
    size_t row_bytes;
    int32_t *labels; /* [n] */
    size_t labels_cap;
    int64_t n, n_train;              /* n_train -1: no held-out rows yet */
    int64_t offered[LW_SPLIT_COUNT]; /* pictures the source has had so far */
    uint64_t *hashes;                /* [n_blocks], the last one still growing */
    size_t n_blocks, hashes_cap;
    int64_t block_rows;
    uint64_t content;
    bool write_failed;
};

static int emit(lw_data_sink *s, const void *bytes, size_t n)
{
    if (s->fd < 0) {
        LW_TRY(lw_grow(&s->mem, &s->cap, s->len + n, 1));
        if (n > 0)
            memcpy(s->mem + s->len, bytes, n);
        s->len += n;
        return 0;
    }
    const char *p = bytes;
    for (size_t left = n; left > 0;) {
        ssize_t k = write(s->fd, p, left);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0) {
            s->write_failed = true;
            return lw_fail(lw_errno_code(errno), "data cache: cannot write: %s", strerror(errno));
        }
        p += k;
        left -= (size_t)k;
    }
    s->len += n;
    return 0;
}

static int pad_to(lw_data_sink *s, size_t align)
{
    static const char zeros[LW_DATA_PIXELS_AT];
    return emit(s, zeros, LW_ROUND_UP(s->len, align) - s->len);
}

int lw_data_sink_new(const lw_data_job *job, int fd, lw_data_sink **out)
{
    LW_CLEANUP(lw_data_sink_free) lw_data_sink *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    static const char page[LW_DATA_PIXELS_AT];
    s->job = job;
    s->fd = fd;
    s->row_bytes = (size_t)job->h * (size_t)job->w * 3;
    s->block_rows = lw_data_block_rows(job->h, job->w);
    s->n_train = -1;
    int rc = emit(s, page, sizeof page);
    /* Keep a failing sink for the caller, who asks it whether writing was what failed. */
    *out = lw_steal(&s);
    return rc;
}

void lw_data_sink_free(lw_data_sink **pp)
{
    if (!*pp)
        return;
    lw_free(&(*pp)->mem);
    lw_free(&(*pp)->labels);
    lw_free(&(*pp)->hashes);
    lw_free(pp);
}

bool lw_data_sink_wants(lw_data_sink *s)
{
    const lw_data_opts *o = &s->job->opts;
    lw_split split = s->n_train < 0 ? LW_SPLIT_TRAIN : LW_SPLIT_HELDOUT;
    int64_t i = s->offered[split]++;
    if (!s->job->ranged)
        return true;
    return split == o->split && i >= o->first && (o->count == 0 || i - o->first < o->count);
}

int lw_data_sink_put(lw_data_sink *s, const uint8_t *pixels, const int32_t *labels, int64_t k)
{
    if (lw_observe_stop(s->job->opts.obs))
        return lw_fail(LW_ESTOPPED, "data '%s': interrupted after %lld decoded pictures",
                       s->job->spec, (long long)s->n);
    LW_TRY(lw_grow(&s->labels, &s->labels_cap, (size_t)(s->n + k), sizeof *labels));
    LW_TRY(emit(s, pixels, (size_t)k * s->row_bytes));
    for (int64_t i = 0; i < k; i++) {
        uint64_t row = lw_hash64(pixels + (size_t)i * s->row_bytes, s->row_bytes);
        if (s->n % s->block_rows == 0) {
            LW_TRY(lw_grow(&s->hashes, &s->hashes_cap, s->n_blocks + 1, sizeof row));
            s->hashes[s->n_blocks++] = 0;
        }
        s->hashes[s->n_blocks - 1] = lw_data_fold(s->hashes[s->n_blocks - 1], row);
        s->content = lw_data_content(s->content, row, labels[i]);
        s->labels[s->n++] = labels[i];
    }
    return 0;
}

void lw_data_sink_heldout(lw_data_sink *s)
{
    LW_ASSERT(s->n_train < 0, "data source %s cut twice", s->job->source->info.name);
    s->n_train = s->n;
}

static int put_header(lw_data_sink *s, const lw_data_header *h)
{
    if (s->fd < 0) {
        memcpy(s->mem, h, sizeof *h);
        return 0;
    }
    if (pwrite(s->fd, h, sizeof *h, 0) != (ssize_t)sizeof *h || fsync(s->fd) != 0) {
        s->write_failed = true;
        return lw_fail(lw_errno_code(errno), "data cache: cannot write: %s", strerror(errno));
    }
    return 0;
}

/* What stands behind the pixels, and where in it the hashes and the texts begin. */
static void add_tail(const lw_data_sink *s, lw_str *tail, size_t *hashes, size_t *texts)
{
    static const char zeros[8];
    const lw_data_job *job = s->job;
    LW_CLEANUP(lw_str_clear) lw_str title = {0};
    lw_data_job_title(job, &title);
    lw_str_add_n(tail, (const char *)s->labels, (size_t)s->n * sizeof *s->labels);
    lw_str_add_n(tail, zeros, LW_ROUND_UP(tail->len, 8u) - tail->len);
    *hashes = tail->len;
    lw_str_add_n(tail, (const char *)s->hashes, s->n_blocks * sizeof *s->hashes);
    *texts = tail->len;
    lw_str_add_n(tail, job->names.s, job->names.len);
    lw_str_add_n(tail, lw_str_c(&title), title.len + 1);
    lw_str_add_n(tail, lw_str_c(&job->note), job->note.len + 1);
    tail->failed |= title.failed;
}

int lw_data_sink_finish(lw_data_sink *s, uint64_t fingerprint)
{
    const lw_data_job *job = s->job;
    int64_t n_train = s->n_train < 0 ? s->n : s->n_train;
    if (job->ranged)
        LW_TRY(lw_data_range_check(job, s->offered[job->opts.split]));
    LW_TRY(pad_to(s, 64));
    LW_CLEANUP(lw_str_clear) lw_str tail = {0};
    size_t hashes = 0, texts = 0;
    add_tail(s, &tail, &hashes, &texts);
    if (tail.failed)
        return lw_fail(LW_ENOMEM, "data '%s': no memory for its labels", job->spec);
    lw_data_header h = {
        .version = LW_DATA_VERSION,
        .header_bytes = sizeof h,
        .fingerprint = fingerprint,
        .content = s->content,
        .n_train = n_train,
        .n_heldout = s->n - n_train,
        .split_rows = job->ranged ? s->offered[job->opts.split] : 0,
        .height = job->h,
        .width = job->w,
        .channels = 3,
        .classes = job->classes,
        .labelled = job->labelled,
        .flip = job->flip,
        .pixels_at = LW_DATA_PIXELS_AT,
        .labels_at = s->len,
        .hashes_at = s->len + hashes,
        .texts_at = s->len + texts,
        .texts_bytes = tail.len - texts,
        .total_bytes = s->len + tail.len,
        .tail_hash = lw_hash64(lw_str_c(&tail), tail.len),
    };
    memcpy(h.magic, LW_DATA_MAGIC, sizeof h.magic);
    h.header_hash = lw_hash64(&h, offsetof(lw_data_header, header_hash));
    LW_TRY(emit(s, lw_str_c(&tail), tail.len));
    return put_header(s, &h);
}

bool lw_data_sink_write_failed(const lw_data_sink *s)
{
    return s->write_failed;
}

uint8_t *lw_data_sink_take(lw_data_sink *s, size_t *size)
{
    *size = s->len;
    return lw_steal(&s->mem);
}
