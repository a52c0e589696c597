/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a zip archive (PKWARE's APPNOTE 6.3, with zip64) whose entries are not
 * compressed: torch writes them so, for mapping. */
#include <stdlib.h>
#include <string.h>

#include "formats/torch/formats_torch.h"

enum {
    END_SIZE = 22,
    LOCATOR_SIZE = 20,
    END64_SIZE = 56,
    CENTRAL_SIZE = 46,
    LOCAL_SIZE = 30,
    MAX_COMMENT = 65535,
    MAX_ENTRIES = 1 << 20,
    ENCRYPTED = 1
};

typedef struct window {
    const char *what;
    const unsigned char *bytes;
    size_t size;
} window;

/* Little-endian number of n bytes at `at`; the caller has checked that they are there. */
static uint64_t number(const unsigned char *at, int n)
{
    uint64_t x = 0;
    for (int i = n - 1; i >= 0; i--)
        x = x << 8 | at[i];
    return x;
}

static bool is_mark(const unsigned char *at, const char *last_two)
{
    return at[0] == 'P' && at[1] == 'K' && memcmp(at + 2, last_two, 2) == 0;
}

static bool fits(const window *w, uint64_t at, uint64_t n)
{
    return at <= w->size && n <= w->size - at;
}

static int broken(const window *w, const char *why)
{
    return lw_fail(LW_EFORMAT, "%s: not a whole zip archive (%s)", w->what, why);
}

/* ---- where the directory is ------------------------------------------------------------------ */

typedef struct directory {
    uint64_t at, size, n;
} directory;

static int find_end(const window *w, uint64_t *out)
{
    if (w->size < END_SIZE)
        return broken(w, "too short");
    uint64_t last = w->size - END_SIZE, first = last > MAX_COMMENT ? last - MAX_COMMENT : 0;
    for (uint64_t at = last + 1; at-- > first;) {
        const unsigned char *p = w->bytes + at;
        if (is_mark(p, "\5\6") && number(p + 20, 2) == last - at) {
            *out = at;
            return 0;
        }
    }
    return broken(w, "its end is missing");
}

static int find_directory(const window *w, directory *d)
{
    uint64_t end = 0, wide;
    LW_TRY(find_end(w, &end));
    const unsigned char *p = w->bytes + end;
    *d = (directory){number(p + 16, 4), number(p + 12, 4), number(p + 10, 2)};
    if (end >= LOCATOR_SIZE && is_mark(p - LOCATOR_SIZE, "\6\7")) {
        wide = number(p - LOCATOR_SIZE + 8, 8);
        if (!fits(w, wide, END64_SIZE) || !is_mark(w->bytes + wide, "\6\6"))
            return broken(w, "its zip64 end is missing");
        p = w->bytes + wide;
        *d = (directory){number(p + 48, 8), number(p + 40, 8), number(p + 32, 8)};
    }
    if (!fits(w, d->at, d->size) || d->n > d->size / CENTRAL_SIZE)
        return broken(w, "its directory is outside of the file");
    return d->n <= MAX_ENTRIES ? 0 : broken(w, "more entries than weights have");
}

/* ---- one entry ------------------------------------------------------------------------------- */

typedef struct entry_info {
    uint64_t packed, size, local, name_len, extra_len;
    unsigned flags, method;
} entry_info;

/* Sizes and offset that did not fit 32 bits stand in a field of the extra data, in this order. */
static int read_wide(const window *w, const unsigned char *extra, entry_info *e)
{
    uint64_t *const value[] = {&e->size, &e->packed, &e->local};
    uint64_t at = 0;
    while (at + 4 <= e->extra_len && number(extra + at, 2) != 1)
        at += 4 + number(extra + at + 2, 2);
    for (size_t i = 0, next = at + 4; i < LW_COUNT(value); i++) {
        if (*value[i] != UINT32_MAX)
            continue;
        if (at + 4 > e->extra_len || next + 8 > e->extra_len)
            return broken(w, "a zip64 size is missing");
        *value[i] = number(extra + next, 8);
        next += 8;
    }
    return 0;
}

static int read_entry(lw_st_file *f, const window *w, const unsigned char *p, entry_info *e,
                      torch_entry *out)
{
    char *name = lw_arena_alloc(f->arena, e->name_len + 1);
    if (!name)
        return LW_ENOMEM;
    memcpy(name, p + CENTRAL_SIZE, e->name_len);
    LW_TRY(read_wide(w, p + CENTRAL_SIZE + e->name_len, e));
    if (!fits(w, e->local, LOCAL_SIZE) || !is_mark(w->bytes + e->local, "\3\4"))
        return broken(w, "an entry is outside of the file");
    const unsigned char *local = w->bytes + e->local;
    uint64_t at = e->local + LOCAL_SIZE + number(local + 26, 2) + number(local + 28, 2);
    if (strstr(name, "/code/"))
        return lw_fail(LW_EFORMAT,
                       "%s: a TorchScript file is a program, which is not read; save its weights: "
                       "torch.save(torch.jit.load(FILE).state_dict(), 'weights.pth'), or take the "
                       "authors' file of weights",
                       w->what);
    if (e->method != 0 || e->packed != e->size || (e->flags & ENCRYPTED))
        return lw_fail(LW_EFORMAT, "%s: '%s' is compressed or encrypted, torch.save does neither",
                       w->what, name);
    if (!fits(w, at, e->size))
        return broken(w, "an entry is outside of the file");
    *out = (torch_entry){name, w->bytes + at, (size_t)e->size};
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const torch_entry *)a)->name, ((const torch_entry *)b)->name);
}

static int read_all(lw_st_file *f, const window *w, const directory *d, torch_zip *z)
{
    uint64_t at = d->at, end = d->at + d->size;
    for (uint64_t i = 0; i < d->n; i++) {
        const unsigned char *p = w->bytes + at;
        if (at + CENTRAL_SIZE > end || !is_mark(p, "\1\2"))
            return broken(w, "its directory is damaged");
        entry_info e = {.flags = (unsigned)number(p + 8, 2),
                        .method = (unsigned)number(p + 10, 2),
                        .packed = number(p + 20, 4),
                        .size = number(p + 24, 4),
                        .name_len = number(p + 28, 2),
                        .extra_len = number(p + 30, 2),
                        .local = number(p + 42, 4)};
        uint64_t next = at + CENTRAL_SIZE + e.name_len + e.extra_len + number(p + 32, 2);
        if (next > end)
            return broken(w, "its directory is damaged");
        LW_TRY(read_entry(f, w, p, &e, &z->entry[z->n]));
        z->n++;
        at = next;
    }
    return 0;
}

int lw_torch_zip_read(lw_st_file *f, const unsigned char *bytes, size_t size, torch_zip *out)
{
    const window w = {f->path, bytes, size};
    directory d;
    torch_zip z = {0};
    LW_TRY(find_directory(&w, &d));
    z.entry = lw_arena_alloc(f->arena, ((size_t)d.n + 1) * sizeof *z.entry);
    if (!z.entry)
        return LW_ENOMEM;
    LW_TRY(read_all(f, &w, &d, &z));
    qsort(z.entry, z.n, sizeof *z.entry, by_name);
    for (size_t i = 1; i < z.n; i++)
        if (strcmp(z.entry[i - 1].name, z.entry[i].name) == 0)
            return lw_fail(LW_EFORMAT, "%s: two entries '%s'", w.what, z.entry[i].name);
    *out = z;
    return 0;
}

const torch_entry *lw_torch_zip_find(const torch_zip *z, const char *name)
{
    torch_entry key = {.name = name};
    return z->n ? bsearch(&key, z->entry, z->n, sizeof key, by_name) : NULL;
}
