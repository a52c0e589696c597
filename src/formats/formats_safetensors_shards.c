/* SPDX-License-Identifier: Apache-2.0 */
/* model.safetensors.index.json: {"weight_map": {tensor name: file name}}, shards beside it. */
#include <string.h>

#include "formats/text/formats_json.h"
#include "formats/formats_safetensors_file.h"

#define MAX_SHARDS 4096

/* The shard called file, opened on first use. */
static int open_shard(lw_st_file *f, const char *file, lw_st_file **out)
{
    bool weights = lw_str_ends(file, ".safetensors") || lw_str_ends(file, ".bin");
    if (strchr(file, '/') || !weights)
        return lw_fail(LW_EFORMAT,
                       "%s: shard '%s' must be a .safetensors or .bin file name without a folder",
                       f->path, file);
    const char *slash = strrchr(f->path, '/');
    int dir = slash ? (int)(slash - f->path + 1) : 0;
    const char *path = lw_arena_printf(f->arena, "%.*s%s", dir, f->path, file);
    if (!path)
        return LW_ENOMEM;
    for (size_t i = 0; i < f->n_shards; i++)
        if (strcmp(lw_st_path(f->shards[i]), path) == 0) {
            *out = f->shards[i];
            return 0;
        }
    if (f->n_shards == MAX_SHARDS)
        return lw_fail(LW_EFORMAT, "%s: more than %d shards", f->path, MAX_SHARDS);
    int rc = lw_st_open(path, out);
    if (rc < 0)
        return lw_fail_in(rc, "%s: ", f->path);
    f->shards[f->n_shards++] = *out;
    return 0;
}

static int read_map(lw_st_file *f, const json_t *map)
{
    const char *name;
    json_t *value;
    f->tensors = lw_arena_alloc(f->arena, (json_object_size(map) + 1) * sizeof *f->tensors);
    f->shards = lw_arena_alloc(f->arena, MAX_SHARDS * sizeof(lw_st_file *));
    if (!f->tensors || !f->shards)
        return LW_ENOMEM;
    json_object_foreach((json_t *)map, name, value)
    {
        lw_st_file *shard;
        const lw_st_tensor *t;
        if (!json_is_string(value))
            return lw_fail(LW_EFORMAT, "%s: weight_map '%s' must be a file name", f->path, name);
        LW_TRY(open_shard(f, json_string_value(value), &shard));
        LW_TRY(lw_st_get(shard, name, &t));
        f->tensors[f->n++] = *t;
    }
    lw_st_sort(f->tensors, f->n);
    if (f->n_shards > 0) { /* shards repeat the same metadata; the first speaks for all */
        f->meta = f->shards[0]->meta;
        f->n_meta = f->shards[0]->n_meta;
    }
    return 0;
}

int lw_st_open_index(const char *path, lw_st_file **out)
{
    LW_CLEANUP(lw_json_drop) json_t *root = NULL;
    LW_CLEANUP(lw_st_close) lw_st_file *f = NULL;
    const json_t *map;
    LW_TRY(lw_json_load(path, &root));
    LW_TRY(lw_json_get_object(root, path, "weight_map", &map));
    LW_TRY(lw_st_file_new(path, &f));
    LW_TRY(read_map(f, map));
    *out = lw_steal(&f);
    return 0;
}
