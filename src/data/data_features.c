/* SPDX-License-Identifier: Apache-2.0 */
/* Features of all rows in a file of the cache. */
#include "data/data_features.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data_set.h"

#define MAGIC "LWFEAT\n\0"
#define VERSION 1u
#define SUFFIX ".data"
#define PAGE 4096u
#define BLOCK ((uint64_t)1 << 20)

static const char *const prefixes[] = {"features-", "latents-"};

typedef struct header {
    char magic[8];
    uint32_t version, header_bytes;
    uint64_t key;
    int64_t rows;
    uint64_t arrays;
    uint64_t hashes_at; /* one per BLOCK of what lies between the header page and here */
    uint64_t texts_at;  /* the title, with a NUL */
    uint64_t total_bytes;
    uint64_t tail_hash;   /* of hashes and texts */
    uint64_t header_hash; /* of all fields above */
} header;

/* ---- layout ---------------------------------------------------------------------------------- */

static uint64_t array_at(const lw_features_spec *s, int32_t k)
{
    uint64_t at = PAGE;
    for (int32_t i = 0; i < k; i++)
        at = LW_ROUND_UP(at + (uint64_t)s->rows * s->row[i], (uint64_t)64);
    return at;
}

static uint64_t blocks_of(const header *h)
{
    return (h->hashes_at - PAGE + BLOCK - 1) / BLOCK;
}

static header layout(const lw_features_spec *s)
{
    header h = {.version = VERSION,
                .header_bytes = sizeof h,
                .key = s->key,
                .rows = s->rows,
                .arrays = (uint64_t)s->arrays,
                .hashes_at = array_at(s, s->arrays)};
    memcpy(h.magic, MAGIC, sizeof h.magic);
    h.texts_at = h.hashes_at + 8 * blocks_of(&h);
    h.total_bytes = h.texts_at + strlen(s->title) + 1;
    return h;
}

static uint64_t hash_of_header(const header *h)
{
    return lw_hash64(h, offsetof(header, header_hash));
}

typedef struct hashing {
    uint8_t *image;
    const header *h;
    uint64_t *out;
} hashing;

static void hash_block(void *arg, int64_t i, int worker)
{
    const hashing *j = arg;
    uint64_t at = PAGE + (uint64_t)i * BLOCK;
    (void)worker;
    j->out[i] = lw_hash64(j->image + at, LW_MIN(BLOCK, j->h->hashes_at - at));
}

static void hash_blocks(lw_pool *pool, uint8_t *image, const header *h, uint64_t *out)
{
    hashing j = {image, h, out};
    if (pool) {
        lw_pool_run(pool, (int64_t)blocks_of(h), hash_block, &j);
        return;
    }
    for (int64_t i = 0; i < (int64_t)blocks_of(h); i++)
        hash_block(&j, i, 0);
}

/* ---- looking --------------------------------------------------------------------------------- */

static int check(const char *what, const uint8_t *image, size_t size, header *out)
{
    header h;
    if (size < sizeof h.magic || memcmp(image, MAGIC, sizeof h.magic) != 0)
        return lw_fail(LW_EFORMAT, "%s: damaged features: the file does not begin as such", what);
    if (size < PAGE)
        return lw_fail(LW_EFORMAT, "%s: damaged features: only %zu bytes", what, size);
    memcpy(&h, image, sizeof h);
    if (h.version != VERSION)
        return lw_fail(LW_EUNSUPPORTED, "%s: features of version %u, not %u", what, h.version,
                       VERSION);
    if (h.header_bytes != sizeof h || hash_of_header(&h) != h.header_hash)
        return lw_fail(LW_EFORMAT, "%s: damaged features: the header does not fit its hash", what);
    if (h.total_bytes != size || h.hashes_at < PAGE || h.hashes_at > size || h.texts_at >= size ||
        h.texts_at != h.hashes_at + 8 * blocks_of(&h))
        return lw_fail(LW_EFORMAT, "%s: damaged features: %zu bytes, not %llu", what, size,
                       (unsigned long long)h.total_bytes);
    if (lw_hash64(image + h.hashes_at, size - h.hashes_at) != h.tail_hash || image[size - 1] != 0)
        return lw_fail(LW_EFORMAT, "%s: damaged features: the tail does not fit its hash", what);
    *out = h;
    return 0;
}

int lw_features_look(const char *what, const void *image, size_t size, int64_t *rows, char **title)
{
    header h;
    if (size < sizeof h.magic || memcmp(image, MAGIC, sizeof h.magic) != 0)
        return 1;
    LW_TRY(check(what, image, size, &h));
    *rows = h.rows;
    *title = lw_strdup((const char *)image + h.texts_at);
    return *title ? 0 : LW_ENOMEM;
}

static bool named_as(const char *prefix, const char *name, const char **tail)
{
    const char *p = name + strlen(prefix);
    if (!lw_str_starts(name, prefix) || strspn(p, "0123456789abcdef") != 16 ||
        !lw_str_starts(p + 16, SUFFIX))
        return false;
    *tail = p + 16 + strlen(SUFFIX);
    return true;
}

bool lw_features_named(const char *name, const char **tail)
{
    for (size_t i = 0; i < LW_COUNT(prefixes); i++)
        if (named_as(prefixes[i], name, tail))
            return true;
    return false;
}

uint64_t lw_features_path(const lw_features_spec *s, lw_str *out)
{
    char buf[4096];
    const char *dir = s->dir ? s->dir : lw_data_cache_dir(buf, sizeof buf);
    out->len = 0;
    if (*dir)
        lw_str_addf(out, "%s/%s%016llx" SUFFIX, dir, prefixes[s->kind], (unsigned long long)s->key);
    return layout(s).total_bytes;
}

/* ---- opening --------------------------------------------------------------------------------- */

void lw_features_close(lw_features_file *f)
{
    lw_map_close(&f->map);
    for (int32_t k = 0; k < LW_MAX_FEATURE_ARRAYS && f->memory[k]; k++)
        lw_bulk_free(&f->memory[k], f->bytes[k]);
    *f = (lw_features_file){0};
}

static int check_blocks(const lw_features_spec *s, const char *path, uint8_t *image,
                        const header *h)
{
    size_t n = (size_t)blocks_of(h);
    LW_CLEANUP(lw_free) uint64_t *now = lw_calloc(n + 1, sizeof *now);
    if (!now)
        return LW_ENOMEM;
    hash_blocks(s->pool, image, h, now);
    if (memcmp(now, image + h->hashes_at, n * sizeof *now) != 0)
        return lw_fail(LW_EFORMAT, "%s: damaged features: numbers do not fit their hash", path);
    return 0;
}

static int open_at(const lw_features_spec *s, const char *path, lw_features_file *out)
{
    LW_CLEANUP(lw_features_close) lw_features_file f = {0};
    const header want = layout(s);
    header h;
    bool found;
    LW_TRY(lw_path_look(path, &found));
    if (!found)
        return 1;
    LW_TRY(lw_map_open(&f.map, path));
    LW_TRY(check(path, f.map.data, f.map.size, &h));
    if (h.key != s->key || h.rows != s->rows || h.arrays != want.arrays ||
        h.hashes_at != want.hashes_at)
        return lw_fail(LW_EFORMAT, "%s: features of something else", path);
    LW_TRY(check_blocks(s, path, f.map.data, &h));
    for (int32_t k = 0; k < s->arrays; k++)
        f.array[k] = (const uint8_t *)f.map.data + array_at(s, k);
    utimensat(AT_FDCWD, path, NULL, 0); /* used now: what is longest unused goes first */
    *out = f;
    f.map = (lw_map){0};
    return 0;
}

int lw_features_open(const lw_features_spec *s, lw_features_file *out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    lw_features_path(s, &path);
    if (path.failed)
        return lw_fail(LW_ENOMEM, "no memory for a path");
    return path.len ? open_at(s, path.s, out) : 1;
}

/* ---- making ---------------------------------------------------------------------------------- */

/* What is in the directory of such files: bytes, and the one longest unused. */
static int look_around(const char *dir, lw_features_kind kind, uint64_t *bytes, lw_str *oldest)
{
    char **names = NULL;
    size_t n = 0;
    struct timespec least = {0};
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_TRY(lw_list_dir(dir, &names, &n));
    *bytes = 0;
    oldest->len = 0;
    for (size_t i = 0; i < n; i++) {
        const char *tail;
        struct stat st;
        if (!named_as(prefixes[kind], names[i], &tail) || *tail ||
            lstat(lw_path_join(&path, dir, names[i]), &st) != 0 || !S_ISREG(st.st_mode))
            continue;
        *bytes += (uint64_t)st.st_size;
        if (oldest->len &&
            (st.st_mtim.tv_sec > least.tv_sec ||
             (st.st_mtim.tv_sec == least.tv_sec && st.st_mtim.tv_nsec >= least.tv_nsec)))
            continue;
        least = st.st_mtim;
        oldest->len = 0;
        lw_str_add(oldest, lw_str_c(&path));
    }
    lw_list_free(&names, n);
    return path.failed || oldest->failed ? lw_fail(LW_ENOMEM, "no memory for a path") : 0;
}

/* 1: a process has its lock. */
static int drop_file(const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str lock = {0};
    LW_CLEANUP(lw_lock_drop) int fd = -1;
    lw_str_addf(&lock, "%s.lock", path);
    if (lock.failed)
        return lw_fail(LW_ENOMEM, "no memory for a path");
    int rc = lw_lock_try(lock.s, &fd);
    if (rc != 0)
        return rc;
    if (unlink(path) != 0 && errno != ENOENT)
        return lw_fail(lw_errno_code(errno), "%s: cannot remove: %s", path, strerror(errno));
    unlink(lock.s);
    lw_log(LW_LOG_INFO, "data", "%s removed: longest unused of the features on disk", path);
    return 0;
}

/* Files go until `bytes` more fit. Programs that map one keep it until they end. */
static int make_room(const lw_features_spec *s, const char *dir, uint64_t bytes)
{
    LW_CLEANUP(lw_str_clear) lw_str oldest = {0};
    char need[32], have[32];
    uint64_t there, left;
    int rc = 0;
    if (bytes > (uint64_t)s->together)
        return lw_fail(LW_EUSAGE, "%s of features, more than the %s that they may take on disk",
                       lw_fmt_bytes(need, bytes), lw_fmt_bytes(have, (uint64_t)s->together));
    for (bool more = true; more && rc == 0;) {
        LW_TRY(look_around(dir, s->kind, &there, &oldest));
        more = there + bytes > (uint64_t)s->together && oldest.len > 0;
        rc = more ? drop_file(oldest.s) : 0;
    }
    if (rc < 0)
        return rc;
    if (lw_disk_free(dir, &left) == 0 && left < bytes)
        return lw_fail(LW_EIO, "%s: %s of features, and %s are free there", dir,
                       lw_fmt_bytes(need, bytes), lw_fmt_bytes(have, left));
    return 0;
}

/* Header, hashes and title around what was made. */
static int seal(const lw_features_spec *s, lw_map *m)
{
    header h = layout(s);
    uint8_t *image = m->data;
    hash_blocks(s->pool, image, &h, (uint64_t *)(void *)(image + h.hashes_at));
    memcpy(image + h.texts_at, s->title, strlen(s->title) + 1);
    h.tail_hash = lw_hash64(image + h.hashes_at, h.total_bytes - h.hashes_at);
    h.header_hash = hash_of_header(&h);
    memcpy(image, &h, sizeof h);
    return lw_map_sync(m);
}

/* Writes temp. *mine: what failed is `make`. */
static int fill(const lw_features_spec *s, const char *temp, lw_features_make *make, void *self,
                bool *mine)
{
    void *array[LW_MAX_FEATURE_ARRAYS];
    LW_CLEANUP(lw_map_close) lw_map m = {0};
    *mine = false;
    LW_TRY(lw_map_make(&m, temp, (size_t)layout(s).total_bytes));
    for (int32_t k = 0; k < s->arrays; k++)
        array[k] = (uint8_t *)m.data + array_at(s, k);
    int rc = make(self, array);
    *mine = rc < 0;
    return rc < 0 ? rc : seal(s, &m);
}

/* The lock is ours. 1 and less: as lw_features_keep. */
static int build(const lw_features_spec *s, const char *path, lw_features_make *make, void *self)
{
    LW_CLEANUP(lw_str_clear) lw_str temp = {0};
    bool mine;
    lw_str_addf(&temp, "%s.tmp", path);
    if (temp.failed)
        return lw_fail(LW_ENOMEM, "no memory for a path");
    unlink(temp.s); /* of a process that was killed */
    int rc = fill(s, temp.s, make, self, &mine);
    if (rc == 0 && rename(temp.s, path) != 0)
        rc = lw_fail(lw_errno_code(errno), "%s: cannot rename: %s", temp.s, strerror(errno));
    if (rc < 0)
        unlink(temp.s);
    return rc < 0 && !mine ? 1 : rc;
}

static int keep_at(const lw_features_spec *s, const char *path, lw_features_make *make, void *self,
                   lw_features_file *out)
{
    LW_CLEANUP(lw_str_clear) lw_str lock = {0}, dir = {0}, does = {0};
    LW_CLEANUP(lw_lock_drop) int fd = -1;
    lw_str_addf(&lock, "%s.lock", path);
    lw_str_addf(&does, "makes %s", s->title);
    lw_path_parent(path, &dir);
    if (lock.failed || dir.failed || does.failed)
        return lw_fail(LW_ENOMEM, "no memory for a path");
    int rc = lw_mkdirs(dir.s);
    if (rc == 0)
        rc = lw_lock_take(lock.s, does.s, s->obs, &fd);
    if (rc < 0)
        return rc == LW_ESTOPPED ? rc : 1;
    rc = open_at(s, path, out); /* another process may have made it meanwhile */
    if (rc == 0 || rc == LW_ENOMEM)
        return rc;
    if (rc == LW_EFORMAT)
        lw_log(LW_LOG_WARN, "data", "%s; made again", lw_errmsg());
    if (rc < 0)
        unlink(path);
    lw_errclear();
    if (make_room(s, dir.s, layout(s).total_bytes) < 0)
        return 1;
    rc = build(s, path, make, self);
    return rc == 0 ? open_at(s, path, out) : rc;
}

int lw_features_keep(const lw_features_spec *s, lw_features_make *make, void *self,
                     lw_features_file *out)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_ASSERT(s->arrays > 0 && s->arrays <= LW_MAX_FEATURE_ARRAYS, "%d arrays", s->arrays);
    lw_features_path(s, &path);
    if (path.failed)
        return lw_fail(LW_ENOMEM, "no memory for a path");
    if (path.len == 0) {
        lw_fail(LW_EIO, "there is no cache directory; set LW_CACHE to a folder");
        return 1;
    }
    return keep_at(s, path.s, make, self, out);
}

static int make_in_memory(const lw_features_spec *s, lw_features_make *make, void *self,
                          lw_features_file *out)
{
    LW_CLEANUP(lw_features_close) lw_features_file f = {0};
    for (int32_t k = 0; k < s->arrays; k++) {
        f.bytes[k] = LW_MAX((size_t)s->rows * s->row[k], (size_t)1);
        f.memory[k] = lw_bulk_alloc(f.bytes[k]);
        if (!f.memory[k])
            return LW_ENOMEM;
        f.array[k] = f.memory[k];
    }
    LW_TRY(make(self, f.memory));
    *out = f;
    f = (lw_features_file){0};
    return 0;
}

int lw_features_have(const lw_features_spec *s, lw_features_make *make, void *self,
                     lw_features_file *out)
{
    int rc = s->together > 0 ? lw_features_keep(s, make, self, out) : 1;
    if (rc != 1)
        return rc;
    if (s->together > 0)
        lw_log(LW_LOG_WARN, "data", "%.*s are kept in memory, not on disk: %s",
               (int)strlen(prefixes[s->kind]) - 1, prefixes[s->kind], lw_errmsg());
    lw_errclear();
    return make_in_memory(s, make, self, out);
}

uint64_t lw_features_key(const lw_dataset *d, const lw_features_made *by)
{
    const uint64_t part[] = {d->content,
                             (uint64_t)d->split,
                             (uint64_t)d->first,
                             (uint64_t)d->n,
                             (uint64_t)by->flip,
                             (uint64_t)d->h << 32 | (uint64_t)d->w,
                             by->weights,
                             by->graph,
                             (uint64_t)by->precision,
                             (uint64_t)by->conv,
                             lw_hash_name(by->isa),
                             lw_hash_name(lw_build_version()),
                             lw_hash_name(lw_build_commit())};
    return lw_hash64(part, sizeof part);
}
