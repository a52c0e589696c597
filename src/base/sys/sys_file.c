/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files: read, append, cut. Writing: sys_output.c. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sys/sys.h"

static int fail_errno(const char *what, const char *path)
{
    return lw_fail(lw_errno_code(errno), "%s: cannot %s: %s", path, what, strerror(errno));
}

void lw_fd_close(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* Reads until the end of the file or `limit` bytes. What has no size (a pipe, a device, files the
 * kernel makes up) may never end: it has a limit of its own. */
static int read_all(int fd, const char *path, size_t limit, char **buf, size_t *len)
{
    size_t cap = 0, used = 0;
    struct stat st;
    if (fstat(fd, &st) != 0)
        return fail_errno("look at", path);
    if (S_ISDIR(st.st_mode))
        return lw_fail(LW_EIO, "%s: cannot read: it is a directory", path);
    const bool sized = S_ISREG(st.st_mode) && st.st_size > 0;
    const bool own = !sized && limit > LW_UNSIZED_MAX;
    limit = own ? LW_UNSIZED_MAX : limit;
    size_t first = sized ? LW_MIN((size_t)st.st_size, limit) + 2 : 65536;
    bool more = sized && (size_t)st.st_size > limit;
    while (!more) {
        LW_TRY(
            lw_grow_for_reading(buf, &cap, LW_MIN(LW_MAX(used + 2, first), limit + 2), limit + 2));
        ssize_t n = read(fd, *buf + used, cap - used - 1);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail_errno("read", path);
        if (n == 0)
            break;
        used += (size_t)n;
        more = used > limit;
    }
    if (more)
        return lw_fail(LW_EFORMAT, "%s: larger than %zu bytes%s", path, limit,
                       own ? ", the limit for what is not a regular file" : "");
    (*buf)[used] = '\0';
    *len = used;
    return 0;
}

int lw_file_read(const char *path, size_t max, char **out, size_t *len)
{
    LW_CLEANUP(lw_fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno("open", path);
    char *buf = NULL;
    size_t n = 0;
    int rc = read_all(fd, path, max ? max : (size_t)INT64_MAX / 2, &buf, &n);
    if (rc < 0) {
        lw_free(&buf);
        return rc;
    }
    *out = buf;
    if (len)
        *len = n;
    return 0;
}

static int write_all(int fd, const char *path, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t done = write(fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail_errno("write", path);
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

/* Of a file opened with O_NOFOLLOW. */
static int fail_open(const char *path)
{
    if (errno == ELOOP)
        return lw_fail(LW_EIO, "%s: is a symbolic link, which is not written through: remove it",
                       path);
    return fail_errno("open", path);
}

int lw_file_append(const char *path, const void *bytes, size_t n)
{
    LW_CLEANUP(lw_fd_close)
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail_open(path);
    return write_all(fd, path, bytes, n);
}

int lw_file_cut(const char *path, size_t size)
{
    LW_CLEANUP(lw_fd_close) int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail_open(path);
    if (ftruncate(fd, (off_t)size) != 0 || fsync(fd) != 0)
        return fail_errno("cut back", path);
    return 0;
}

int lw_fsync_path(const char *path)
{
    LW_CLEANUP(lw_fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno("open", path);
    /* Some file systems cannot sync a directory (EINVAL): nothing to be done there. */
    if (fsync(fd) != 0 && errno != EINVAL)
        return fail_errno("sync", path);
    return 0;
}

int lw_disk_free(const char *path, uint64_t *out)
{
    struct statvfs v;
    if (statvfs(path, &v) != 0)
        return fail_errno("look at", path);
    *out = (uint64_t)v.f_bavail * (uint64_t)v.f_frsize;
    return 0;
}

int lw_file_size(const char *path, uint64_t *out)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return fail_errno("look at", path);
    *out = (uint64_t)st.st_size;
    return 0;
}
