/* SPDX-License-Identifier: Apache-2.0 */
/* Opening safetensors files and looking tensors up. */
#include "formats/formats_safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "formats/formats_safetensors_file.h"
#include "formats/torch/formats_torch.h"

int lw_st_file_new(const char *path, lw_st_file **out)
{
    lw_st_file *f = lw_calloc(1, sizeof *f);
    if (!f)
        return LW_ENOMEM;
    int rc = lw_arena_new(&f->arena);
    if (rc == 0 && !(f->path = lw_arena_strdup(f->arena, path)))
        rc = LW_ENOMEM;
    if (rc < 0)
        lw_st_close(&f);
    else
        *out = f;
    return rc;
}

void lw_st_close(lw_st_file **pp)
{
    lw_st_file *f = *pp;
    if (!f)
        return;
    for (size_t i = 0; i < f->n_shards; i++)
        lw_st_close(&f->shards[i]);
    lw_map_close(&f->map);
    lw_arena_free(&f->arena);
    lw_free(pp);
}

static int read_bytes(lw_st_file *f, const unsigned char *bytes, size_t n)
{
    return lw_torch_is(bytes, n) ? lw_torch_read(f, bytes, n) : lw_st_read_header(f, bytes, n);
}

int lw_st_parse(const char *what, const void *bytes, size_t n, lw_st_file **out)
{
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_TRY(lw_st_file_new(what, &f));
    LW_TRY(read_bytes(f, bytes, n));
    *out = lw_steal(&f);
    return 0;
}

int lw_st_open(const char *path, lw_st_file **out)
{
    if (lw_str_ends(path, ".index.json"))
        return lw_st_open_index(path, out);
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    LW_TRY(lw_st_file_new(path, &f));
    LW_TRY(lw_map_open(&f->map, path));
    LW_TRY(read_bytes(f, f->map.data, f->map.size));
    *out = lw_steal(&f);
    return 0;
}

const char *lw_st_path(const lw_st_file *f)
{
    return f->path;
}

size_t lw_st_count(const lw_st_file *f)
{
    return f->n;
}

const lw_st_tensor *lw_st_at(const lw_st_file *f, size_t i)
{
    LW_ASSERT(i < f->n, "tensor %zu of %zu", i, f->n);
    return &f->tensors[i];
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const lw_st_tensor *)a)->name, ((const lw_st_tensor *)b)->name);
}

void lw_st_sort(lw_st_tensor *tensors, size_t n)
{
    if (n > 0)
        qsort(tensors, n, sizeof *tensors, by_name);
}

const lw_st_tensor *lw_st_find(const lw_st_file *f, const char *name)
{
    lw_st_tensor key = {.name = name};
    return f->n ? bsearch(&key, f->tensors, f->n, sizeof key, by_name) : NULL;
}

int lw_st_get(const lw_st_file *f, const char *name, const lw_st_tensor **out)
{
    const lw_st_tensor *t = lw_st_find(f, name);
    if (!t) {
        const char *near = NULL;
        int best = 4; /* suggest only what looks like a slip of the keys */
        for (size_t i = 0; i < f->n; i++) {
            int d = lw_str_distance(name, f->tensors[i].name);
            if (d < best) {
                best = d;
                near = f->tensors[i].name;
            }
        }
        return lw_fail(LW_EFORMAT, "%s: tensor '%s' is missing%s%s%s", f->path, name,
                       near ? " (there is '" : "", near ? near : "", near ? "')" : "");
    }
    *out = t;
    return 0;
}

const char *lw_st_meta(const lw_st_file *f, const char *key)
{
    for (size_t i = 0; i < f->n_meta; i++)
        if (strcmp(f->meta[2 * i], key) == 0)
            return f->meta[2 * i + 1];
    return NULL;
}

size_t lw_st_meta_count(const lw_st_file *f)
{
    return f->n_meta;
}

void lw_st_meta_at(const lw_st_file *f, size_t i, const char **key, const char **value)
{
    LW_ASSERT(i < f->n_meta, "metadata %zu of %zu", i, f->n_meta);
    *key = f->meta[2 * i];
    *value = f->meta[2 * i + 1];
}
