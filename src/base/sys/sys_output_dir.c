/* SPDX-License-Identifier: Apache-2.0 */
/* Directories under construction. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sys/sys.h"
#include "base/sys/sys_output.h"
#include "base/sys/sys_output_name.h"

static int fail_rename(const char *path)
{
    return lw_fail(lw_errno_code(errno), "%s: cannot rename into place: %s", path, strerror(errno));
}

int lw_new_dir_begin(lw_new_dir *d, const char *path, bool replace)
{
    LW_CLEANUP(lw_str_clear) lw_str where = {0};
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    d->path.len = 0;
    d->replace = replace;
    lw_str_add_n(&d->path, path, n);
    /* Inside one that is there already: it may be a mount point, or the only place we may write. */
    d->inside = !replace && lw_path_is_dir(path);
    if (d->inside)
        lw_str_add(&where, path);
    else
        lw_path_parent(lw_str_c(&d->path), &where);
    if (where.failed || d->path.failed)
        return LW_ENOMEM;
    LW_TRY(lw_mkdirs(lw_str_c(&where)));
    for (int k = 0; k < 100; k++) {
        LW_TRY(lw_tmp_name(lw_str_c(&where), lw_str_c(&d->path), &d->tmp));
        if (mkdir(lw_str_c(&d->tmp), 0777) == 0) {
            d->open = true;
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    return lw_fail(lw_errno_code(errno), "%s: cannot make directory: %s", path, strerror(errno));
}

/* Every file of from into the directory to. */
static int move_files(const char *from, const char *to)
{
    LW_CLEANUP(lw_str_clear) lw_str a = {0}, b = {0};
    char **names = NULL;
    size_t n = 0;
    int rc = 0;
    LW_TRY(lw_list_dir(from, &names, &n));
    for (size_t i = 0; i < n && rc == 0; i++)
        if (rename(lw_path_join(&a, from, names[i]), lw_path_join(&b, to, names[i])) != 0)
            rc = fail_rename(lw_str_c(&b));
    lw_list_free(&names, n);
    LW_TRY(rc);
    LW_TRY(lw_remove_tree(from));
    return lw_fsync_path(to);
}

static int move_into_place(const lw_new_dir *d)
{
    const char *tmp = lw_str_c(&d->tmp), *path = lw_str_c(&d->path);
    if (d->inside)
        return move_files(tmp, path);
    if (rename(tmp, path) == 0)
        return lw_sync_parent(path);
    if (errno != ENOTEMPTY && errno != EEXIST && errno != ENOTDIR)
        return fail_rename(path);
    if (!d->replace) /* made by somebody else meanwhile */
        return move_files(tmp, path);
    if (renameat2(AT_FDCWD, tmp, AT_FDCWD, path, RENAME_EXCHANGE) != 0) {
        /* A file system without exchange: the old one goes first. */
        LW_TRY(lw_remove_tree(path));
        if (rename(tmp, path) != 0)
            return fail_rename(path);
    } else {
        LW_TRY(lw_remove_tree(tmp));
    }
    return lw_sync_parent(path);
}

int lw_new_dir_finish(lw_new_dir *d)
{
    LW_TRY(lw_fsync_path(lw_str_c(&d->tmp)));
    LW_TRY(move_into_place(d));
    d->open = false;
    return 0;
}

void lw_new_dir_drop(lw_new_dir *d)
{
    if (d->open) { /* removing must not lose the message of what failed */
        LW_CLEANUP(lw_str_clear) lw_str why = {0};
        lw_str_add(&why, lw_errmsg());
        lw_remove_tree(lw_str_c(&d->tmp));
        lw_fail(0, "%s", lw_str_c(&why));
    }
    lw_str_clear(&d->path);
    lw_str_clear(&d->tmp);
    *d = (lw_new_dir){0};
}

int lw_mkdir_own(const char *path)
{
    struct stat st;
    if (mkdir(path, 0777) == 0)
        return 0;
    if (errno == EEXIST && lstat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode))
            return 0;
        errno = S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
    }
    if (errno == ELOOP)
        return lw_fail(LW_EIO, "%s: is a symbolic link, which is not written through: remove it",
                       path);
    return lw_fail(lw_errno_code(errno), "%s: cannot make directory: %s", path, strerror(errno));
}
