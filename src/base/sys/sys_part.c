/* SPDX-License-Identifier: Apache-2.0 */
/* Files that outlive the process which writes them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sys/sys.h"
#include "base/sys/sys_output.h"
#include "base/sys/sys_output_name.h"

static int fail_errno(const char *what, const lw_part_file *f)
{
    return lw_fail(lw_errno_code(errno), "%s: cannot %s: %s", lw_str_c(&f->part), what,
                   strerror(errno));
}

/* Zeros, with blocks of their own: a full disk is found here, not after hours. */
static int reserve(lw_part_file *f, uint64_t size)
{
    int why = ftruncate(f->fd, 0) == 0 ? 0 : errno;
    if (why == 0 && size > 0)
        why = posix_fallocate(f->fd, 0, (off_t)size);
    if (why == EOPNOTSUPP || why == EINVAL)
        why = ftruncate(f->fd, (off_t)size) == 0 ? 0 : errno;
    if (why == 0)
        return 0;
    unlink(lw_str_c(&f->part));
    return lw_fail(lw_errno_code(why), "%s: cannot reserve %llu bytes: %s", lw_str_c(&f->part),
                   (unsigned long long)size, strerror(why));
}

int lw_part_file_open(lw_part_file *f, const char *path, bool anew, uint64_t size)
{
    struct stat st;
    f->path.len = f->part.len = 0;
    lw_str_add(&f->path, path);
    lw_str_addf(&f->part, "%s" LW_PART_SUFFIX, path);
    if (f->path.failed || f->part.failed)
        return LW_ENOMEM;
    const char *part = lw_str_c(&f->part);
    if (!anew && !lw_path_exists(part))
        return lw_fail(LW_EIO, "%s: there is none", part);
    int rc = lw_lock_try(part, &f->fd);
    if (rc > 0)
        return lw_fail(LW_EUSAGE, "%s: another process is writing it", part);
    LW_TRY(rc);
    if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return lw_fail(LW_EIO, "%s: not a regular file", part);
    return anew ? reserve(f, size) : 0;
}

int lw_part_file_put(lw_part_file *f, uint64_t at, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t done = pwrite(f->fd, p, n, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail_errno("write", f);
        p += done;
        at += (uint64_t)done;
        n -= (size_t)done;
    }
    return 0;
}

int lw_part_file_sync(lw_part_file *f)
{
    return fsync(f->fd) == 0 ? 0 : fail_errno("write", f);
}

int lw_part_file_finish(lw_part_file *f)
{
    LW_TRY(lw_part_file_sync(f));
    if (rename(lw_str_c(&f->part), lw_str_c(&f->path)) != 0)
        return fail_errno("rename into place", f);
    lw_lock_drop(&f->fd);
    return lw_sync_parent(lw_str_c(&f->path));
}

int lw_part_file_remove(lw_part_file *f)
{
    int rc = unlink(lw_str_c(&f->part)) == 0 ? 0 : fail_errno("remove", f);
    lw_lock_drop(&f->fd);
    return rc;
}

void lw_part_file_close(lw_part_file *f)
{
    lw_lock_drop(&f->fd);
    lw_str_clear(&f->path);
    lw_str_clear(&f->part);
}
