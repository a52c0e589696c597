/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `manifest`: the pictures a JSON file lists, in its order, {"num_images": N, "root": DIR, "paths":
 * [...]}. What `encode` writes beside its features is one.
 */
#include <stdlib.h>
#include <string.h>

#include "data/sources/data_folder.h"
#include "data/sources/data_source.h"
#include "formats/formats.h"

/* "FILE[,root=DIR]": the file's name and DIR ("" when there is none). */
static int split_arg(const lw_data_job *job, lw_str *file, lw_str *root)
{
    static const char word[] = ",root=";
    const char *arg, *found = NULL;
    LW_TRY(lw_data_job_path(job, &arg));
    for (const char *p = strstr(arg, word); p; p = strstr(p + 1, word))
        found = p;
    lw_str_add_n(file, arg, found ? (size_t)(found - arg) : strlen(arg));
    lw_str_add(root, found ? found + strlen(word) : "");
    if (file->failed || root->failed)
        return lw_fail(LW_ENOMEM, "data '%s': no memory for a path", job->spec);
    return 0;
}

/* What relative paths begin at: DIR of the spec, else "root" of the file, else the file's folder. */
static void find_root(const char *file, const char *said, lw_str *root)
{
    const char *slash = strrchr(file, '/');
    if (root->len > 0)
        return;
    if (*said == '/') {
        lw_str_add(root, said);
        return;
    }
    lw_str_add_n(root, file, slash ? (size_t)(slash - file) + 1 : 0);
    lw_str_add(root, *said ? said : slash ? "" : ".");
}

/* The last folder of a path; "" when there is none. */
static char *class_of(const char *path)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    const char *slash = strrchr(path, '/'), *begin = slash;
    while (begin && begin > path && begin[-1] != '/')
        begin--;
    lw_str_add_n(&s, begin ? begin : "", begin ? (size_t)(slash - begin) : 0);
    return lw_strdup(lw_str_c(&s));
}

static int add_path(folder_list *l, const char *root, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str path = {0};
    if (*name == '/')
        lw_str_add(&path, name);
    else
        lw_path_join(&path, root, name);
    LW_TRY(lw_grow(&l->at, &l->cap, l->n + 1, sizeof *l->at));
    folder_file *f = &l->at[l->n++];
    *f = (folder_file){.path = lw_strdup(lw_str_c(&path)),
                       .name_at = path.len - strlen(name),
                       .class_name = class_of(lw_str_c(&path))};
    return !path.failed && f->path && f->class_name ? 0 : LW_ENOMEM;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Classes are the folders of the paths, sorted, as those of a folder of pictures are. */
static int find_classes(folder_list *l)
{
    LW_CLEANUP(lw_free) char **all = lw_calloc(l->n, sizeof *all);
    if (!all)
        return LW_ENOMEM;
    for (size_t i = 0; i < l->n; i++)
        all[i] = l->at[i].class_name;
    qsort(all, l->n, sizeof *all, by_text);
    for (size_t i = 0; i < l->n; i++) {
        if (i > 0 && lw_str_eq(all[i], all[i - 1]))
            continue;
        LW_TRY(lw_grow(&l->classes, &l->cap_classes, l->n_classes + 1, sizeof *l->classes));
        l->classes[l->n_classes] = lw_strdup(all[i]);
        if (!l->classes[l->n_classes++])
            return LW_ENOMEM;
    }
    for (size_t i = 0; i < l->n; i++) {
        char *const *c = bsearch(&l->at[i].class_name, l->classes, l->n_classes, sizeof *l->classes,
                                 by_text);
        l->at[i].label = (int32_t)(c - l->classes);
    }
    l->n_train = l->n;
    return 0;
}

int lw_manifest_list(const char *file, lw_str *root, folder_list *out)
{
    LW_CLEANUP(lw_folder_list_clear) folder_list l = {0};
    LW_CLEANUP(lw_json_drop) json_t *j = NULL;
    const json_t *paths = NULL, *path;
    const char *said = "";
    int64_t n = -1;
    size_t i;
    LW_TRY(lw_json_load(file, &j));
    LW_TRY(lw_json_get_array(j, file, "paths", &paths));
    LW_TRY(lw_json_opt_i64(j, file, "num_images", &n));
    LW_TRY(lw_json_opt_str(j, file, "root", &said));
    if (n != -1 && n != (int64_t)json_array_size(paths))
        return lw_fail(LW_EFORMAT, "%s: 'num_images' is %lld, but 'paths' has %zu", file,
                       (long long)n, json_array_size(paths));
    if (json_array_size(paths) == 0)
        return lw_fail(LW_EFORMAT, "%s: 'paths' lists no picture", file);
    find_root(file, said, root);
    json_array_foreach(paths, i, path)
    {
        const char *name = json_string_value(path);
        if (!name || !*name)
            return lw_fail(LW_EFORMAT, "%s: 'paths' entry %zu is no path", file, i);
        LW_TRY(add_path(&l, lw_str_c(root), name));
    }
    LW_TRY(find_classes(&l));
    *out = l;
    l = (folder_list){0};
    return 0;
}

int lw_data_listed(const char *file, const char *data, lw_str *out)
{
    static const char folder[] = "folder:";
    if (data && !lw_str_starts(data, folder))
        return lw_fail(LW_EUSAGE, "--manifest lists files: %s is no folder:DIR that they lie in",
                       data);
    lw_str_addf(out, "manifest:%s%s%s", file, data ? ",root=" : "",
                data ? data + strlen(folder) : "");
    return out->failed ? LW_ENOMEM : 0;
}

static int manifest_plan(lw_data_job *job)
{
    LW_CLEANUP(lw_str_clear) lw_str file = {0};
    folder_list *l = job->priv = lw_calloc(1, sizeof *l);
    if (!l)
        return LW_ENOMEM;
    LW_TRY(split_arg(job, &file, &job->root));
    LW_TRY(lw_data_job_place(job, lw_str_c(&file)));
    LW_TRY(lw_data_job_file(job, lw_str_c(&file)));
    int rc = lw_manifest_list(lw_str_c(&file), &job->root, l);
    if (rc < 0)
        return lw_fail_in(rc, "data '%s': ", job->spec);
    return lw_folder_plan(job);
}

const lw_data_source lw_data_source_manifest = {
    .info = {"manifest", "manifest:FILE[,root=DIR]",
             "pictures listed in JSON, {\"num_images\": N, \"paths\": [...]}, below DIR (the "
             "file's \"root\", else its folder); class = parent folder; none is held out"},
    .plan = manifest_plan,
    .settle = lw_folder_settle,
    .build = lw_folder_build,
    .scan = lw_folder_scan,
    .clear = lw_folder_clear,
};
