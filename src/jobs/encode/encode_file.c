/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in one file, row after row. */
#include "jobs/encode/encode_file.h"

#include <string.h>

enum { NOTE_EVERY = 10 }; /* seconds of work that a killed process may lose */

int lw_encode_kind_of(const char *path, lw_encode_kind *out)
{
    static const char *const endings[] = {".safetensors", ".npz", ".npy"};
    for (int k = 0; k < (int)LW_COUNT(endings); k++)
        if (lw_str_ends(path, endings[k]) && !lw_str_eq(path, endings[k])) {
            *out = (lw_encode_kind)k;
            return 0;
        }
    return lw_fail(LW_EUSAGE, "--output %s: the name ends in .safetensors, .npz or .npy", path);
}

/* ---- where everything is --------------------------------------------------------------------- */

static int write_safetensors_head(lw_encode_file *f)
{
    LW_CLEANUP(lw_st_writer_free) lw_st_writer *w = NULL;
    const char *key;
    json_t *value;
    LW_TRY(lw_st_writer_new(f->path, &w));
    json_object_foreach((json_t *)f->about, key, value)
        LW_TRY(lw_st_writer_meta(w, key, json_string_value(value)));
    for (int i = 0; i < f->n; i++)
        LW_TRY(lw_st_writer_add(w, f->array[i].name, f->array[i].type, f->array[i].rank,
                                f->array[i].shape));
    return lw_st_writer_header(w, &f->head);
}

static int write_head(lw_encode_file *f)
{
    const lw_encode_array *a = &f->array[0];
    if (f->kind == LW_ENCODE_SAFETENSORS)
        return write_safetensors_head(f);
    return f->kind == LW_ENCODE_NPY
               ? lw_npy_header_write(f->path, a->type, a->rank, a->shape, &f->head)
               : 0;
}

int lw_encode_file_layout(lw_encode_file *f)
{
    LW_ASSERT(f->kind != LW_ENCODE_NPY || f->n == 1, "%d arrays in an .npy", f->n);
    f->part.fd = -1;
    lw_str_addf(&f->state, "%s" LW_PART_SUFFIX ".json", f->path);
    LW_TRY(write_head(f));
    f->bytes = f->head.len;
    for (int i = 0; i < f->n; i++) {
        lw_encode_array *a = &f->array[i];
        a->row = lw_elem_size(a->type);
        for (int k = 1; k < a->rank; k++)
            a->row *= (size_t)a->shape[k];
        a->at = f->bytes;
        f->bytes += (uint64_t)f->rows * a->row;
    }
    return f->state.failed || f->head.failed ? LW_ENOMEM : 0;
}

uint64_t lw_encode_file_disk(const lw_encode_file *f)
{
    return f->kind == LW_ENCODE_NPZ ? 2 * f->bytes : f->bytes;
}

int lw_encode_file_room(const lw_encode_file *f)
{
    LW_CLEANUP(lw_str_clear) lw_str part = {0}, dir = {0};
    char need[32], have[32];
    uint64_t room, held = 0, disk = lw_encode_file_disk(f);
    lw_path_parent(f->path, &dir);
    LW_TRY(lw_disk_free(lw_str_c(&dir), &room));
    lw_str_addf(&part, "%s" LW_PART_SUFFIX, f->path);
    if (lw_path_exists(lw_str_c(&part)))
        LW_TRY(lw_file_size(lw_str_c(&part), &held));
    return disk <= room + held
               ? 0
               : lw_fail(LW_EIO, "%s: %s to write%s, but the disk has room for %s", f->path,
                         lw_fmt_bytes(need, disk),
                         f->kind == LW_ENCODE_NPZ ? " (an .npz twice, until it is packed)" : "",
                         lw_fmt_bytes(have, room + held));
}

/* ---- writing --------------------------------------------------------------------------------- */

int lw_encode_file_open(lw_encode_file *f, bool resume)
{
    uint64_t size = 0;
    LW_TRY(lw_encode_state_read(f, resume, &f->done));
    LW_TRY(lw_part_file_open(&f->part, f->path, f->done == 0, f->bytes));
    f->saved = lw_now();
    if (f->done == 0) {
        LW_TRY(lw_part_file_put(&f->part, 0, lw_str_c(&f->head), f->head.len));
        return lw_encode_state_write(f);
    }
    LW_TRY(lw_file_size(lw_str_c(&f->part.part), &size));
    return size == f->bytes
               ? 0
               : lw_fail(LW_EFORMAT, "%s: %llu bytes, not %llu: remove it to start again",
                         lw_str_c(&f->part.part), (unsigned long long)size,
                         (unsigned long long)f->bytes);
}

int lw_encode_file_put(lw_encode_file *f, int i, int64_t first, int64_t n, const void *rows)
{
    const lw_encode_array *a = &f->array[i];
    return lw_part_file_put(&f->part, a->at + (uint64_t)first * a->row, rows, (size_t)n * a->row);
}

int lw_encode_file_note(lw_encode_file *f, int64_t done, bool now)
{
    f->done = done;
    if (!now && lw_now() - f->saved < NOTE_EVERY)
        return 0;
    LW_TRY(lw_part_file_sync(&f->part)); /* before it is said that they are there */
    LW_TRY(lw_encode_state_write(f));
    f->saved = lw_now();
    return 0;
}

static int pack_npz(lw_encode_file *f)
{
    LW_CLEANUP(lw_map_close) lw_map map = {0};
    lw_npz_entry entry[LW_ENCODE_ARRAYS];
    LW_CLEANUP(lw_str_clear) lw_str names = {0};
    LW_TRY(lw_map_open(&map, lw_str_c(&f->part.part)));
    for (int i = 0; i < f->n; i++)
        lw_str_add_n(&names, f->array[i].name, strlen(f->array[i].name) + 1);
    if (names.failed)
        return LW_ENOMEM;
    char *name = names.s;
    for (int i = 0; i < f->n; i++, name += strlen(name) + 1) {
        const lw_encode_array *a = &f->array[i];
        entry[i] = (lw_npz_entry){.name = name};
        entry[i].array = (lw_array){.type = a->type,
                                    .rank = a->rank,
                                    .bytes = (size_t)f->rows * a->row,
                                    .data = (char *)map.data + a->at};
        memcpy(entry[i].array.shape, a->shape, sizeof a->shape);
    }
    LW_TRY(lw_npz_save(f->path, &(lw_npz){.entries = entry, .n = (size_t)f->n}));
    return lw_part_file_remove(&f->part);
}

int lw_encode_file_finish(lw_encode_file *f)
{
    LW_ASSERT(f->done == f->rows, "%lld of %lld rows", (long long)f->done, (long long)f->rows);
    LW_TRY(f->kind == LW_ENCODE_NPZ ? pack_npz(f) : lw_part_file_finish(&f->part));
    return lw_remove_tree(lw_str_c(&f->state));
}

void lw_encode_file_close(lw_encode_file *f)
{
    lw_part_file_close(&f->part);
    lw_str_clear(&f->head);
    lw_str_clear(&f->state);
}
