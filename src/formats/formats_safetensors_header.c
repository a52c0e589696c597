/* SPDX-License-Identifier: Apache-2.0 */
/* The header of a safetensors file: parsed, then checked against the bytes that follow it. */
#include <stdlib.h>
#include <string.h>

#include "formats/text/formats_json.h"
#include "formats/formats_safetensors_file.h"

/* What an entry says before it is believed. */
typedef struct span {
    size_t begin, end;
    const char *name;
} span;

static int read_type(const char *where, const json_t *entry, lw_elem *out)
{
    const char *name;
    LW_TRY(lw_json_get_str(entry, where, "dtype", &name));
    for (int e = 0; e < LW_ELEM_COUNT; e++)
        if (strcmp(name, lw_elem_name((lw_elem)e)) == 0) {
            *out = (lw_elem)e;
            return 0;
        }
    return lw_fail(LW_EFORMAT,
                   "%s: dtype '%s' is not one of F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL", where,
                   name);
}

/* shape into t, with count and bytes; each product checked. */
static int read_shape(const char *where, const json_t *entry, lw_st_tensor *t)
{
    const json_t *shape;
    LW_TRY(lw_json_get_array(entry, where, "shape", &shape));
    size_t rank = json_array_size(shape), count = 1;
    if (rank > LW_ARRAY_MAX_RANK)
        return lw_fail(LW_EFORMAT, "%s: rank %zu, at most %d", where, rank, LW_ARRAY_MAX_RANK);
    t->rank = (int)rank;
    bool empty = false;
    for (size_t i = 0; i < rank; i++) {
        const json_t *d = json_array_get(shape, i);
        if (!json_is_integer(d) || json_integer_value(d) < 0)
            return lw_fail(LW_EFORMAT, "%s: a shape holds integers from 0 up", where);
        t->shape[i] = json_integer_value(d);
        empty = empty || t->shape[i] == 0;
    }
    size_t bytes = empty ? 0 : lw_elem_size(t->type);
    for (size_t i = 0; i < rank && !empty; i++)
        if (!lw_mul_size(count, (size_t)t->shape[i], &count) ||
            !lw_mul_size(count, lw_elem_size(t->type), &bytes))
            return lw_fail(LW_EFORMAT, "%s: the shape's size overflows", where);
    t->count = empty ? 0 : (int64_t)count;
    t->bytes = bytes;
    return 0;
}

/* data_offsets against the shape and the size of the data part. */
static int read_offsets(const char *where, const json_t *entry, const lw_st_tensor *t,
                        size_t data_size, span *out)
{
    const json_t *offsets;
    LW_TRY(lw_json_get_array(entry, where, "data_offsets", &offsets));
    const json_t *b = json_array_get(offsets, 0), *e = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(b) || !json_is_integer(e))
        return lw_fail(LW_EFORMAT, "%s: data_offsets must be two integers", where);
    json_int_t begin = json_integer_value(b), end = json_integer_value(e);
    if (begin < 0 || end < begin || (size_t)end > data_size)
        return lw_fail(LW_EFORMAT,
                       "%s: data_offsets [%lld,%lld] are not within the %zu bytes of data", where,
                       (long long)begin, (long long)end, data_size);
    if ((size_t)(end - begin) != t->bytes) {
        char text[192];
        return lw_fail(LW_EFORMAT, "%s: %s %s needs %zu bytes, data_offsets hold %lld", where,
                       lw_elem_name(t->type), lw_shape_text(text, t->rank, t->shape), t->bytes,
                       (long long)(end - begin));
    }
    *out = (span){(size_t)begin, (size_t)end, t->name};
    return 0;
}

static int read_meta(lw_st_file *f, const json_t *meta)
{
    const char *key;
    json_t *value;
    if (!json_is_object(meta))
        return lw_fail(LW_EFORMAT, "%s: __metadata__ must be an object of strings", f->path);
    f->meta = lw_arena_alloc(f->arena, json_object_size(meta) * 2 * sizeof *f->meta);
    if (!f->meta)
        return LW_ENOMEM;
    json_object_foreach((json_t *)meta, key, value)
    {
        if (!json_is_string(value))
            return lw_fail(LW_EFORMAT, "%s: __metadata__ '%s' must be a string", f->path, key);
        const char **pair = &f->meta[2 * f->n_meta];
        pair[0] = lw_arena_strdup(f->arena, key);
        pair[1] = lw_arena_strdup(f->arena, json_string_value(value));
        if (!pair[0] || !pair[1])
            return LW_ENOMEM;
        f->n_meta++;
    }
    return 0;
}

static int by_begin(const void *a, const void *b)
{
    const span *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* Tensors must tile the data: a hole or an overlap hides bytes or serves them twice. */
static int check_tiling(const char *path, span *spans, size_t n, size_t data_size)
{
    size_t at = 0;
    if (n > 0)
        qsort(spans, n, sizeof *spans, by_begin);
    for (size_t i = 0; i < n; i++) {
        if (spans[i].begin < at)
            return lw_fail(LW_EFORMAT, "%s: tensors '%s' and '%s' overlap at byte %zu of the data",
                           path, spans[i - 1].name, spans[i].name, spans[i].begin);
        if (spans[i].begin > at)
            return lw_fail(LW_EFORMAT, "%s: %zu bytes before tensor '%s' belong to no tensor", path,
                           spans[i].begin - at, spans[i].name);
        at = spans[i].end;
    }
    if (at != data_size)
        return lw_fail(LW_EFORMAT, "%s: %zu bytes at the end belong to no tensor", path,
                       data_size - at);
    return 0;
}

static int read_tensors(lw_st_file *f, json_t *root, const unsigned char *data, size_t data_size)
{
    const char *key;
    json_t *entry;
    size_t max = json_object_size(root);
    f->tensors = lw_arena_alloc(f->arena, (max + 1) * sizeof *f->tensors);
    LW_CLEANUP(lw_free) span *spans = lw_calloc(max + 1, sizeof *spans);
    LW_CLEANUP(lw_str_clear) lw_str where = {0};
    if (!f->tensors || !spans)
        return LW_ENOMEM;
    json_object_foreach(root, key, entry)
    {
        if (strcmp(key, "__metadata__") == 0) {
            LW_TRY(read_meta(f, entry));
            continue;
        }
        lw_st_tensor *t = &f->tensors[f->n];
        where.len = 0;
        lw_str_addf(&where, "%s: tensor '%s'", f->path, key);
        t->name = lw_arena_strdup(f->arena, key);
        if (!t->name)
            return LW_ENOMEM;
        LW_TRY(read_type(lw_str_c(&where), entry, &t->type));
        LW_TRY(read_shape(lw_str_c(&where), entry, t));
        LW_TRY(read_offsets(lw_str_c(&where), entry, t, data_size, &spans[f->n]));
        t->data = data + spans[f->n].begin;
        f->n++;
    }
    LW_TRY(check_tiling(f->path, spans, f->n, data_size));
    lw_st_sort(f->tensors, f->n);
    return 0;
}

int lw_st_read_header(lw_st_file *f, const unsigned char *bytes, size_t size)
{
    uint64_t len;
    if (size < sizeof len)
        return lw_fail(LW_EFORMAT, "%s: %zu bytes is too short for a safetensors file", f->path,
                       size);
    memcpy(&len, bytes, sizeof len);
    if (len > LW_ST_MAX_HEADER)
        return lw_fail(LW_EFORMAT,
                       "%s: a header of %llu bytes is no safetensors header (at most %zu)", f->path,
                       (unsigned long long)len, LW_ST_MAX_HEADER);
    if (len > size - sizeof len)
        return lw_fail(LW_EFORMAT, "%s: header of %llu bytes in a file of %zu: truncated", f->path,
                       (unsigned long long)len, size);
    const char *text = (const char *)bytes + sizeof len;
    if (len < 2 || text[0] != '{')
        return lw_fail(LW_EFORMAT, "%s: the header does not begin with '{'", f->path);
    LW_CLEANUP(lw_json_drop) json_t *root = NULL;
    LW_TRY(lw_json_parse(f->path, text, (size_t)len, &root));
    return read_tensors(f, root, bytes + sizeof len + len, size - sizeof len - (size_t)len);
}
