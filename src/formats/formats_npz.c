/* SPDX-License-Identifier: Apache-2.0 */
/* .npz: a zip of .npy files, through libarchive. */
#include <archive.h>
#include <archive_entry.h>
#include <string.h>

#include "base/base.h"
#include "formats/formats_archive.h"
#include "formats/formats_npy.h"
#include "formats/formats_npy_header.h"

#define MAX_MEMBER ((size_t)4 << 30)
#define MAX_MEMBERS 4096

void lw_npz_clear(lw_npz *z)
{
    for (size_t i = 0; i < z->n; i++) {
        lw_free(&z->entries[i].name);
        lw_array_clear(&z->entries[i].array);
    }
    lw_free(&z->entries);
    *z = (lw_npz){0};
}

lw_array *lw_npz_find(lw_npz *z, const char *name)
{
    for (size_t i = 0; i < z->n; i++)
        if (strcmp(z->entries[i].name, name) == 0)
            return &z->entries[i].array;
    return NULL;
}

int lw_npz_add(lw_npz *z, const char *name, lw_array *array)
{
    if (lw_npz_find(z, name))
        return lw_fail(LW_EUSAGE, "an .npz with two arrays called '%s'", name);
    LW_TRY(lw_grow(&z->entries, &z->cap, z->n + 1, sizeof *z->entries));
    char *copy = lw_strdup(name);
    if (!copy)
        return LW_ENOMEM;
    z->entries[z->n++] = (lw_npz_entry){copy, *array};
    *array = (lw_array){0};
    return 0;
}

typedef struct loader {
    const char *path;
    lw_npz *z;
} loader;

static int visit(void *arg, lw_archive *a, const lw_archive_member *m)
{
    loader *l = arg;
    if (m->raw)
        return lw_fail(LW_EFORMAT, "%s: not an .npz (zip) file", l->path);
    if (!lw_str_ends(m->name, ".npy"))
        return 0;
    if (l->z->n == MAX_MEMBERS)
        return lw_fail(LW_EFORMAT, "%s: more than %d arrays", l->path, MAX_MEMBERS);
    LW_CLEANUP(lw_str_clear) lw_str what = {0};
    LW_CLEANUP(lw_free) char *bytes = NULL;
    LW_CLEANUP(lw_array_clear) lw_array array = {0};
    size_t n;
    lw_str_addf(&what, "%s:%s", l->path, m->name);
    LW_TRY(lw_archive_read_all(a, MAX_MEMBER, &bytes, &n));
    LW_TRY(lw_npy_parse(lw_str_c(&what), bytes, n, &array));
    const char *colon = lw_str_c(&what) + strlen(l->path) + 1;
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    lw_str_add_n(&name, colon, strlen(colon) - strlen(".npy"));
    if (name.failed)
        return LW_ENOMEM;
    if (lw_npz_find(l->z, lw_str_c(&name)))
        return lw_fail(LW_EFORMAT, "%s: two arrays called '%s'", l->path, lw_str_c(&name));
    return lw_npz_add(l->z, lw_str_c(&name), &array);
}

int lw_npz_load(const char *path, lw_npz *out)
{
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    loader l = {path, &z};
    LW_TRY(lw_archive_each(path, visit, &l));
    *out = z;
    z = (lw_npz){0};
    return 0;
}

static int write_entry(struct archive *a, struct archive_entry *e, const lw_npz_entry *in)
{
    LW_CLEANUP(lw_str_clear) lw_str head = {0}, name = {0};
    LW_TRY(lw_npy_header_write(in->name, in->array.type, in->array.rank, in->array.shape, &head));
    lw_str_addf(&name, "%s.npy", in->name);
    if (name.failed)
        return LW_ENOMEM;
    archive_entry_clear(e);
    archive_entry_set_pathname(e, lw_str_c(&name));
    archive_entry_set_filetype(e, AE_IFREG);
    archive_entry_set_perm(e, 0644);
    archive_entry_set_mtime(e, 315532800, 0); /* 1980, zip's first day: same arrays, same bytes */
    archive_entry_set_size(e, (la_int64_t)(head.len + in->array.bytes));
    if (archive_write_header(a, e) != ARCHIVE_OK ||
        archive_write_data(a, head.s, head.len) != (la_ssize_t)head.len ||
        (in->array.bytes &&
         archive_write_data(a, in->array.data, in->array.bytes) != (la_ssize_t)in->array.bytes))
        return lw_fail(LW_EIO, "%s", archive_error_string(a));
    return 0;
}

static int write_zip(struct archive *a, struct archive_entry *e, int fd, const lw_npz *z)
{
    if (!a || !e)
        return lw_fail(LW_ENOMEM, "no memory for a zip writer");
    if (archive_write_set_format_zip(a) != ARCHIVE_OK ||
        archive_write_set_options(a, "zip:compression=store") != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(a, 1) != ARCHIVE_OK || /* no padding on a pipe */
        archive_write_open_fd(a, fd) != ARCHIVE_OK)
        return lw_fail(LW_EIO, "%s", archive_error_string(a));
    for (size_t i = 0; i < z->n; i++)
        LW_TRY(write_entry(a, e, &z->entries[i]));
    if (archive_write_close(a) != ARCHIVE_OK)
        return lw_fail(LW_EIO, "%s", archive_error_string(a));
    return 0;
}

int lw_npz_save(const char *path, const lw_npz *z)
{
    LW_CLEANUP(lw_new_file_drop) lw_new_file f = {0};
    LW_TRY(lw_new_file_begin(&f, path));
    struct archive *a = archive_write_new();
    struct archive_entry *e = archive_entry_new();
    int rc = write_zip(a, e, f.fd, z);
    archive_entry_free(e);
    archive_write_free(a);
    return rc < 0 ? lw_fail_in(rc, "%s: ", path) : lw_new_file_finish(&f);
}
