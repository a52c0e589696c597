/* SPDX-License-Identifier: Apache-2.0 */
/* An arena: a list of chunks that grow, handed out front to back, freed together. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

typedef struct arena_chunk {
    struct arena_chunk *next;
    size_t used, size; /* of the bytes after this header */
} arena_chunk;

struct lw_arena {
    arena_chunk *head; /* the one being filled */
    size_t bytes, chunk_size;
};

static const size_t first_chunk = 16 << 10, largest_chunk = 1 << 20;

_Static_assert(sizeof(arena_chunk) <= 32, "the chunk header fits the 32 bytes reserved for it");
enum { HEADER = 32 };

int lw_arena_new(lw_arena **out)
{
    lw_arena *a = lw_calloc(1, sizeof *a);
    if (!a)
        return LW_ENOMEM;
    a->chunk_size = first_chunk;
    *out = a;
    return 0;
}

void lw_arena_free(lw_arena **pp)
{
    if (!*pp)
        return;
    for (arena_chunk *c = (*pp)->head; c;) {
        arena_chunk *next = c->next;
        lw_free(&c);
        c = next;
    }
    lw_free(pp);
}

static arena_chunk *add_chunk(lw_arena *a, size_t bytes)
{
    size_t size = LW_MAX(bytes, a->chunk_size);
    arena_chunk *c = lw_calloc(1, HEADER + size);
    if (!c)
        return NULL;
    c->size = size;
    c->next = a->head;
    a->head = c;
    a->chunk_size = LW_MIN(2 * a->chunk_size, largest_chunk);
    return c;
}

void *lw_arena_alloc(lw_arena *a, size_t bytes)
{
    if (bytes > (size_t)INT64_MAX / 2) {
        lw_fail(LW_ENOMEM, "no memory for a block of %zu bytes", bytes);
        return NULL;
    }
    bytes = LW_ROUND_UP(LW_MAX(bytes, (size_t)1), (size_t)16);
    arena_chunk *c = a->head;
    if (!c || c->size - c->used < bytes) {
        c = add_chunk(a, bytes);
        if (!c)
            return NULL;
    }
    void *p = (char *)c + HEADER + c->used;
    c->used += bytes;
    a->bytes += bytes;
    return p;
}

char *lw_arena_strdup(lw_arena *a, const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = lw_arena_alloc(a, n);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}

char *lw_arena_printf(lw_arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    char *text = n < 0 ? NULL : lw_arena_alloc(a, (size_t)n + 1);
    if (text)
        vsnprintf(text, (size_t)n + 1, fmt, again);
    va_end(again);
    return text;
}

size_t lw_arena_bytes(const lw_arena *a)
{
    return a->bytes;
}
