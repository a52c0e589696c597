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
#define HEAD ((size_t)1 << 17) /* holds every header that is read */

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
    z->entries[z->n++] = (lw_npz_entry){copy, *array, false};
    *array = (lw_array){0};
    return 0;
}

/* Code points of UTF-8 into dst (NULL: they are counted). -1: it is not UTF-8. */
static int64_t code_points(const char *s, int32_t *dst)
{
    static const unsigned char first[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    int64_t k = 0;
    for (size_t left = strlen(s), n; left > 0; left -= n, s += n, k++) {
        const unsigned char *u = (const unsigned char *)s;
        n = lw_utf8_size(u, left);
        if (n == 0)
            return -1;
        uint32_t c = u[0] & first[n];
        for (size_t i = 1; i < n; i++)
            c = c << 6 | (u[i] & 0x3f);
        if (dst)
            dst[k] = (int32_t)c;
    }
    return k;
}

int lw_npz_add_text(lw_npz *z, const char *name, const char *const *text, int64_t n)
{
    LW_CLEANUP(lw_array_clear) lw_array a = {0};
    int64_t width = 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t k = code_points(text[i], NULL);
        if (k < 0)
            return lw_fail(LW_EFORMAT, "the name '%s' is not UTF-8, as text of an .npz must be",
                           text[i]);
        width = LW_MAX(width, k);
    }
    LW_TRY(lw_array_init(&a, LW_ELEM_I32, 2, (const int64_t[]){n, width}));
    for (int64_t i = 0; i < n; i++)
        code_points(text[i], (int32_t *)a.data + i * width);
    LW_TRY(lw_npz_add(z, name, &a));
    z->entries[z->n - 1].text = true;
    return 0;
}

/* A code point as UTF-8 (RFC 3629). */
static void add_code_point(lw_str *out, uint32_t c)
{
    char s[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, c >>= 6)
        s[i] = (char)(0x80 | (c & 0x3f));
    s[0] = (char)(lead[n] | c);
    lw_str_add_n(out, s, n);
}

int lw_npz_text_at(const lw_array *a, int64_t i, lw_str *out)
{
    if (a->type != LW_ELEM_I32 || a->rank != 2 || i < 0 || i >= a->shape[0])
        return lw_fail(LW_EFORMAT, "no array of texts, or one without text %lld", (long long)i);
    const int32_t *c = (const int32_t *)a->data + i * a->shape[1];
    for (int64_t k = 0; k < a->shape[1] && c[k] != 0; k++) {
        bool is_character = c[k] > 0 && c[k] < 0x110000 && (c[k] < 0xd800 || c[k] > 0xdfff);
        add_code_point(out, is_character ? (uint32_t)c[k] : 0xfffd);
    }
    return out->failed ? LW_ENOMEM : 0;
}

/* Exactly n bytes, or fewer at the member's end. */
static int read_up_to(lw_archive *a, void *buf, size_t n, size_t *got)
{
    size_t k = 1;
    for (*got = 0; *got < n && k > 0; *got += k)
        LW_TRY(lw_archive_read(a, (char *)buf + *got, n - *got, &k));
    return 0;
}

/* What the header asks for; LW_EFORMAT when that is absurd or not what the archive says. */
static int data_bytes(const char *what, const lw_npy_header *h, int64_t size, size_t *out)
{
    size_t need = lw_elem_size(h->type);
    char text[192];
    for (int i = 0; i < h->rank && need; i++)
        if (!lw_mul_size(need, (size_t)h->shape[i], &need))
            return lw_fail(LW_EFORMAT, "%s: shape %s overflows", what,
                           lw_shape_text(text, h->rank, h->shape));
    if (need > MAX_MEMBER)
        return lw_fail(LW_EFORMAT, "%s: %zu bytes of data; at most %zu are read", what, need,
                       MAX_MEMBER);
    if (size >= 0 && (size_t)size != h->data_at + need)
        return lw_npy_wrong_size(what, h, need, (size_t)size - h->data_at);
    *out = need;
    return 0;
}

/* The data, of which the first `got` bytes stand in head already, straight into an array. */
static int read_data(const char *what, lw_archive *a, const lw_npy_header *h, const char *head,
                     size_t got, lw_array *out)
{
    LW_CLEANUP(lw_array_clear) lw_array array = {0};
    char past;
    size_t more = 0, extra = 0;
    LW_TRY(lw_array_init(&array, h->type, h->rank, h->shape));
    size_t have = LW_MIN(got, array.bytes);
    memcpy(array.data, head, have);
    LW_TRY(read_up_to(a, (char *)array.data + have, array.bytes - have, &more));
    if (got <= array.bytes)
        LW_TRY(read_up_to(a, &past, 1, &extra));
    if (have + more < array.bytes || got > array.bytes || extra > 0)
        return lw_npy_wrong_size(what, h, array.bytes, LW_MAX(got, have + more + extra));
    if (h->fortran && h->rank > 1)
        LW_TRY(lw_npy_from_fortran(&array));
    *out = array;
    array = (lw_array){0};
    return 0;
}

typedef struct walk {
    const char *path;
    bool data;
    const char *const *wanted; /* [n_wanted] visited; n_wanted 0: all */
    size_t n_wanted;
    lw_npz_visit *visit;
    void *arg;
    lw_npz seen; /* names only */
} walk;

static bool is_wanted(const walk *w, const char *name)
{
    for (size_t i = 0; i < w->n_wanted; i++)
        if (lw_str_eq(w->wanted[i], name))
            return true;
    return w->n_wanted == 0;
}

static int visit_member(void *arg, lw_archive *a, const lw_archive_member *m)
{
    walk *w = arg;
    if (m->raw)
        return lw_fail(LW_EFORMAT, "%s: not an .npz (zip) file", w->path);
    if (!lw_str_ends(m->name, ".npy"))
        return 0;
    if (w->seen.n == MAX_MEMBERS)
        return lw_fail(LW_EFORMAT, "%s: more than %d arrays", w->path, MAX_MEMBERS);
    LW_CLEANUP(lw_str_clear) lw_str what = {0}, name = {0};
    LW_CLEANUP(lw_free) char *head = lw_calloc(HEAD, 1);
    LW_CLEANUP(lw_array_clear) lw_array array = {0};
    lw_npy_header h;
    size_t got, bytes = 0;
    int64_t size = m->size;
    lw_str_addf(&what, "%s:%s", w->path, m->name);
    lw_str_add_n(&name, m->name, strlen(m->name) - strlen(".npy"));
    if (!head || what.failed || name.failed)
        return LW_ENOMEM;
    if (lw_npz_find(&w->seen, lw_str_c(&name)))
        return lw_fail(LW_EFORMAT, "%s: two arrays called '%s'", w->path, lw_str_c(&name));
    LW_TRY(lw_npz_add(&w->seen, lw_str_c(&name), &array));
    if (!is_wanted(w, lw_str_c(&name)))
        return 0;
    LW_TRY(read_up_to(a, head, HEAD, &got));
    LW_TRY(lw_npy_header_read(lw_str_c(&what), head, got, &h));
    LW_TRY(data_bytes(lw_str_c(&what), &h, size, &bytes));
    if (w->data) {
        LW_TRY(read_data(lw_str_c(&what), a, &h, head + h.data_at, got - h.data_at, &array));
    } else {
        array = (lw_array){.type = h.type, .rank = h.rank, .bytes = bytes};
        memcpy(array.shape, h.shape, sizeof h.shape);
        array.count = (int64_t)(bytes / lw_elem_size(h.type));
    }
    return w->visit(w->arg, lw_str_c(&name), &array);
}

int lw_npz_each(const char *path, bool data, lw_npz_visit *visit, void *arg)
{
    walk w = {.path = path, .data = data, .visit = visit, .arg = arg};
    int rc = lw_archive_each(path, visit_member, &w);
    lw_npz_clear(&w.seen);
    return rc;
}

int lw_npz_pick(const char *path, const char *const *names, size_t n, bool data,
                lw_npz_visit *visit, void *arg)
{
    walk w = {
        .path = path, .data = data, .wanted = names, .n_wanted = n, .visit = visit, .arg = arg};
    int rc = lw_archive_each(path, visit_member, &w);
    lw_npz_clear(&w.seen);
    return rc;
}

static int keep(void *arg, const char *name, lw_array *array)
{
    return lw_npz_add(arg, name, array);
}

int lw_npz_load(const char *path, lw_npz *out)
{
    LW_CLEANUP(lw_npz_clear) lw_npz z = {0};
    LW_TRY(lw_npz_each(path, true, keep, &z));
    *out = z;
    z = (lw_npz){0};
    return 0;
}

/* libarchive says "Write error" of a full disk, too: what the system said is in its number. */
static int write_failed(struct archive *a)
{
    int err = archive_errno(a);
    return lw_fail(lw_errno_code(err), "cannot write: %s",
                   err > 0 ? strerror(err) : archive_error_string(a));
}

static int write_entry(struct archive *a, struct archive_entry *e, const lw_npz_entry *in)
{
    LW_CLEANUP(lw_str_clear) lw_str head = {0}, name = {0};
    if (in->text)
        LW_TRY(lw_npy_header_write_text(in->array.rank, in->array.shape, &head));
    else
        LW_TRY(
            lw_npy_header_write(in->name, in->array.type, in->array.rank, in->array.shape, &head));
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
        return write_failed(a);
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
        return write_failed(a);
    for (size_t i = 0; i < z->n; i++)
        LW_TRY(write_entry(a, e, &z->entries[i]));
    if (archive_write_close(a) != ARCHIVE_OK)
        return write_failed(a);
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
