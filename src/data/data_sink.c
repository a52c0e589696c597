/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoded rows as they come, into one image: header page, pixels, labels, hashes, texts. The image
 * is a file being written (nothing of it stays in memory but the tail) or a block of memory.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "data/sources/data_source.h"

struct lw_data_sink {
    const lw_data_job *job;
    int fd; /* -1: memory */
    const char *path;
    uint8_t *mem;
    size_t len, cap; /* of mem; len also counts file bytes */
    size_t row_bytes;
    int64_t expected[2], offered[2]; /* pictures of the source, by split: of all, so far */
    int64_t n, n_train;              /* rows kept; n_train -1: no held-out rows yet */
    int32_t *labels;                 /* [n] */
    int64_t *numbers;                /* [n] */
    uint64_t *name_at;               /* [n], of files */
    lw_str names;
    size_t labels_cap, numbers_cap, name_at_cap;
    int64_t skipped;
    char reason[512]; /* for the first of them */
    uint64_t *hashes; /* [n_blocks], the last one still growing */
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

int lw_data_sink_new(const lw_data_job *job, int fd, const char *path, lw_data_sink **out)
{
    LW_CLEANUP(lw_data_sink_free) lw_data_sink *s = lw_calloc(1, sizeof *s);
    if (!s)
        return LW_ENOMEM;
    static const char page[LW_DATA_PIXELS_AT];
    s->job = job;
    s->fd = fd;
    s->path = path;
    s->row_bytes = lw_data_job_row(job);
    s->block_rows = lw_data_block_rows(s->row_bytes);
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
    lw_free(&(*pp)->numbers);
    lw_free(&(*pp)->name_at);
    lw_str_clear(&(*pp)->names);
    lw_free(&(*pp)->hashes);
    lw_free(pp);
}

/* Pictures of the split asked for. */
static int64_t have(const lw_data_sink *s)
{
    lw_split split = s->job->opts.split;
    return split == LW_SPLIT_ALL ? s->expected[0] + s->expected[1] : s->expected[split];
}

static int64_t asked_for(const lw_data_sink *s)
{
    const lw_data_opts *o = &s->job->opts;
    if (!s->job->ranged)
        return s->expected[0] + s->expected[1];
    int64_t all = o->count ? o->count : have(s) - o->first;
    return o->num_images ? LW_MIN(o->num_images, all) : all;
}

/* Hours of decoding must not end in a full disk. */
static int check_room(lw_data_sink *s)
{
    char need[32], room[32];
    int64_t rows = asked_for(s);
    double bytes = (double)rows * (double)s->row_bytes;
    LW_CLEANUP(lw_str_clear) lw_str what = {0};
    uint64_t left = lw_memory_total();
    bool disk = s->fd >= 0;
    if ((disk && lw_disk_free(s->path, &left) < 0) || bytes < (double)left) {
        lw_errclear();
        return 0;
    }
    lw_str_addf(&what, "%lld pictures of %dx%d take %s", (long long)rows, s->job->w, s->job->h,
                lw_fmt_bytes(need, bytes < 1e19 ? (uint64_t)bytes : UINT64_MAX));
    s->write_failed = disk;
    if (disk)
        return lw_fail(LW_EIO, "%s: %s, and %s are free there: set LW_CACHE to a folder with room",
                       s->path, lw_str_c(&what), lw_fmt_bytes(room, left));
    return lw_fail(LW_ENOMEM, "data '%s': %s, and this process may use %s of memory", s->job->spec,
                   lw_str_c(&what), lw_fmt_bytes(room, left));
}

int lw_data_sink_expect(lw_data_sink *s, int64_t n_train, int64_t n_heldout)
{
    s->expected[LW_SPLIT_TRAIN] = n_train;
    s->expected[LW_SPLIT_HELDOUT] = n_heldout;
    if (s->job->ranged)
        LW_TRY(lw_data_range_check(s->job, have(s)));
    return check_room(s);
}

bool lw_data_sink_wants(lw_data_sink *s, int64_t *number)
{
    const lw_data_job *job = s->job;
    lw_split split = s->n_train < 0 ? LW_SPLIT_TRAIN : LW_SPLIT_HELDOUT;
    int64_t i = *number = s->offered[split]++;
    if (!job->ranged)
        return true;
    if (job->opts.split == LW_SPLIT_ALL)
        i += split == LW_SPLIT_HELDOUT ? s->expected[LW_SPLIT_TRAIN] : 0;
    else if (job->opts.split != split)
        return false;
    return lw_data_range_has(job, have(s), i);
}

void lw_data_sink_skip(lw_data_sink *s, const char *reason)
{
    if (s->skipped++ == 0)
        snprintf(s->reason, sizeof s->reason, "%s", reason);
}

static int put_name(lw_data_sink *s, const char *name)
{
    LW_TRY(lw_grow(&s->name_at, &s->name_at_cap, (size_t)s->n + 1, sizeof *s->name_at));
    s->name_at[s->n] = s->names.len;
    lw_str_add_n(&s->names, name, strlen(name) + 1);
    return 0;
}

/* The row's hash joins that of its block and that of the content. */
static int put_hash(lw_data_sink *s, const uint8_t *pixels, int32_t label)
{
    uint64_t row = lw_hash64(pixels, s->row_bytes);
    if (s->n % s->block_rows == 0) {
        LW_TRY(lw_grow(&s->hashes, &s->hashes_cap, s->n_blocks + 1, sizeof row));
        s->hashes[s->n_blocks++] = 0;
    }
    s->hashes[s->n_blocks - 1] = lw_data_fold(s->hashes[s->n_blocks - 1], row);
    s->content = lw_data_content(s->content, row, label);
    return 0;
}

int lw_data_sink_put(lw_data_sink *s, const lw_data_block *b)
{
    size_t n = (size_t)(s->n + b->n);
    if (lw_observe_stop(s->job->opts.obs))
        return lw_fail(LW_ESTOPPED, "data '%s': interrupted after %lld decoded pictures",
                       s->job->spec, (long long)s->n);
    LW_TRY(lw_grow(&s->labels, &s->labels_cap, n, sizeof *s->labels));
    LW_TRY(lw_grow(&s->numbers, &s->numbers_cap, n, sizeof *s->numbers));
    LW_TRY(emit(s, b->pixels, (size_t)b->n * s->row_bytes));
    for (int64_t i = 0; i < b->n; i++) {
        LW_TRY(put_hash(s, b->pixels + (size_t)i * s->row_bytes, b->labels[i]));
        if (b->names)
            LW_TRY(put_name(s, b->names[i]));
        s->labels[s->n] = b->labels[i];
        s->numbers[s->n++] = b->numbers[i];
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

/* The name of row i begins at u64 [i] in the bytes behind the [n + 1] of them. */
static void add_names(const lw_data_sink *s, lw_str *tail)
{
    uint64_t end = s->names.len;
    if (!s->name_at)
        return;
    lw_str_add_n(tail, (const char *)s->name_at, (size_t)s->n * sizeof *s->name_at);
    lw_str_add_n(tail, (const char *)&end, sizeof end);
    lw_str_add_n(tail, s->names.s, s->names.len);
    tail->failed |= s->names.failed;
}

static void add_texts(const lw_data_sink *s, lw_str *tail)
{
    const lw_data_job *job = s->job;
    LW_CLEANUP(lw_str_clear) lw_str title = {0};
    LW_CLEANUP(lw_str_clear) lw_str note = {0};
    lw_data_job_title(job, &title);
    lw_str_add(&note, lw_str_c(&job->note));
    if (s->skipped)
        lw_str_addf(&note, "%s%lld picture%s cannot be read and %s left out; the first: %s",
                    note.len ? "; " : "", (long long)s->skipped, s->skipped == 1 ? "" : "s",
                    s->skipped == 1 ? "is" : "are", s->reason);
    lw_str_add_n(tail, job->names.s, job->names.len);
    lw_str_add_n(tail, lw_str_c(&title), title.len + 1);
    lw_str_add_n(tail, lw_str_c(&note), note.len + 1);
    tail->failed |= title.failed || note.failed;
}

/* What stands behind the pixels, and in the header where. */
static void add_tail(const lw_data_sink *s, lw_str *tail, lw_data_header *h)
{
    static const char zeros[8];
    h->labels_at = s->len;
    lw_str_add_n(tail, (const char *)s->labels, (size_t)s->n * sizeof *s->labels);
    lw_str_add_n(tail, zeros, LW_ROUND_UP(tail->len, 8u) - tail->len);
    h->hashes_at = s->len + tail->len;
    lw_str_add_n(tail, (const char *)s->hashes, s->n_blocks * sizeof *s->hashes);
    h->numbers_at = s->len + tail->len;
    lw_str_add_n(tail, (const char *)s->numbers, (size_t)s->n * sizeof *s->numbers);
    h->names_at = s->len + tail->len;
    add_names(s, tail);
    h->texts_at = s->len + tail->len;
    h->names_bytes = h->texts_at - h->names_at;
    add_texts(s, tail);
    h->total_bytes = s->len + tail->len;
    h->texts_bytes = h->total_bytes - h->texts_at;
}

int lw_data_sink_finish(lw_data_sink *s, uint64_t fingerprint)
{
    const lw_data_job *job = s->job;
    int64_t n_train = s->n_train < 0 ? s->n : s->n_train;
    if (s->n == 0 && s->skipped > 0)
        return lw_fail(LW_EFORMAT, "data '%s': none of %lld pictures can be read; the first: %s",
                       job->spec, (long long)s->skipped, s->reason);
    LW_TRY(pad_to(s, 64));
    LW_CLEANUP(lw_str_clear) lw_str tail = {0};
    lw_data_header h = {
        .version = LW_DATA_VERSION,
        .header_bytes = sizeof h,
        .fingerprint = fingerprint,
        .content = s->content,
        .n_train = n_train,
        .n_heldout = s->n - n_train,
        .split_rows = job->ranged ? have(s) : 0,
        .skipped = s->skipped,
        .height = job->h,
        .width = job->w,
        .channels = job->channels,
        .classes = job->classes,
        .labelled = job->labelled,
        .flip = job->flip,
        .pixels_at = LW_DATA_PIXELS_AT,
    };
    add_tail(s, &tail, &h);
    if (tail.failed)
        return lw_fail(LW_ENOMEM, "data '%s': no memory for its labels", job->spec);
    h.tail_hash = lw_hash64(lw_str_c(&tail), tail.len);
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
