/* SPDX-License-Identifier: Apache-2.0 */
/* A file of torch.save made of a pickle and one storage of 64 bytes, "0". */
#ifndef LW_TESTS_TORCH_ARCHIVE_H
#define LW_TESTS_TORCH_ARCHIVE_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct torch_archive {
    uint8_t *at; /* of the heap */
    size_t n, directory;
    unsigned entries, method; /* 0: not compressed */
    uint8_t central[256];
} torch_archive;

static inline void archive_put(torch_archive *a, const void *bytes, size_t n)
{
    memcpy(a->at + a->n, bytes, n);
    a->n += n;
}

static inline void archive_number(uint8_t *at, uint64_t x, int n)
{
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(x >> 8 * i);
}

static inline void archive_add(torch_archive *a, const char *name, const void *bytes, size_t n)
{
    uint8_t local[30] = {'P', 'K', 3, 4}, *central = a->central + a->directory;
    size_t len = strlen(name);
    memcpy(central, "PK\1\2", 4);
    archive_number(central + 10, a->method, 2);
    archive_number(central + 20, n, 4);
    archive_number(central + 24, n, 4);
    archive_number(central + 28, len, 2);
    archive_number(central + 42, a->n, 4);
    memcpy(central + 46, name, len);
    a->directory += 46 + len;
    a->entries++;
    archive_number(local + 26, len, 2);
    archive_put(a, local, sizeof local);
    archive_put(a, name, len);
    archive_put(a, bytes, n);
}

/* NULL: no memory; the caller frees. */
static inline uint8_t *torch_archive_of(const void *pickle, size_t size, unsigned method, size_t *n)
{
    static const uint8_t storage[64] = {1, 2, 3};
    torch_archive a = {.at = malloc(size + 1024), .method = method};
    uint8_t end[22] = {'P', 'K', 5, 6};
    if (!a.at)
        return NULL;
    archive_add(&a, "a/data.pkl", pickle, size);
    archive_add(&a, "a/data/0", storage, sizeof storage);
    archive_number(end + 10, a.entries, 2);
    archive_number(end + 12, a.directory, 4);
    archive_number(end + 16, a.n, 4);
    archive_put(&a, a.central, a.directory);
    archive_put(&a, end, sizeof end);
    *n = a.n;
    return a.at;
}

#endif
