/* SPDX-License-Identifier: Apache-2.0 */
/* What is in the cache directory, and taking it away again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/data_cache_list.h"
#include "data/data_features.h"
#include "data/sources/data_source.h"

#define UNFINISHED ".tmp"

static const char *const states[] = {"whole", "damaged", "other version", "unfinished"};

const char *lw_cached_state_name(lw_cached_state s)
{
    return states[s];
}

void lw_data_cache_list_clear(lw_cached_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        lw_free(&l->at[i].path);
        lw_free(&l->at[i].title);
    }
    lw_free(&l->at);
    *l = (lw_cached_list){0};
}

/* SOURCE-SIDE-HASH.data or SOURCE-WIDTHxHEIGHT-HASH.data and nothing else; *tail is what follows it. */
static bool is_cache_name(const char *name, const char **tail)
{
    const char *p = NULL;
    if (lw_features_named(name, tail))
        return true;
    for (const lw_data_info *i = lw_data_sources(); i->name && !p; i++)
        if (lw_str_starts(name, i->name) && name[strlen(i->name)] == '-')
            p = name + strlen(i->name) + 1;
    size_t digits = p ? strspn(p, "0123456789") : 0;
    if (digits > 0 && p[digits] == 'x') {
        p += digits + 1;
        digits = strspn(p, "0123456789");
    }
    if (digits == 0 || p[digits] != '-')
        return false;
    p += digits + 1;
    if (strspn(p, "0123456789abcdef") != 16 || !lw_str_starts(p + 16, ".data"))
        return false;
    *tail = p + 16 + strlen(".data");
    return true;
}

/* What looking came to, but for 1. */
static int note_state(int rc, lw_cached *c)
{
    if (rc == LW_EUNSUPPORTED)
        c->state = LW_CACHED_OTHER;
    else if (rc == LW_EFORMAT)
        c->state = LW_CACHED_DAMAGED;
    else
        return rc;
    lw_errclear();
    return 0;
}

static int look_at_pictures(const char *path, const lw_map *map, lw_cached *c)
{
    lw_data_header h;
    if (map->size < sizeof h.magic || memcmp(map->data, LW_DATA_MAGIC, sizeof h.magic) != 0)
        return 1;
    LW_TRY(lw_data_image_check(path, map->data, map->size, &h));
    const char *text = (const char *)map->data + h.texts_at;
    for (int32_t i = 0; i < h.classes; i++)
        text += strlen(text) + 1;
    c->title = lw_strdup(text);
    c->rows = h.n_train + h.n_heldout;
    c->height = h.height;
    c->width = h.width;
    c->channels = h.channels;
    return c->title ? 0 : LW_ENOMEM;
}

/* Header and texts. A file that begins as none of these is none of ours: 1. */
static int look_inside(const char *path, lw_cached *c)
{
    LW_CLEANUP(lw_map_close) lw_map map = {0};
    LW_TRY(lw_map_open(&map, path));
    int rc = lw_features_look(path, map.data, map.size, &c->rows, &c->title);
    if (rc == 1)
        rc = look_at_pictures(path, &map, c);
    return note_state(rc, c);
}

static int take(lw_cached_list *l, const char *dir, const char *name)
{
    const char *tail;
    struct stat st;
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    if (!is_cache_name(name, &tail) || (*tail && !lw_str_eq(tail, UNFINISHED)))
        return 0;
    lw_path_join(&path, dir, name);
    if (path.failed)
        return lw_fail(LW_ENOMEM, "%s: no memory for its list", dir);
    /* Links lead elsewhere: not ours, whatever they are called. */
    if (lstat(path.s, &st) != 0 || !S_ISREG(st.st_mode))
        return 0;
    LW_TRY(lw_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at));
    lw_cached *c = &l->at[l->n++];
    *c = (lw_cached){.path = lw_strdup(path.s),
                     .bytes = (uint64_t)st.st_size,
                     .age = LW_MAX(lw_wall_time() - (double)st.st_mtim.tv_sec, 0.0),
                     .state = *tail ? LW_CACHED_UNFINISHED : LW_CACHED_WHOLE};
    if (!c->path)
        return LW_ENOMEM;
    int rc = *tail ? 0 : look_inside(path.s, c);
    if (rc <= 0 && !c->title)
        c->title = lw_strdup("");
    if (rc <= 0 && !c->title)
        return LW_ENOMEM;
    if (rc <= 0)
        return rc == LW_EIO ? 0 : rc; /* cannot be read: listed by its name */
    l->n--;
    lw_free(&c->path);
    lw_free(&c->title);
    return 0;
}

int lw_data_cache_list(const char *dir, lw_cached_list *out)
{
    char **names = NULL;
    size_t n = 0;
    bool found;
    LW_CLEANUP(lw_data_cache_list_clear) lw_cached_list l = {0};
    LW_TRY(lw_path_look(dir, &found));
    if (found) {
        LW_TRY(lw_list_dir(dir, &names, &n));
        int rc = 0;
        for (size_t i = 0; i < n && rc == 0; i++)
            rc = take(&l, dir, names[i]);
        lw_list_free(&names, n);
        LW_TRY(rc);
    }
    *out = l;
    l = (lw_cached_list){0};
    return 0;
}

static int remove_file(const char *path)
{
    if (unlink(path) == 0 || errno == ENOENT)
        return 0;
    return lw_fail(lw_errno_code(errno), "%s: cannot remove: %s", path, strerror(errno));
}

/* Under the lock nobody builds it; whoever waits for the lock makes a new one, since this is gone.
 */
int lw_data_cache_remove(const lw_cached *c)
{
    LW_CLEANUP(lw_str_clear) lw_str lock = {0};
    LW_CLEANUP(lw_lock_drop) int fd = -1;
    size_t base = strlen(c->path);
    base -= c->state == LW_CACHED_UNFINISHED ? strlen(UNFINISHED) : 0;
    lw_str_add_n(&lock, c->path, base);
    lw_str_add(&lock, ".lock");
    if (lock.failed)
        return lw_fail(LW_ENOMEM, "%s: no memory for its lock", c->path);
    int rc = lw_lock_try(lock.s, &fd);
    if (rc != 0)
        return rc;
    LW_TRY(remove_file(c->path));
    return remove_file(lock.s);
}
