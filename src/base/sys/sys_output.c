/* SPDX-License-Identifier: Apache-2.0 */
/* Files under construction. */
#include "base/sys/sys_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sys/sys.h"
#include "base/sys/sys_output_name.h"

static int fail_errno(const char *what, const char *path)
{
    return lw_fail(lw_errno_code(errno), "%s: cannot %s: %s", path, what, strerror(errno));
}

/* ---- names ----------------------------------------------------------------------------------- */

enum {
    KEPT = 200, /* of the name, which with the rest must fit 255 bytes */
    RANDOM = 16 /* hexadecimal digits behind it */
};

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

int lw_tmp_name(const char *dir, const char *path, lw_str *out)
{
    uint64_t random;
    if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
        return fail_errno("make a temporary name", path);
    out->len = 0;
    lw_str_addf(out, "%s/" LW_TMP_PREFIX "%.*s.%0*llx", dir, KEPT, base_of(path), RANDOM,
                (unsigned long long)random);
    return out->failed ? LW_ENOMEM : 0;
}

/* Whether `name` is `prefix` and what lw_tmp_name puts behind it. */
static bool is_tmp(const char *name, const char *prefix)
{
    const char *random = strrchr(name, '.');
    return lw_str_starts(name, prefix) && strlen(random) == 1 + RANDOM &&
           strspn(random + 1, "0123456789abcdef") == RANDOM;
}

static void sweep(const char *dir, const char *prefix)
{
    LW_CLEANUP(lw_str_clear) lw_str file = {0};
    char **names = NULL;
    size_t n = 0;
    if (lw_list_dir(dir, &names, &n) < 0) {
        lw_errclear();
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (is_tmp(names[i], prefix))
            unlink(lw_path_join(&file, dir, names[i]));
    lw_list_free(&names, n);
}

void lw_new_file_sweep(const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0}, prefix = {0};
    lw_path_parent(path, &dir);
    lw_str_addf(&prefix, LW_TMP_PREFIX "%.*s.", KEPT, base_of(path));
    if (!dir.failed && !prefix.failed)
        sweep(lw_str_c(&dir), lw_str_c(&prefix));
}

void lw_new_files_sweep(const char *dir)
{
    sweep(dir, LW_TMP_PREFIX);
}

int lw_sync_parent(const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    lw_path_parent(path, &dir);
    return dir.failed ? LW_ENOMEM : lw_fsync_path(lw_str_c(&dir));
}

/* A file in dir that nobody else has, named after path. */
static int make_file(const char *dir, const char *path, int flags, lw_str *tmp, int *fd)
{
    for (int k = 0; k < 100; k++) {
        LW_TRY(lw_tmp_name(dir, path, tmp));
        *fd = open(lw_str_c(tmp), flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        if (*fd >= 0)
            return 0;
        if (errno != EEXIST)
            return fail_errno("create", path);
    }
    return fail_errno("create", path);
}

static int make_file_beside(const char *path, int flags, lw_str *tmp, int *fd)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0};
    lw_path_parent(path, &dir);
    return dir.failed ? LW_ENOMEM : make_file(lw_str_c(&dir), path, flags, tmp, fd);
}

/* ---- what is written as it stands ------------------------------------------------------------ */

/* N if path leads to /proc/self/fd/N, as /dev/stdout and /dev/fd/N do, whatever is open there: a
 * name beside it would be made in /dev or /proc. -1: an ordinary path. */
static int own_descriptor(const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str at = {0}, dir = {0}, next = {0};
    char target[4096], mine[32];
    snprintf(mine, sizeof mine, "/proc/%ld/fd", (long)getpid());
    lw_str_add(&at, path);
    for (int k = 0; k < 8 && !at.failed; k++) {
        lw_path_parent(lw_str_c(&at), &dir);
        char *real = realpath(lw_str_c(&dir), NULL);
        bool here = real && strcmp(real, mine) == 0;
        free(real);
        const char *slash = strrchr(lw_str_c(&at), '/');
        if (here && slash)
            return (int)strtol(slash + 1, NULL, 10);
        ssize_t n = readlink(lw_str_c(&at), target, sizeof target - 1);
        if (n <= 0)
            return -1;
        target[n] = '\0';
        lw_str_clear(&next);
        if (target[0] == '/')
            lw_str_add(&next, target);
        else
            lw_path_join(&next, lw_str_c(&dir), target);
        lw_str swap = at;
        at = next;
        next = swap;
    }
    return -1;
}

bool lw_path_is_special(const char *path)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return true;
    return own_descriptor(path) >= 0;
}

static int open_in_place(const char *path, int *fd)
{
    int own = own_descriptor(path);
    *fd = own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 3) : open(path, O_WRONLY | O_CLOEXEC);
    return *fd < 0 ? fail_errno("open", path) : 0;
}

/* ---- a file ---------------------------------------------------------------------------------- */

int lw_new_file_begin(lw_new_file *f, const char *path)
{
    LW_ASSERT(!f->open, "%s: begun twice", path);
    f->path.len = 0;
    lw_str_add(&f->path, path);
    if (f->path.failed)
        return LW_ENOMEM;
    f->in_place = lw_path_is_special(path);
    if (lw_path_is_dir(path))
        return lw_fail(LW_EIO, "%s: cannot write: it is a directory", path);
    LW_TRY(f->in_place ? open_in_place(path, &f->fd)
                       : make_file_beside(path, O_WRONLY, &f->tmp, &f->fd));
    f->open = true;
    return 0;
}

int lw_new_file_put(lw_new_file *f, const void *bytes, size_t n)
{
    const char *p = bytes;
    while (n > 0) {
        ssize_t done = write(f->fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return fail_errno("write", lw_str_c(&f->path));
        p += done;
        n -= (size_t)done;
    }
    return 0;
}

static int close_file(lw_new_file *f)
{
    f->open = false;
    return close(f->fd) == 0 ? 0 : fail_errno("write", lw_str_c(&f->path));
}

int lw_new_file_finish(lw_new_file *f)
{
    const char *path = lw_str_c(&f->path), *tmp = lw_str_c(&f->tmp);
    if (f->in_place)
        return close_file(f);
    int rc = fsync(f->fd) == 0 ? 0 : fail_errno("write", path);
    int closed = close_file(f);
    if (rc == 0)
        rc = closed;
    if (rc == 0 && rename(tmp, path) != 0)
        rc = fail_errno("rename into place", path);
    if (rc < 0) {
        unlink(tmp);
        return rc;
    }
    return lw_sync_parent(path);
}

void lw_new_file_drop(lw_new_file *f)
{
    if (f->open) {
        close(f->fd);
        if (!f->in_place)
            unlink(lw_str_c(&f->tmp));
    }
    lw_str_clear(&f->path);
    lw_str_clear(&f->tmp);
    *f = (lw_new_file){0};
}

int lw_file_write(const char *path, const void *bytes, size_t n)
{
    LW_CLEANUP(lw_new_file_drop) lw_new_file f = {0};
    LW_TRY(lw_new_file_begin(&f, path));
    LW_TRY(lw_new_file_put(&f, bytes, n));
    return lw_new_file_finish(&f);
}

int lw_scratch_open(const char *path, int *fd)
{
    LW_CLEANUP(lw_str_clear) lw_str tmp = {0};
    LW_TRY(make_file_beside(path, O_RDWR, &tmp, fd));
    unlink(lw_str_c(&tmp));
    return 0;
}

/* ---- before the work ------------------------------------------------------------------------- */

/* The directory to write into: path itself, its parent, or for directories what there is of it. */
static int find_place(const char *path, lw_out_kind kind, lw_str *dir)
{
    struct stat st;
    if (stat(path, &st) == 0) {
        if (S_ISDIR(st.st_mode) ? kind == LW_OUT_FILE : kind == LW_OUT_DIR)
            return lw_fail(LW_EIO, "%s: is a %s", path,
                           S_ISDIR(st.st_mode) ? "directory, not a file" : "file, not a directory");
        if (S_ISDIR(st.st_mode)) {
            lw_str_add(dir, path);
            return dir->failed ? LW_ENOMEM : 0;
        }
    } else if (errno != ENOENT) {
        return fail_errno("create", path);
    }
    lw_path_parent(path, dir);
    while (kind != LW_OUT_FILE && !dir->failed && stat(lw_str_c(dir), &st) != 0 &&
           errno == ENOENT) {
        LW_CLEANUP(lw_str_clear) lw_str up = {0};
        lw_path_parent(lw_str_c(dir), &up);
        lw_str swap = *dir;
        *dir = up;
        up = swap;
    }
    return dir->failed ? LW_ENOMEM : 0;
}

static int probe(const char *path, lw_out_kind kind)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0}, tmp = {0};
    int fd;
    if (kind != LW_OUT_DIR && own_descriptor(path) >= 0)
        return 0;
    if (kind != LW_OUT_DIR && lw_path_is_special(path))
        return access(path, W_OK) == 0 ? 0 : fail_errno("write", path);
    LW_TRY(find_place(path, kind, &dir));
    LW_TRY(make_file(lw_str_c(&dir), path, O_WRONLY, &tmp, &fd));
    close(fd);
    unlink(lw_str_c(&tmp));
    return 0;
}

static int check_empty(const char *path)
{
    char **names = NULL;
    size_t n = 0;
    if (!lw_path_is_dir(path))
        return 0;
    LW_TRY(lw_list_dir(path, &names, &n));
    lw_list_free(&names, n);
    return n == 0 ? 0 : lw_fail(LW_EUSAGE, "%s: holds something already: choose another", path);
}

int lw_output_check(const char *what, const char *path, lw_out_kind kind)
{
    int rc = probe(path, kind == LW_OUT_NEW_DIR ? LW_OUT_DIR : kind);
    if (rc == 0 && kind == LW_OUT_NEW_DIR)
        rc = check_empty(path);
    return rc < 0 ? lw_fail_in(rc, "%s ", what) : 0;
}

static int place_of(const char *path, lw_str *out)
{
    LW_CLEANUP(lw_str_clear) lw_str dir = {0}, name = {0};
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    lw_str_add_n(&name, path, n);
    lw_path_parent(lw_str_c(&name), &dir);
    char *real = realpath(lw_str_c(&dir), NULL);
    lw_path_join(out, real ? real : lw_str_c(&dir), base_of(lw_str_c(&name)));
    free(real); /* the C library's */
    return dir.failed || name.failed || out->failed ? LW_ENOMEM : 0;
}

int lw_output_same(const char *a, const char *b, bool *same)
{
    LW_CLEANUP(lw_str_clear) lw_str at = {0}, other = {0};
    LW_TRY(place_of(a, &at));
    LW_TRY(place_of(b, &other));
    *same = lw_str_eq(lw_str_c(&at), lw_str_c(&other));
    return 0;
}
