/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preloaded: the n-th allocation of the process fails, whoever asks for it (Leeway, jansson,
 * libarchive, libc). LW_FAIL_ALLOC is n, 0 for none; the file LW_COUNT_ALLOC, if named, gets the
 * number of allocations at the end.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);

static atomic_long count, fail_at;

__attribute__((constructor)) static void begin(void)
{
    const char *n = getenv("LW_FAIL_ALLOC");
    count = 0;
    fail_at = n ? atol(n) : 0;
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("LW_COUNT_ALLOC");
    long n = count;
    FILE *f = path ? fopen(path, "w") : NULL;
    if (f) {
        fprintf(f, "%ld\n", n);
        fclose(f);
    }
}

static int fails(void)
{
    if (atomic_fetch_add(&count, 1) + 1 != fail_at)
        return 0;
    errno = ENOMEM;
    return 1;
}

EXPORT void *malloc(size_t n)
{
    return fails() ? NULL : __libc_malloc(n);
}

EXPORT void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : __libc_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t n)
{
    return fails() ? NULL : __libc_realloc(p, n);
}

EXPORT void *aligned_alloc(size_t alignment, size_t n)
{
    return fails() ? NULL : __libc_memalign(alignment, n);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t n)
{
    void *p = fails() ? NULL : __libc_memalign(alignment, n);
    if (!p)
        return ENOMEM;
    *out = p;
    return 0;
}

EXPORT void *mmap(void *at, size_t n, int protection, int flags, int file, off_t offset)
{
    if (file < 0 && fails())
        return MAP_FAILED;
    return (void *)syscall(SYS_mmap, at, n, protection, flags, file, offset); /* NOLINT */
}
