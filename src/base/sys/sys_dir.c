/* SPDX-License-Identifier: Apache-2.0 */
/* Directories and paths. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/sys/sys.h"

bool lw_path_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool lw_path_is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int lw_path_look(const char *path, bool *found)
{
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (!there && errno != ENOENT && errno != ENOTDIR)
        return lw_fail(lw_errno_code(errno), "%s: cannot look at it: %s", path, strerror(errno));
    *found = there;
    return 0;
}

static int make_one(const char *path)
{
    if (mkdir(path, 0777) == 0)
        return 0;
    if (errno == EEXIST && lw_path_is_dir(path))
        return 0;
    return lw_fail(lw_errno_code(errno), "%s: cannot make directory: %s", path, strerror(errno));
}

int lw_mkdirs(const char *path)
{
    LW_CLEANUP(lw_free) char *copy = lw_strdup(path);
    if (!copy)
        return LW_ENOMEM;
    for (char *p = copy + 1; *copy && *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        /* An existing parent may be one we must not write to: only make what is missing. */
        if (!lw_path_is_dir(copy))
            LW_TRY(make_one(copy));
        *p = '/';
    }
    return make_one(copy);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    if (remove(path) != 0)
        return lw_fail(lw_errno_code(errno), "%s: cannot remove: %s", path, strerror(errno));
    return 0;
}

int lw_remove_tree(const char *path)
{
    struct stat st;
    if (lstat(path, &st) != 0) {
        if (errno == ENOENT)
            return 0;
        return lw_fail(lw_errno_code(errno), "%s: cannot remove: %s", path, strerror(errno));
    }
    int rc = nftw(path, remove_one, 32, FTW_DEPTH | FTW_PHYS);
    if (rc == -1)
        return lw_fail(lw_errno_code(errno), "%s: cannot remove: %s", path, strerror(errno));
    return rc;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(DIR *dir, const char *path, char ***names, size_t *n)
{
    size_t cap = 0;
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(dir);
        if (!entry)
            break;
        if (lw_str_eq(entry->d_name, ".") || lw_str_eq(entry->d_name, ".."))
            continue;
        LW_TRY(lw_grow(names, &cap, *n + 1, sizeof **names));
        (*names)[*n] = lw_strdup(entry->d_name);
        if (!(*names)[*n])
            return LW_ENOMEM;
        ++*n;
    }
    if (errno != 0)
        return lw_fail(lw_errno_code(errno), "%s: cannot list: %s", path, strerror(errno));
    return 0;
}

int lw_list_dir(const char *path, char ***names, size_t *n)
{
    DIR *dir = opendir(path);
    if (!dir)
        return lw_fail(lw_errno_code(errno), "%s: cannot list: %s", path, strerror(errno));
    char **list = NULL;
    size_t count = 0;
    int rc = read_names(dir, path, &list, &count);
    closedir(dir);
    if (rc < 0) {
        lw_list_free(&list, count);
        return rc;
    }
    if (count > 0)
        qsort(list, count, sizeof *list, by_name);
    *names = list;
    *n = count;
    return 0;
}

void lw_list_free(char ***names, size_t n)
{
    for (size_t i = 0; *names && i < n; i++)
        lw_free(&(*names)[i]);
    lw_free(names);
}

const char *lw_path_join(lw_str *s, const char *dir, const char *name)
{
    s->len = 0;
    s->failed = false;
    lw_str_add(s, dir);
    if (s->len > 0 && s->s[s->len - 1] != '/')
        lw_str_add(s, "/");
    lw_str_add(s, name);
    return lw_str_c(s);
}

void lw_path_parent(const char *path, lw_str *out)
{
    const char *slash = strrchr(path, '/');
    out->len = 0;
    if (!slash)
        lw_str_add(out, ".");
    else
        lw_str_add_n(out, path, slash == path ? 1 : (size_t)(slash - path));
}

/* Where the first folders that two absolute paths share end: at a slash or the end of both. */
static size_t shared_folders(const char *a, const char *b)
{
    size_t n = 0, i = 0;
    for (; a[i] && a[i] == b[i]; i++)
        if (a[i] == '/')
            n = i;
    bool whole = (!a[i] || a[i] == '/') && (!b[i] || b[i] == '/');
    return whole ? i : n;
}

int lw_path_relative(const char *dir, const char *path, lw_str *s)
{
    char *from = realpath(dir, NULL), *to = realpath(path, NULL);
    int rc = 0;
    s->len = 0;
    if (!from || !to) {
        rc = lw_fail(lw_errno_code(errno), "%s: %s", from ? path : dir, strerror(errno));
    } else {
        size_t n = shared_folders(from, to);
        for (const char *c = from + n; *c; c++)
            if (*c == '/' && c[1])
                lw_str_add(s, "../");
        lw_str_add(s, to[n] == '/' ? to + n + 1 : to + n);
        rc = s->failed ? LW_ENOMEM : 0;
    }
    free(from);
    free(to);
    return rc;
}
