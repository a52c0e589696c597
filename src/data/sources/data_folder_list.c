/* SPDX-License-Identifier: Apache-2.0 */
/* Which pictures a folder holds, of which class, and which of them are held out. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "data/sources/data_folder.h"
#include "formats/formats.h"

#define MAX_DEPTH 8 /* also ends loops of links */

void lw_folder_list_clear(folder_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        lw_free(&l->at[i].path);
        lw_free(&l->at[i].class_name);
    }
    lw_free(&l->at);
    lw_list_free(&l->classes, l->n_classes);
    *l = (folder_list){0};
}

static int add_file(folder_list *l, const char *path, const char *rel, bool heldout)
{
    LW_TRY(lw_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at));
    folder_file *f = &l->at[l->n++];
    *f = (folder_file){.path = lw_strdup(path), .class_name = lw_strdup(rel), .heldout = heldout};
    return f->path && f->class_name ? 0 : LW_ENOMEM;
}

static int walk(folder_list *l, const char *dir, const char *rel, bool heldout, int depth);

static int walk_names(folder_list *l, const char *dir, const char *rel, bool heldout, int depth,
                      char **names, size_t n)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    LW_CLEANUP(lw_str_clear) lw_str below = {0};
    for (size_t i = 0; i < n; i++) {
        if (names[i][0] == '.')
            continue;
        lw_path_join(&path, dir, names[i]);
        below.len = 0;
        lw_str_addf(&below, "%s%s%s", rel, *rel ? "/" : "", names[i]);
        if (path.failed || below.failed)
            return lw_fail(LW_ENOMEM, "no memory for the path of %s", names[i]);
        if (lw_path_is_dir(path.s))
            LW_TRY(walk(l, path.s, below.s, heldout, depth + 1));
        else if (lw_image_known(names[i]))
            LW_TRY(add_file(l, path.s, rel, heldout));
    }
    return 0;
}

static int walk(folder_list *l, const char *dir, const char *rel, bool heldout, int depth)
{
    char **names = NULL;
    size_t n = 0;
    if (depth > MAX_DEPTH)
        return lw_fail(LW_EFORMAT, "%s: folders more than %d deep (a link that leads back?)", dir,
                       MAX_DEPTH);
    LW_TRY(lw_list_dir(dir, &names, &n));
    int rc = walk_names(l, dir, rel, heldout, depth, names, n);
    lw_list_free(&names, n);
    return rc;
}

static int by_class_then_path(const void *a, const void *b)
{
    const folder_file *x = a, *y = b;
    int by_class = strcmp(x->class_name, y->class_name);
    return by_class ? by_class : strcmp(x->path, y->path);
}

static int by_split_then_order(const void *a, const void *b)
{
    const folder_file *x = a, *y = b;
    return x->heldout != y->heldout ? (int)x->heldout - (int)y->heldout : by_class_then_path(a, b);
}

/* Without folders for it: pictures 9, 19, ... of a class, or the last one of 2 to 9. */
static void hold_out(folder_list *l)
{
    for (size_t begin = 0, end; begin < l->n; begin = end) {
        for (end = begin + 1;
             end < l->n && lw_str_eq(l->at[end].class_name, l->at[begin].class_name); end++)
            continue;
        size_t n = end - begin;
        for (size_t i = 0; i < n; i++)
            l->at[begin + i].heldout = n >= 10 ? i % 10 == 9 : n >= 2 && i == n - 1;
    }
}

static int find_class(const folder_list *l, const char *name, int32_t *out)
{
    size_t lo = 0, hi = l->n_classes;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int order = strcmp(l->classes[mid], name);
        if (order == 0) {
            *out = (int32_t)mid;
            return 0;
        }
        *(order < 0 ? &lo : &hi) = order < 0 ? mid + 1 : mid;
    }
    return 1;
}

/* Files are sorted by split, class: names of training classes come out sorted. */
static int number_classes(folder_list *l, const char *dir)
{
    for (size_t i = 0; i < l->n && !l->at[i].heldout; i++) {
        l->n_train++;
        if (l->n_classes > 0 && lw_str_eq(l->classes[l->n_classes - 1], l->at[i].class_name))
            continue;
        LW_TRY(lw_grow(&l->classes, &l->cap_classes, l->n_classes + 1, sizeof *l->classes));
        l->classes[l->n_classes] = lw_strdup(l->at[i].class_name);
        if (!l->classes[l->n_classes])
            return LW_ENOMEM;
        l->n_classes++;
    }
    for (size_t i = 0; i < l->n; i++)
        if (find_class(l, l->at[i].class_name, &l->at[i].label) != 0)
            return lw_fail(LW_EFORMAT,
                           "%s: class '%s' has held-out pictures but none to train on (%s)", dir,
                           l->at[i].class_name, l->at[i].path);
    return 0;
}

int lw_folder_list(const char *dir, folder_list *out)
{
    static const char *const others[] = {"test", "val", "valid", "validation", "heldout"};
    LW_CLEANUP(lw_folder_list_clear) folder_list l = {0};
    LW_CLEANUP(lw_str_clear) lw_str train = {0};
    LW_CLEANUP(lw_str_clear) lw_str other = {0};
    bool split = false, has_train = lw_path_is_dir(lw_path_join(&train, dir, "train"));
    for (size_t i = 0; has_train && !split && i < LW_COUNT(others); i++)
        split = lw_path_is_dir(lw_path_join(&other, dir, others[i]));
    LW_TRY(walk(&l, has_train ? train.s : dir, "", false, 0));
    if (split)
        LW_TRY(walk(&l, other.s, "", true, 0));
    if (l.n == 0)
        return lw_fail(LW_EFORMAT, "%s: no .png, .jpg, .jpeg, .bmp or .webp below this folder",
                       dir);
    qsort(l.at, l.n, sizeof *l.at, by_class_then_path);
    if (!split)
        hold_out(&l);
    qsort(l.at, l.n, sizeof *l.at, by_split_then_order);
    LW_TRY(number_classes(&l, dir));
    for (size_t i = 0; i < l.n; i++) {
        const char *name = l.at[i].path + strlen(dir);
        l.at[i].name_at = (size_t)(name + strspn(name, "/") - l.at[i].path);
    }
    *out = l;
    l = (folder_list){0};
    return 0;
}
