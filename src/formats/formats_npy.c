/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files <-> lw_array. */
#include "formats/formats_npy.h"

#include <string.h>

#include "base/base.h"
#include "formats/formats_npy_header.h"

/* src in Fortran order -> dst in C order: walk dst, keeping the source offset of the
 * index vector. */
static void copy_fortran(const lw_array *a, const char *src)
{
    size_t size = lw_elem_size(a->type), stride[LW_ARRAY_MAX_RANK], from = 0;
    int64_t index[LW_ARRAY_MAX_RANK] = {0};
    size_t s = size;
    for (int d = 0; d < a->rank; d++) {
        stride[d] = s;
        s *= (size_t)a->shape[d];
    }
    for (int64_t i = 0; i < a->count; i++) {
        memcpy((char *)a->data + (size_t)i * size, src + from, size);
        for (int d = a->rank - 1; d >= 0; d--) {
            from += stride[d];
            if (++index[d] < a->shape[d])
                break;
            from -= stride[d] * (size_t)a->shape[d];
            index[d] = 0;
        }
    }
}

int lw_npy_from_fortran(lw_array *a)
{
    lw_array c;
    LW_TRY(lw_array_init(&c, a->type, a->rank, a->shape));
    copy_fortran(&c, a->data);
    lw_array_clear(a);
    *a = c;
    return 0;
}

int lw_npy_wrong_size(const char *what, const lw_npy_header *h, size_t need, size_t have)
{
    char text[192];
    return lw_fail(LW_EFORMAT, "%s: %s %s needs %zu bytes of data, the file has %zu", what,
                   lw_elem_name(h->type), lw_shape_text(text, h->rank, h->shape), need, have);
}

int lw_npy_parse(const char *what, const void *bytes, size_t n, lw_array *out)
{
    lw_npy_header h;
    LW_TRY(lw_npy_header_read(what, bytes, n, &h));
    /* size against what is there before anything is allocated */
    size_t need = lw_elem_size(h.type), have = n - h.data_at;
    char text[192];
    for (int i = 0; i < h.rank && need; i++)
        if (!lw_mul_size(need, (size_t)h.shape[i], &need))
            return lw_fail(LW_EFORMAT, "%s: shape %s overflows", what,
                           lw_shape_text(text, h.rank, h.shape));
    if (need != have)
        return lw_npy_wrong_size(what, &h, need, have);
    lw_array a;
    LW_TRY(lw_array_init(&a, h.type, h.rank, h.shape));
    const char *data = (const char *)bytes + h.data_at;
    if (h.fortran && h.rank > 1)
        copy_fortran(&a, data);
    else
        memcpy(a.data, data, a.bytes);
    *out = a;
    return 0;
}

int lw_npy_load(const char *path, lw_array *out)
{
    LW_CLEANUP(lw_map_close) lw_map map = {0};
    LW_TRY(lw_map_open(&map, path));
    return lw_npy_parse(path, map.data, map.size, out);
}

int lw_npy_load_f32(const char *path, lw_array *out)
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    LW_TRY(lw_npy_load(path, &a));
    LW_TRY(lw_array_make_f32(&a));
    *out = a;
    a = (lw_array){0};
    return 0;
}

int lw_npy_save(const char *path, lw_elem type, int rank, const int64_t *shape, const void *data)
{
    LW_CLEANUP(lw_str_clear) lw_str file = {0};
    LW_TRY(lw_npy_header_write(path, type, rank, shape, &file));
    size_t bytes = lw_elem_size(type);
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0 || !lw_mul_size(bytes, (size_t)shape[i], &bytes))
            return lw_fail(LW_ESHAPE, "%s: a bad shape to save", path);
    lw_str_add_n(&file, data, bytes);
    if (file.failed)
        return lw_fail(LW_ENOMEM, "%s: no memory for %zu bytes", path, bytes);
    return lw_file_write(path, file.s, file.len);
}
