/* SPDX-License-Identifier: Apache-2.0 */
/* Names and their numbers: 1, 2, ... in order of arrival, then once and for all by their bytes. */
#ifndef LW_LOGIC_SYMBOLS_H
#define LW_LOGIC_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* A piece of text that someone else owns. */
typedef struct lw_span {
    const char *s;
    size_t n;
} lw_span;

typedef struct lw_symbols {
    const char **name; /* [n + 1], NUL-terminated, in the arena; name[0] is "" */
    int32_t n;
    size_t cap;      /* of name */
    int32_t *slot;   /* open addressing: number of the name, 0 is empty */
    size_t n_slots;  /* a power of two, or 0 */
    lw_arena *arena; /* borrowed */
} lw_symbols;

/* The number of `text`, a new one when it is not there yet. LW_EFORMAT past 500 million names. */
int lw_symbols_add(lw_symbols *s, lw_span text, int32_t *out);
/* The number of `text`, 0: none. */
int32_t lw_symbols_find(const lw_symbols *s, lw_span text);
/* Renumbers by the bytes of the names; map[old number] = new number, [n + 1], map[0] = 0. */
int lw_symbols_sort(lw_symbols *s, int32_t *map);
/* The name nearest to `text` by edit distance, "" when none is near. */
const char *lw_symbols_nearest(const lw_symbols *s, lw_span text);
void lw_symbols_clear(lw_symbols *s);

lw_span lw_span_of(const char *text);

#endif
