/* SPDX-License-Identifier: Apache-2.0 */
/* From a store's entries to the pieces of tensors that a file of some naming gives them in. */
#include "store/store_private.h"

#include <string.h>

/* ---- patterns -------------------------------------------------------------------------------- */

enum { MAX_STARS = 8 };

typedef struct span {
    const char *at;
    size_t n;
} span;

/* star[i]: what the i-th star stands for. */
static bool fits(const char *p, const char *text, span *star)
{
    while (*p && *p != '*')
        if (*p++ != *text++)
            return false;
    if (!*p)
        return !*text;
    bool any = p[1] == '*';
    p += any ? 2 : 1;
    for (size_t n = any ? 0 : 1;; n++) {
        if (n > 0 && (!text[n - 1] || (!any && text[n - 1] == '.')))
            return false;
        *star = (span){text, n};
        if (fits(p, text + n, star + 1))
            return true;
    }
}

bool lw_naming_fits(const char *pattern, const char *text)
{
    span star[MAX_STARS];
    return fits(pattern, text, star);
}

static void add_filled(lw_str *s, const char *pattern, const span *star)
{
    for (const char *p = pattern; *p; p++) {
        if (*p != '*') {
            lw_str_add_n(s, p, 1);
            continue;
        }
        p += p[1] == '*';
        lw_str_add_n(s, star->at, star->n);
        star++;
    }
}

/* ---- one piece ------------------------------------------------------------------------------- */

static const lw_name_rule whole = {0};

/* Shape in PyTorch's order. */
static int shape_of(const lw_type *t, int64_t shape[LW_ARRAY_MAX_RANK])
{
    static const int to_file[4] = {0, 3, 1, 2};
    for (int i = 0; i < t->rank; i++)
        shape[i] = t->dim[t->rank == 4 ? to_file[i] : i];
    if (t->rank > 0)
        return t->rank;
    shape[0] = 1; /* a scalar is stored as one element */
    return 1;
}

static lw_rows all_of(lw_rows r)
{
    return r.of > 0 ? r : (lw_rows){0, 1, 1};
}

static void lay_out(store_piece *p)
{
    int64_t shape[LW_ARRAY_MAX_RANK];
    lw_rows here = all_of(p->rule->store_rows), there = all_of(p->rule->file_rows);
    int rank = shape_of(&p->entry->type, shape), ones = p->rule->ones;
    int64_t per_row = p->entry->count / LW_MAX(shape[0], 1), part = shape[0] / here.of;
    p->at = part * here.first * per_row;
    p->count = part * here.count * per_row;
    p->skip = p->count / there.count * there.first;
    shape[0] = part * here.count / there.count * there.of;
    if (p->rule->values == LW_VALUES_TRANSPOSED && rank == 2) {
        int64_t out = shape[0];
        shape[0] = shape[1];
        shape[1] = out;
    }
    LW_ASSERT(rank + ones <= LW_ARRAY_MAX_RANK, "%s: rank %d", p->entry->name, rank + ones);
    for (int i = 0; i < ones; i++)
        p->shape[i] = 1;
    for (int i = 0; i < rank; i++)
        p->shape[ones + i] = shape[i];
    p->rank = ones + rank;
}

static int add(store_pieces *p, const lw_store_entry *e, const lw_name_rule *r, char *name)
{
    if (!name)
        return LW_ENOMEM;
    if (p->n == p->cap) {
        size_t cap = LW_MAX(2 * p->cap, (size_t)64);
        store_piece *more = lw_calloc(cap, sizeof *more);
        if (!more)
            return LW_ENOMEM;
        if (p->n)
            memcpy(more, p->of, p->n * sizeof *more);
        lw_free(&p->of);
        p->of = more;
        p->cap = cap;
    }
    store_piece *q = &p->of[p->n++];
    *q = (store_piece){.entry = e, .rule = r, .name = name};
    lay_out(q);
    return 0;
}

/* ---- an entry's pieces ----------------------------------------------------------------------- */

static const lw_name_rule packed[] = {
    {.file = "**.to_q.*", .store = "**.to_qkv.*", .store_rows = {0, 1, 3}},
    {.file = "**.to_k.*", .store = "**.to_qkv.*", .store_rows = {1, 1, 3}},
    {.file = "**.to_v.*", .store = "**.to_qkv.*", .store_rows = {2, 1, 3}},
    {0},
};

static bool concerns(const lw_name_rule *r, const lw_store_entry *e, span *star)
{
    const lw_type *t = &e->type;
    int parts = all_of(r->store_rows).of * all_of(r->file_rows).count;
    bool divides = parts == 1 || (t->rank > 0 && t->dim[0] % parts == 0);
    return divides && fits(r->store, e->name, star);
}

static int add_by_rule(store_pieces *p, const char *prefix, const lw_store_entry *e,
                       const lw_name_rule *r, const span *star)
{
    LW_CLEANUP(lw_str_clear) lw_str name = {0};
    if (prefix && !r->bare)
        lw_str_add(&name, prefix);
    add_filled(&name, r->file, star);
    return name.failed ? LW_ENOMEM : add(p, e, r, lw_arena_strdup(p->arena, lw_str_c(&name)));
}

/* *found: some rule of the list concerns e. */
static int add_by_rules(store_pieces *p, const char *prefix, const lw_store_entry *e,
                        const lw_name_rule *r, bool *found)
{
    span star[MAX_STARS];
    int given = 0, of = 0;
    for (; r && r->file && (of == 0 || given < of); r++) {
        lw_rows rows = all_of(r->store_rows);
        if (!concerns(r, e, star) || (of > 0 && (rows.of != of || rows.first != given)))
            continue;
        of = rows.of;
        LW_ASSERT(rows.first == given, "%s: rules of rows are given in order", r->store);
        given += rows.count;
        LW_TRY(add_by_rule(p, prefix, e, r, star));
    }
    LW_ASSERT(given == of, "%s: rules give %d of %d parts", e->name, given, of);
    *found = of > 0;
    return 0;
}

static int add_entry(store_pieces *p, const lw_naming *naming, const lw_store_entry *e)
{
    const char *prefix = naming && naming->prefix ? naming->prefix : "";
    bool found = false;
    if (naming)
        LW_TRY(add_by_rules(p, prefix, e, naming->rules, &found));
    if (!found)
        LW_TRY(add_by_rules(p, prefix, e, packed, &found));
    if (found)
        return 0;
    return add(p, e, &whole, lw_arena_printf(p->arena, "%s%s", prefix, e->name));
}

void lw_store_pieces_clear(store_pieces *p)
{
    lw_arena_free(&p->arena);
    lw_free(&p->of);
    *p = (store_pieces){0};
}

int lw_store_pieces_of(const lw_store *s, const lw_naming *naming, store_pieces *out)
{
    LW_CLEANUP(lw_store_pieces_clear) store_pieces p = {0};
    LW_TRY(lw_arena_new(&p.arena));
    for (size_t i = 0; i < s->n; i++)
        LW_TRY(add_entry(&p, naming, &s->entry[i]));
    *out = p;
    p = (store_pieces){0};
    return 0;
}

int lw_store_file_names(const lw_store *s, const lw_naming *naming, const char *name,
                        lw_arena *arena, lw_file_name out[LW_MAX_FILE_NAMES], int *n)
{
    LW_CLEANUP(lw_store_pieces_clear) store_pieces p = {0};
    int32_t at = lw_store_find(s, name);
    *n = 0;
    if (at < 0)
        return 0;
    LW_TRY(lw_arena_new(&p.arena));
    LW_TRY(add_entry(&p, naming, lw_store_at(s, at)));
    LW_ASSERT(p.n <= LW_MAX_FILE_NAMES, "%s: %zu pieces", name, p.n);
    for (size_t i = 0; i < p.n; i++) {
        const lw_name_rule *r = p.of[i].rule;
        const char *copy = lw_arena_strdup(arena, p.of[i].name);
        if (!copy)
            return LW_ENOMEM;
        out[(*n)++] = (lw_file_name){copy, all_of(r->store_rows), all_of(r->file_rows), r->bare};
    }
    return 0;
}

/* ---- looking ahead --------------------------------------------------------------------------- */

static const lw_st_tensor *find_by(const lw_naming *n, const lw_st_file *f, const char *name)
{
    LW_CLEANUP(lw_str_clear) lw_str file = {0};
    span star[MAX_STARS];
    const lw_name_rule *r = n->rules;
    while (r && r->file && !fits(r->store, name, star))
        r++;
    bool ruled = r && r->file;
    if (n->prefix && !(ruled && r->bare))
        lw_str_add(&file, n->prefix);
    if (ruled)
        add_filled(&file, r->file, star);
    else
        lw_str_add(&file, name);
    return file.failed ? NULL : lw_st_find_model(f, lw_str_c(&file));
}

const lw_st_tensor *lw_naming_find(const lw_naming *namings, const lw_st_file *f, const char *name)
{
    const lw_st_tensor *t = NULL;
    for (; namings && namings->name && !t; namings++)
        t = find_by(namings, f, name);
    return t;
}
