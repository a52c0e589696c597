/* SPDX-License-Identifier: Apache-2.0 */
/* Writing safetensors: header from the declarations, data streamed. */
#include <string.h>

#include "formats/text/formats_json.h"
#include "formats/formats_safetensors_file.h"

#define DATA_ALIGN 64

struct lw_st_writer {
    lw_str path;
    lw_new_file file; /* open once data began */
    json_t *meta;     /* object of strings */
    json_t *header;   /* entries in the order given */
    size_t total;     /* bytes declared */
    size_t done;      /* bytes put */
    bool finished;
};

int lw_st_writer_new(const char *path, lw_st_writer **out)
{
    LW_CLEANUP(lw_st_writer_free) lw_st_writer *w = lw_calloc(1, sizeof *w);
    if (!w)
        return LW_ENOMEM;
    lw_str_add(&w->path, path);
    w->meta = json_object();
    w->header = json_object();
    if (w->path.failed || !w->meta || !w->header)
        return lw_fail(LW_ENOMEM, "%s: no memory for a writer", path);
    *out = lw_steal(&w);
    return 0;
}

void lw_st_writer_free(lw_st_writer **pp)
{
    lw_st_writer *w = *pp;
    if (!w)
        return;
    lw_new_file_drop(&w->file);
    json_decref(w->meta);
    json_decref(w->header);
    lw_str_clear(&w->path);
    lw_free(pp);
}

static int check_declaring(const lw_st_writer *w)
{
    LW_ASSERT(!w->file.open && !w->finished, "%s: declared after data began", lw_str_c(&w->path));
    return 0;
}

int lw_st_writer_meta(lw_st_writer *w, const char *key, const char *value)
{
    LW_TRY(check_declaring(w));
    json_t *v = json_string(value);
    if (!v || json_object_set_new(w->meta, key, v) < 0)
        return lw_fail(LW_EFORMAT, "%s: metadata '%s' is not UTF-8", lw_str_c(&w->path), key);
    return 0;
}

int lw_st_writer_add(lw_st_writer *w, const char *name, lw_elem type, int rank,
                     const int64_t *shape)
{
    LW_TRY(check_declaring(w));
    const char *path = lw_str_c(&w->path);
    if (strcmp(name, "__metadata__") == 0 || json_object_get(w->header, name))
        return lw_fail(LW_EUSAGE, "%s: tensor name '%s' is taken", path, name);
    if (rank < 0 || rank > LW_ARRAY_MAX_RANK)
        return lw_fail(LW_ESHAPE, "%s: tensor '%s' has rank %d, at most %d", path, name, rank,
                       LW_ARRAY_MAX_RANK);
    size_t bytes = lw_elem_size(type), end;
    LW_CLEANUP(lw_json_drop) json_t *dims = json_array();
    for (int i = 0; i < rank; i++) {
        if (shape[i] < 0 || !lw_mul_size(bytes, (size_t)shape[i], &bytes))
            return lw_fail(LW_ESHAPE, "%s: tensor '%s' has a bad shape", path, name);
        json_array_append_new(dims, json_integer(shape[i]));
    }
    if (__builtin_add_overflow(w->total, bytes, &end) || end > (size_t)INT64_MAX)
        return lw_fail(LW_ESHAPE, "%s: tensor '%s' makes the file too large", path, name);
    json_t *entry = json_pack("{s:s, s:O, s:[I,I]}", "dtype", lw_elem_name(type), "shape", dims,
                              "data_offsets", (json_int_t)w->total, (json_int_t)end);
    if (!entry || json_object_set_new(w->header, name, entry) < 0)
        return lw_fail(LW_EFORMAT, "%s: tensor name '%s' is not UTF-8", path, name);
    w->total = end;
    return 0;
}

/* Length, header, blanks up to a multiple of DATA_ALIGN. */
int lw_st_writer_header(const lw_st_writer *w, lw_str *out)
{
    LW_CLEANUP(lw_json_drop) json_t *root = json_object();
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    if (!root)
        return lw_fail(LW_ENOMEM, "%s: no memory for its header", lw_str_c(&w->path));
    if (json_object_size(w->meta) && json_object_set(root, "__metadata__", w->meta) < 0)
        return lw_fail(LW_ENOMEM, "%s: no memory for its header", lw_str_c(&w->path));
    if (json_object_update(root, w->header) < 0)
        return lw_fail(LW_ENOMEM, "%s: no memory for its header", lw_str_c(&w->path));
    lw_json_dump(root, 0, &text);
    while ((text.len + sizeof(uint64_t)) % DATA_ALIGN && !text.failed)
        lw_str_add(&text, " ");
    uint64_t len = text.len;
    lw_str_add_n(out, (const char *)&len, sizeof len);
    lw_str_add_n(out, lw_str_c(&text), text.len);
    return text.failed || out->failed || text.len > LW_ST_MAX_HEADER
               ? lw_fail(LW_ENOMEM, "%s: header too large", lw_str_c(&w->path))
               : 0;
}

static int begin(lw_st_writer *w)
{
    LW_CLEANUP(lw_str_clear) lw_str head = {0};
    LW_TRY(lw_st_writer_header(w, &head));
    LW_TRY(lw_new_file_begin(&w->file, lw_str_c(&w->path)));
    return lw_new_file_put(&w->file, head.s, head.len);
}

int lw_st_writer_put(lw_st_writer *w, const void *bytes, size_t n)
{
    LW_ASSERT(!w->finished, "%s: data after finish", lw_str_c(&w->path));
    LW_ASSERT(n <= w->total - w->done, "%s: %zu bytes put after %zu of %zu", lw_str_c(&w->path), n,
              w->done, w->total);
    if (!w->file.open)
        LW_TRY(begin(w));
    LW_TRY(lw_new_file_put(&w->file, bytes, n));
    w->done += n;
    return 0;
}

int lw_st_writer_finish(lw_st_writer *w)
{
    LW_ASSERT(w->done == w->total, "%s: %zu of %zu bytes put", lw_str_c(&w->path), w->done,
              w->total);
    if (!w->file.open)
        LW_TRY(begin(w));
    w->finished = true;
    return lw_new_file_finish(&w->file);
}

int lw_st_save(const char *path, const lw_st_tensor *tensors, size_t n, const char *const *meta,
               size_t n_meta)
{
    LW_CLEANUP(lw_st_writer_free) lw_st_writer *w = NULL;
    LW_TRY(lw_st_writer_new(path, &w));
    for (size_t i = 0; i < n_meta; i++)
        LW_TRY(lw_st_writer_meta(w, meta[2 * i], meta[2 * i + 1]));
    for (size_t i = 0; i < n; i++)
        LW_TRY(lw_st_writer_add(w, tensors[i].name, tensors[i].type, tensors[i].rank,
                                tensors[i].shape));
    for (size_t i = 0; i < n; i++) {
        size_t bytes = lw_elem_size(tensors[i].type);
        for (int d = 0; d < tensors[i].rank; d++)
            bytes *= (size_t)tensors[i].shape[d];
        LW_TRY(lw_st_writer_put(w, tensors[i].data, bytes));
    }
    return lw_st_writer_finish(w);
}
