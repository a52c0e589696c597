/* SPDX-License-Identifier: Apache-2.0 */
/* Interned names: an open-addressing table over an array of strings. */
#include "logic/kb/logic_symbols.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 500000000 };

lw_span lw_span_of(const char *text)
{
    return (lw_span){text, strlen(text)};
}

static bool is_name(const lw_symbols *s, int32_t id, lw_span text)
{
    return strncmp(s->name[id], text.s, text.n) == 0 && s->name[id][text.n] == '\0';
}

/* The slot where `text` is or would go. */
static size_t slot_of(const lw_symbols *s, lw_span text)
{
    size_t mask = s->n_slots - 1, i = (size_t)lw_hash64(text.s, text.n) & mask;
    while (s->slot[i] != 0 && !is_name(s, s->slot[i], text))
        i = (i + 1) & mask;
    return i;
}

/* A table of n_slots over all names; the old one stays when memory is short. */
static int rehash(lw_symbols *s, size_t n_slots)
{
    int32_t *slot = lw_calloc(n_slots, sizeof *slot), *old = s->slot;
    if (!slot)
        return LW_ENOMEM;
    s->slot = slot;
    s->n_slots = n_slots;
    for (int32_t id = 1; id <= s->n; id++)
        s->slot[slot_of(s, lw_span_of(s->name[id]))] = id;
    lw_free(&old);
    return 0;
}

int lw_symbols_add(lw_symbols *s, lw_span text, int32_t *out)
{
    if ((size_t)(s->n + 1) * 2 > s->n_slots)
        LW_TRY(rehash(s, s->n_slots ? s->n_slots * 2 : 64));
    size_t i = slot_of(s, text);
    if (s->slot[i] == 0) {
        if (s->n >= MOST_NAMES)
            return lw_fail(LW_EFORMAT, "more than %d different names", MOST_NAMES);
        LW_TRY(lw_grow(&s->name, &s->cap, (size_t)s->n + 2, sizeof *s->name));
        char *copy = lw_arena_alloc(s->arena, text.n + 1);
        if (!copy)
            return LW_ENOMEM;
        memcpy(copy, text.s, text.n);
        s->name[0] = "";
        s->name[++s->n] = copy;
        s->slot[i] = s->n;
    }
    *out = s->slot[i];
    return 0;
}

int32_t lw_symbols_find(const lw_symbols *s, lw_span text)
{
    return s->n_slots ? s->slot[slot_of(s, text)] : 0;
}

typedef struct named {
    const char *name;
    int32_t old;
} named;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const named *)a)->name, ((const named *)b)->name);
}

int lw_symbols_sort(lw_symbols *s, int32_t *map)
{
    map[0] = 0;
    if (s->n == 0)
        return 0;
    named *all = lw_calloc((size_t)s->n, sizeof *all);
    if (!all)
        return LW_ENOMEM;
    for (int32_t i = 0; i < s->n; i++)
        all[i] = (named){s->name[i + 1], i + 1};
    qsort(all, (size_t)s->n, sizeof *all, by_name);
    for (int32_t i = 0; i < s->n; i++) {
        s->name[i + 1] = all[i].name;
        map[all[i].old] = i + 1;
    }
    lw_free(&all);
    return rehash(s, s->n_slots);
}

const char *lw_symbols_nearest(const lw_symbols *s, lw_span text)
{
    enum { MOST = 127 };
    char word[MOST + 1];
    size_t n = LW_MIN(text.n, (size_t)MOST);
    memcpy(word, text.s, n);
    word[n] = '\0';
    /* exclusive: a third of the letters wrong and one more is far; of short names every
     * letter is */
    int best = LW_MIN((int)n / 3 + 2, (int)n);
    const char *found = "";
    for (int32_t i = 1; i <= s->n; i++) {
        int d = lw_str_distance(word, s->name[i]);
        if (d < best) {
            best = d;
            found = s->name[i];
        }
    }
    return found;
}

void lw_symbols_clear(lw_symbols *s)
{
    lw_free(&s->name);
    lw_free(&s->slot);
    *s = (lw_symbols){0};
}
