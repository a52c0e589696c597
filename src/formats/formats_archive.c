/* SPDX-License-Identifier: Apache-2.0 */
/* Reading archives and compressed files through libarchive. */
#include "formats/formats_archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

#define BLOCK 65536
#define BELIEVED ((int64_t)64 << 20)

struct lw_archive {
    char *path;
    struct archive *in;
    int fd; /* -1: libarchive opened it by name */
    bool raw;
    int64_t size; /* of the current member, -1 when not said */
};

void lw_archive_close(lw_archive **pp)
{
    lw_archive *a = *pp;
    if (!a)
        return;
    archive_read_free(a->in);
    lw_fd_close(&a->fd);
    lw_free(&a->path);
    lw_free(pp);
}

/* libarchive's code is an errno for trouble with the file, EILSEQ or negative for trouble with its
 * content; a failed allocation it does not always tell, malloc does: errno is cleared before it is
 * called. */
static int bad_archive(lw_archive *a)
{
    const char *why = archive_error_string(a->in);
    int err = errno == ENOMEM ? ENOMEM : archive_errno(a->in);
    if (err == ENOMEM)
        why = "no memory to read an archive";
    int code = err > 0 && err != EILSEQ ? lw_errno_code(err) : LW_EFORMAT;
    return lw_fail(code, "%s: %s", a->path, why ? why : "damaged archive");
}

static int (*const support[])(struct archive *) = {
    archive_read_support_filter_gzip,  archive_read_support_filter_xz,
    archive_read_support_filter_bzip2, archive_read_support_filter_zstd,
    archive_read_support_format_tar,   archive_read_support_format_zip,
    archive_read_support_format_raw,   archive_read_support_format_empty,
};

/* With what it reads, not yet open. */
static int new_archive(const char *path, lw_archive **out)
{
    LW_CLEANUP(lw_archive_close) lw_archive *a = lw_calloc(1, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->fd = -1;
    if (!(a->path = lw_strdup(path)))
        return LW_ENOMEM;
    errno = 0;
    a->in = archive_read_new();
    if (!a->in || errno == ENOMEM) /* it does not look whether all its parts are there */
        return lw_fail(LW_ENOMEM, "%s: no memory to read an archive", path);
    for (size_t i = 0; i < LW_COUNT(support); i++)
        if (support[i](a->in) == ARCHIVE_FATAL)
            return bad_archive(a);
    *out = lw_steal(&a);
    return 0;
}

int lw_archive_open(const char *path, lw_archive **out)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return lw_fail(lw_errno_code(errno), "%s: cannot look at: %s", path, strerror(errno));
    if (S_ISDIR(st.st_mode))
        return lw_fail(LW_EIO, "%s: is a directory, not a file", path);
    if (!S_ISREG(st.st_mode)) /* a pipe that nobody writes to would be waited for */
        return lw_fail(LW_EIO, "%s: not a regular file", path);
    LW_CLEANUP(lw_archive_close) lw_archive *a = NULL;
    LW_TRY(new_archive(path, &a));
    if (archive_read_open_filename(a->in, path, BLOCK) != ARCHIVE_OK)
        return bad_archive(a);
    *out = lw_steal(&a);
    return 0;
}

int lw_archive_open_at(const char *path, int64_t at, lw_archive **out)
{
    LW_CLEANUP(lw_archive_close) lw_archive *a = NULL;
    LW_TRY(new_archive(path, &a));
    a->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (a->fd < 0 || lseek(a->fd, (off_t)at, SEEK_SET) < 0)
        return lw_fail(lw_errno_code(errno), "%s: %s", path, strerror(errno));
    if (archive_read_open_fd(a->in, a->fd, BLOCK) != ARCHIVE_OK)
        return bad_archive(a);
    *out = lw_steal(&a);
    return 0;
}

/* Whether a member is found again by its place. */
static bool is_plain_tar(const lw_archive *a)
{
    return (archive_format(a->in) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_TAR &&
           archive_filter_code(a->in, 0) == ARCHIVE_FILTER_NONE;
}

static const char *member_name(lw_archive *a, struct archive_entry *e)
{
    if (a->raw) {
        const char *slash = strrchr(a->path, '/');
        return slash ? slash + 1 : a->path;
    }
    const char *name = archive_entry_pathname(e);
    if (!name)
        name = archive_entry_pathname_utf8(e);
    return name ? name : "";
}

int lw_archive_next(lw_archive *a, lw_archive_member *out)
{
    for (;;) {
        struct archive_entry *e;
        errno = 0;
        int rc = archive_read_next_header(a->in, &e);
        if (rc == ARCHIVE_EOF)
            return 1;
        if (rc != ARCHIVE_OK && rc != ARCHIVE_WARN)
            return bad_archive(a);
        a->raw = archive_format(a->in) == ARCHIVE_FORMAT_RAW;
        bool link = archive_entry_filetype(e) == AE_IFLNK || archive_entry_hardlink(e);
        if (archive_entry_filetype(e) != AE_IFREG && !link)
            continue;
        a->size = !a->raw && archive_entry_size_is_set(e) ? archive_entry_size(e) : -1;
        *out = (lw_archive_member){.name = member_name(a, e),
                                   .size = a->size,
                                   .at = is_plain_tar(a) ? archive_read_header_position(a->in) : -1,
                                   .raw = a->raw,
                                   .link = link};
        return 0;
    }
}

int lw_archive_read(lw_archive *a, void *buf, size_t n, size_t *got)
{
    la_ssize_t r;
    errno = 0;
    do
        r = archive_read_data(a->in, buf, n);
    while (r == ARCHIVE_RETRY);
    if (r < 0)
        return bad_archive(a);
    *got = (size_t)r;
    return 0;
}

int lw_archive_read_all(lw_archive *a, size_t max, char **out, size_t *len)
{
    LW_CLEANUP(lw_free) char *buf = NULL;
    size_t cap = 0, used = 0, got = 0, most = max > SIZE_MAX - 2 ? max : max + 2;
    size_t first = BLOCK;
    if (a->size >= 0) /* as far as it is believed before bytes are there */
        first = LW_MIN((size_t)a->size, (size_t)BELIEVED) + 2;
    bool more = a->size >= 0 && (size_t)a->size > max;
    do {
        if (more)
            return lw_fail(LW_EFORMAT, "%s: more than %zu bytes after decompression", a->path, max);
        LW_TRY(lw_grow_for_reading(&buf, &cap, LW_MIN(LW_MAX(used + 2, first), most), most));
        LW_TRY(lw_archive_read(a, buf + used, cap - used - 1, &got));
        used += got;
        more = used > max;
    } while (got > 0);
    buf[used] = '\0';
    *out = lw_steal(&buf);
    *len = used;
    return 0;
}

int lw_archive_load(const char *path, size_t max, char **out, size_t *len)
{
    LW_CLEANUP(lw_archive_close) lw_archive *a = NULL;
    lw_archive_member m;
    LW_TRY(lw_archive_open(path, &a));
    int rc = lw_archive_next(a, &m);
    if (rc < 0)
        return rc;
    if (rc == 1) { /* empty file */
        char *none = lw_strdup("");
        if (!none)
            return LW_ENOMEM;
        *out = none;
        *len = 0;
        return 0;
    }
    if (!m.raw)
        return lw_fail(LW_EFORMAT, "%s: is an archive; one file is expected here", path);
    return lw_archive_read_all(a, max ? max : SIZE_MAX, out, len);
}

static bool is_member(const char *path, const char *name)
{
    size_t p = strlen(path), n = strlen(name);
    return p >= n && strcmp(path + p - n, name) == 0 && (p == n || path[p - n - 1] == '/');
}

int lw_archive_extract(const char *path, const char *name, size_t max, char **out, size_t *len)
{
    LW_CLEANUP(lw_archive_close) lw_archive *a = NULL;
    lw_archive_member m;
    LW_TRY(lw_archive_open(path, &a));
    int rc;
    while ((rc = lw_archive_next(a, &m)) == 0)
        if (!m.raw && !m.link && is_member(m.name, name))
            return lw_archive_read_all(a, max, out, len);
    if (rc < 0)
        return rc;
    return lw_fail(LW_EFORMAT, "%s: no member '%s' in this archive", path, name);
}

int lw_archive_each(const char *path, lw_archive_visit *visit, void *arg)
{
    LW_CLEANUP(lw_archive_close) lw_archive *a = NULL;
    lw_archive_member m;
    LW_TRY(lw_archive_open(path, &a));
    int rc;
    while ((rc = lw_archive_next(a, &m)) == 0) {
        int stop = visit(arg, a, &m);
        if (stop)
            return stop < 0 ? stop : 0;
    }
    return rc < 0 ? rc : 0;
}
