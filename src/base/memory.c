/* SPDX-License-Identifier: Apache-2.0 */
/* Checked heap calls and bulk blocks on huge pages. */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/str.h"

#if defined(__SANITIZE_ADDRESS__)
#define BULK_ON_HEAP 1 /* so that the sanitizer guards the ends of every block */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BULK_ON_HEAP 1
#endif
#endif
#ifndef BULK_ON_HEAP
#define BULK_ON_HEAP 0
#endif

static const size_t huge_page = (size_t)2 << 20;
static const size_t bulk_map_from = (size_t)4 << 20; /* smaller blocks come from the heap */

/* A statistic, not synchronisation: relaxed is enough. */
static _Atomic uint64_t alloc_count;

static void count_one(void)
{
    atomic_fetch_add_explicit(&alloc_count, 1, memory_order_relaxed);
}

uint64_t lw_alloc_count(void)
{
    return atomic_load_explicit(&alloc_count, memory_order_relaxed);
}

static _Atomic size_t failed_bytes;

void lw_alloc_failed(size_t bytes)
{
    failed_bytes = LW_MAX(bytes, 1);
}

size_t lw_alloc_failed_bytes(void)
{
    return failed_bytes;
}

static void *no_memory(size_t bytes)
{
    char text[32];
    lw_alloc_failed(bytes);
    lw_fail(LW_ENOMEM, "no memory for a block of %s", lw_fmt_bytes(text, bytes));
    return NULL;
}

int lw_mul_size(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product) || product > (size_t)INT64_MAX)
        return 0;
    *out = product;
    return 1;
}

void *lw_calloc(size_t n, size_t size)
{
    size_t bytes;
    if (!lw_mul_size(n, size, &bytes)) {
        lw_fail(LW_ENOMEM, "no memory for %zu elements of %zu bytes", n, size);
        return NULL;
    }
    count_one();
    void *p = calloc(1, bytes ? bytes : 1);
    return p ? p : no_memory(bytes);
}

int lw_grow(void *pp, size_t *cap, size_t need, size_t size)
{
    if (need <= *cap)
        return 0;
    size_t n = *cap ? *cap : 8;
    while (n < need)
        n = n > SIZE_MAX / 2 ? need : 2 * n;
    size_t bytes;
    if (!lw_mul_size(n, size, &bytes))
        return lw_fail(LW_ENOMEM, "no memory for %zu elements of %zu bytes", n, size);
    void *old, *grown;
    memcpy(&old, pp, sizeof old); /* pp is a T **: copied, never read through void ** */
    count_one();
    grown = realloc(old, bytes);
    if (!grown) {
        no_memory(bytes);
        return LW_ENOMEM;
    }
    memset((char *)grown + *cap * size, 0, bytes - *cap * size);
    memcpy(pp, &grown, sizeof grown);
    *cap = n;
    return 0;
}

int lw_grow_for_reading(char **buf, size_t *cap, size_t need, size_t most)
{
    if (need <= *cap)
        return 0;
    size_t n = LW_MIN(LW_MAX(need, *cap > SIZE_MAX / 2 ? SIZE_MAX : 2 * *cap), most);
    LW_ASSERT(n >= need, "%zu bytes asked for, at most %zu", need, most);
    count_one();
    char *grown = realloc(*buf, n);
    if (!grown) {
        no_memory(n);
        return LW_ENOMEM;
    }
    *buf = grown;
    *cap = n;
    return 0;
}

void lw_free(void *pp)
{
    void *p, *null = NULL;
    memcpy(&p, pp, sizeof p);
    free(p);
    memcpy(pp, &null, sizeof null);
}

char *lw_strdup(const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = lw_calloc(n, 1);
    if (copy)
        memcpy(copy, s, n);
    return copy;
}

static bool bulk_is_mapped(size_t bytes)
{
    return !BULK_ON_HEAP && bytes >= bulk_map_from;
}

/* Maps one huge page more than needed and cuts the ends off, so that the block starts on one. */
static void *bulk_map(size_t bytes)
{
    size_t span = LW_ROUND_UP(bytes, huge_page);
    char *raw = mmap(NULL, span + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
    if (raw == MAP_FAILED)
        return no_memory(bytes);
    size_t head = LW_ROUND_UP((uintptr_t)raw, huge_page) - (uintptr_t)raw;
    if (head)
        munmap(raw, head);
    if (huge_page - head)
        munmap(raw + head + span, huge_page - head);
    madvise(raw + head, span, MADV_HUGEPAGE); /* advice only: works without */
    return raw + head;
}

void *lw_bulk_alloc(size_t bytes)
{
    if (bytes > (size_t)INT64_MAX - 2 * huge_page)
        return no_memory(bytes);
    count_one();
    if (bulk_is_mapped(bytes))
        return bulk_map(bytes);
    void *p = NULL;
    if (posix_memalign(&p, 64, bytes ? bytes : 1) != 0)
        return no_memory(bytes);
    memset(p, 0, bytes);
    return p;
}

void lw_bulk_free(void *pp, size_t bytes)
{
    void *p, *null = NULL;
    memcpy(&p, pp, sizeof p);
    if (!p)
        return;
    if (bulk_is_mapped(bytes))
        munmap(p, LW_ROUND_UP(bytes, huge_page));
    else
        free(p);
    memcpy(pp, &null, sizeof null);
}

static void *host_alloc(void *self, size_t bytes)
{
    (void)self;
    return lw_bulk_alloc(bytes);
}

static void host_free(void *self, void *p, size_t bytes)
{
    (void)self;
    lw_bulk_free(&p, bytes);
}

const lw_memory lw_host_memory = {.alloc = host_alloc, .free = host_free};

void *lw_memory_alloc(const lw_memory *m, size_t bytes)
{
    return m->alloc(m->self, bytes);
}

void lw_memory_free(const lw_memory *m, void *pp, size_t bytes)
{
    void *p, *null = NULL;
    memcpy(&p, pp, sizeof p);
    if (p)
        m->free(m->self, p, bytes);
    memcpy(pp, &null, sizeof null);
}
