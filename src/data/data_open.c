/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening: map the cache when it is there and says what the source says; else build it under a
 * lock, so that of several processes one decodes and the others wait; where nothing can be written,
 * build in memory.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data/sources/data_source.h"

/* What stands behind a dataset: a map of the cache file or a block of memory. */
struct lw_data_rows {
    lw_map map;
    uint8_t *mem;
    const uint8_t *image;
    size_t bytes;
    lw_data_header header;
    int64_t at; /* row of the file that the dataset's first one is */
    const char **names, *note;
    char *spec, *path, *root;
};

static void rows_free(struct lw_data_rows **pp)
{
    if (!*pp)
        return;
    lw_map_close(&(*pp)->map);
    lw_free(&(*pp)->mem);
    lw_free(&(*pp)->names);
    lw_free(&(*pp)->spec);
    lw_free(&(*pp)->root);
    lw_free(&(*pp)->path);
    lw_free(pp);
}

/* Maps path if it is a whole cache of this very state of the source; LW_EFORMAT: damaged. */
static int rows_map(const char *path, uint64_t fingerprint, bool thorough,
                    struct lw_data_rows **out)
{
    LW_CLEANUP(rows_free) struct lw_data_rows *r = lw_calloc(1, sizeof *r);
    if (!r)
        return LW_ENOMEM;
    LW_TRY(lw_map_open(&r->map, path));
    r->image = r->map.data;
    r->bytes = r->map.size;
    LW_TRY(lw_data_image_check(path, r->image, r->bytes, &r->header));
    if (r->header.fingerprint != fingerprint)
        return lw_fail(LW_EUNSUPPORTED, "%s: cache of an older state of the data", path);
    LW_TRY(lw_data_image_pixels(path, r->image, &r->header, thorough));
    r->path = lw_strdup(path);
    if (!r->path)
        return LW_ENOMEM;
    *out = lw_steal(&r);
    return 0;
}

static int rows_in_memory(lw_data_job *job, uint64_t fingerprint, struct lw_data_rows **out)
{
    LW_CLEANUP(rows_free) struct lw_data_rows *r = lw_calloc(1, sizeof *r);
    LW_CLEANUP(lw_data_sink_free) lw_data_sink *sink = NULL;
    if (!r)
        return LW_ENOMEM;
    LW_TRY(lw_data_job_settle(job));
    LW_TRY(lw_data_sink_new(job, -1, "", &sink));
    LW_TRY(job->source->build(job, sink));
    LW_TRY(lw_data_sink_finish(sink, fingerprint));
    r->mem = lw_data_sink_take(sink, &r->bytes);
    r->image = r->mem;
    LW_TRY(lw_data_image_check(job->spec, r->image, r->bytes, &r->header));
    r->path = lw_strdup("");
    if (!r->path)
        return LW_ENOMEM;
    *out = lw_steal(&r);
    return 0;
}

/* Builds path; the lock is ours. 1: the cache cannot be written (the message says why). */
static int build_file(lw_data_job *job, uint64_t fingerprint, const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str temp = {0};
    lw_str_addf(&temp, "%s.tmp", path);
    if (temp.failed)
        return lw_fail(LW_ENOMEM, "data '%s': no memory for a path", job->spec);
    unlink(temp.s); /* of a process that was killed: the lock is ours */
    LW_CLEANUP(lw_fd_close)
    int fd = open(temp.s, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
        lw_fail(lw_errno_code(errno), "%s: cannot create: %s", temp.s, strerror(errno));
        return 1;
    }
    LW_CLEANUP(lw_data_sink_free) lw_data_sink *sink = NULL;
    int rc = lw_data_sink_new(job, fd, temp.s, &sink);
    if (rc == 0)
        rc = job->source->build(job, sink);
    if (rc == 0)
        rc = lw_data_sink_finish(sink, fingerprint);
    if (rc < 0) {
        unlink(temp.s);
        return sink && lw_data_sink_write_failed(sink) ? 1 : rc;
    }
    if (rename(temp.s, path) != 0) {
        lw_fail(lw_errno_code(errno), "%s: cannot rename: %s", temp.s, strerror(errno));
        unlink(temp.s);
        return 1;
    }
    return 0;
}

/* Takes the lock, looks again (another process may have built it meanwhile), builds. 1: cannot be
 * cached. */
static int build_locked(lw_data_job *job, uint64_t fingerprint, const char *dir, const char *path,
                        struct lw_data_rows **out)
{
    LW_CLEANUP(lw_str_clear) lw_str lock = {0}, does = {0};
    LW_CLEANUP(lw_lock_drop) int fd = -1;
    lw_str_addf(&lock, "%s.lock", path);
    lw_str_addf(&does, "decodes %s", job->spec);
    if (lock.failed || does.failed)
        return lw_fail(LW_ENOMEM, "data '%s': no memory for a path", job->spec);
    int taken = lw_mkdirs(dir);
    if (taken == 0)
        taken = lw_lock_take(lock.s, does.s, job->opts.obs, &fd);
    if (taken < 0)
        return taken == LW_ESTOPPED ? taken : 1;
    if (rows_map(path, fingerprint, job->thorough, out) == 0)
        return 0;
    double start = lw_now();
    LW_TRY(lw_data_job_settle(job));
    int rc = build_file(job, fingerprint, path);
    if (rc != 0)
        return rc;
    char took[32];
    lw_log(LW_LOG_INFO, "data", "%s decoded into %s in %s", job->spec, path,
           lw_fmt_time(took, lw_now() - start));
    return rows_map(path, fingerprint, false, out);
}

/* The message says what is damaged. */
static void note_damage(lw_data_job *job)
{
    lw_str_addf(&job->damaged, "%s; built again", lw_errmsg());
    if (!job->thorough) /* a check reports it */
        lw_log(LW_LOG_WARN, "data", "%s", lw_str_c(&job->damaged));
}

/* "" and one warning per process when there is no place for a cache. */
static const char *default_dir(char *buf, size_t size)
{
    static bool told;
    if (!*lw_data_cache_dir(buf, size) && !told) {
        told = true;
        lw_log(LW_LOG_WARN, "data",
               "pictures are kept in memory, not cached: %s; set LW_CACHE to a folder",
               getenv("LW_CACHE") || getenv("XDG_CACHE_HOME") || getenv("HOME")
                   ? "the path of the cache is longer than a path can be"
                   : "there is no LW_CACHE, XDG_CACHE_HOME or HOME");
    }
    return buf;
}

static int open_rows(lw_data_job *job, struct lw_data_rows **out)
{
    char buf[4096];
    uint64_t fingerprint = lw_data_fingerprint(job);
    const char *dir = job->opts.cache_dir ? job->opts.cache_dir : default_dir(buf, sizeof buf);
    if (!*dir)
        return rows_in_memory(job, fingerprint, out);
    LW_CLEANUP(lw_free) char *path = NULL;
    LW_TRY(lw_data_cache_path(job, dir, &path));
    int rc = rows_map(path, fingerprint, job->thorough, out);
    if (rc == 0 || rc == LW_ENOMEM)
        return rc;
    if (rc == LW_EFORMAT)
        note_damage(job);
    rc = build_locked(job, fingerprint, dir, path, out);
    if (rc <= 0)
        return rc;
    lw_log(LW_LOG_WARN, "data", "%s is kept in memory, not cached: %s", job->spec, lw_errmsg());
    lw_errclear();
    return rows_in_memory(job, fingerprint, out);
}

/* The rows asked for, of those the split has. */
static int select_rows(const lw_data_job *job, lw_dataset *d, int64_t *at)
{
    const lw_data_header *h = &d->rows->header;
    const lw_data_opts *o = &job->opts;
    int64_t begin = o->split == LW_SPLIT_TRAIN ? 0 : h->n_train;
    int64_t have = o->split == LW_SPLIT_TRAIN ? h->n_train : h->n_heldout;
    d->first = o->first;
    d->skipped = h->skipped;
    if (o->split == LW_SPLIT_ALL) {
        begin = 0;
        have = h->n_train + h->n_heldout;
    }
    d->split_rows = job->ranged ? h->split_rows : have;
    if (job->ranged) {
        *at = 0;
        d->n = h->n_train + h->n_heldout;
        return 0;
    }
    LW_TRY(lw_data_range_check(job, have));
    *at = begin + o->first;
    d->n = o->count ? o->count : have - o->first;
    return 0;
}

static int fill_texts(struct lw_data_rows *r)
{
    r->names = lw_calloc((size_t)r->header.classes, sizeof *r->names);
    if (!r->names)
        return LW_ENOMEM;
    const char *p = (const char *)r->image + r->header.texts_at;
    for (int32_t c = 0; c < r->header.classes; c++, p += strlen(p) + 1)
        r->names[c] = p;
    r->note = p + strlen(p) + 1; /* behind the title */
    return 0;
}

static int open_job(lw_data_job *job, lw_dataset *d)
{
    LW_TRY(open_rows(job, &d->rows));
    struct lw_data_rows *r = d->rows;
    const lw_data_header *h = &r->header;
    int64_t at = 0;
    LW_TRY(select_rows(job, d, &at));
    LW_TRY(fill_texts(r));
    r->spec = lw_strdup(job->spec);
    r->root = lw_strdup(lw_str_c(&job->root));
    if (!r->spec || !r->root)
        return LW_ENOMEM;
    d->h = h->height;
    d->w = h->width;
    d->channels = h->channels;
    d->classes = h->classes;
    d->labelled = h->labelled != 0;
    d->flip = h->flip != 0;
    d->cached = r->mem == NULL;
    d->class_names = r->names;
    d->labels = (const int32_t *)(const void *)(r->image + h->labels_at) + at;
    r->at = at;
    d->pixels = r->image + h->pixels_at + (size_t)at * lw_data_header_row(h);
    d->spec = r->spec;
    d->root = r->root;
    d->note = r->note;
    d->cache_path = r->path;
    d->split = job->opts.split;
    d->on_error = job->opts.on_error;
    d->fingerprint = h->fingerprint;
    d->content = h->content;
    return 0;
}

int lw_data_job_open(lw_data_job *job, lw_dataset **out)
{
    LW_CLEANUP(lw_data_close) lw_dataset *d = lw_calloc(1, sizeof *d);
    if (!d)
        return LW_ENOMEM;
    LW_TRY(open_job(job, d));
    /* once, though held-out rows are opened too; a check reports it */
    if (*d->note && !job->thorough && (d->split != LW_SPLIT_HELDOUT || d->skipped))
        lw_log(LW_LOG_WARN, "data", "%s: %s", job->spec, d->note);
    *out = lw_steal(&d);
    return 0;
}

int lw_data_open(const char *spec, const lw_data_opts *opts, lw_dataset **out)
{
    LW_CLEANUP(lw_data_job_clear) lw_data_job job;
    LW_TRY(lw_data_job_init(&job, spec, opts));
    return lw_data_job_open(&job, out);
}

int64_t lw_data_row_number(const lw_dataset *d, int64_t i)
{
    const struct lw_data_rows *r = d->rows;
    return ((const int64_t *)(const void *)(r->image + r->header.numbers_at))[r->at + i];
}

uint64_t lw_data_rows_hash(const lw_dataset *d)
{
    uint64_t part[2] = {0, 0};
    for (int64_t i = 0; i < d->n; i++) {
        part[1] = (uint64_t)lw_data_row_number(d, i);
        part[0] = lw_hash64(part, sizeof part);
    }
    return part[0];
}

void lw_data_row_name(const lw_dataset *d, int64_t i, lw_str *out)
{
    const struct lw_data_rows *r = d->rows;
    const lw_data_header *h = &r->header;
    if (h->names_bytes) {
        const uint64_t *at = (const uint64_t *)(const void *)(r->image + h->names_at);
        lw_str_add(out, (const char *)(at + h->n_train + h->n_heldout + 1) + at[r->at + i]);
        return;
    }
    lw_split split = r->at + i < h->n_train ? LW_SPLIT_TRAIN : LW_SPLIT_HELDOUT;
    lw_str_addf(out, "%.*s %s %lld", (int)strcspn(d->spec, ":"), d->spec, lw_split_name(split),
                (long long)lw_data_row_number(d, i));
}

void lw_data_close(lw_dataset **pp)
{
    if (!*pp)
        return;
    if (!(*pp)->borrowed)
        rows_free(&(*pp)->rows);
    lw_free(pp);
}

int lw_data_values(const lw_dataset *d, int32_t h, int32_t w, int32_t channels, uint64_t key,
                   lw_dataset **out)
{
    const uint64_t part[2] = {d->content, key};
    lw_dataset *v = lw_calloc(1, sizeof *v);
    if (!v)
        return LW_ENOMEM;
    *v = *d;
    v->h = h;
    v->w = w;
    v->channels = channels;
    v->content = lw_hash64(part, sizeof part);
    v->pixels = NULL;
    v->borrowed = true;
    *out = v;
    return 0;
}

void lw_data_get(const lw_dataset *d, int64_t i, bool flip, float *dst)
{
    const int64_t c = d->channels, line = d->w * c;
    if (!d->pixels) {
        const int64_t n = lw_data_row_size(d);
        memcpy(dst, d->values[flip] + i * n, (size_t)n * sizeof *dst);
        return;
    }
    const uint8_t *src = d->pixels + i * lw_data_row_size(d);
    if (!flip) {
        lw_data_from_u8(src, lw_data_row_size(d), dst);
        return;
    }
    for (int32_t y = 0; y < d->h; y++)
        for (int32_t x = 0; x < d->w; x++)
            lw_data_from_u8(src + y * line + c * (d->w - 1 - x), c, dst + y * line + c * x);
}

typedef struct get_rows {
    const lw_dataset *data;
    int64_t first;
    float *dst;
} get_rows;

static void get_task(void *arg, int64_t i, int worker)
{
    const get_rows *g = arg;
    (void)worker;
    lw_data_get(g->data, g->first + i, false, g->dst + i * lw_data_row_size(g->data));
}

void lw_data_get_rows(const lw_dataset *d, lw_pool *pool, int64_t first, int64_t n, float *dst)
{
    get_rows g = {d, first, dst};
    lw_pool_run(pool, n, get_task, &g);
}
