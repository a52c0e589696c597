/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: bytes as a file of torch.save, and as the pickle in one: most changes of an archive
 * are found at its directory.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "formats/formats.h"

static void open_bytes(const uint8_t *data, size_t size)
{
    lw_st_file *f = NULL;
    if (lw_st_parse("fuzz", data, size, &f) == 0)
        for (size_t i = 0; i < lw_st_count(f); i++)
            fuzz_touch(lw_st_at(f, i)->data, lw_st_at(f, i)->bytes);
    lw_st_close(&f);
}

/* ---- an archive of one pickle and one storage ------------------------------------------------ */

typedef struct archive {
    uint8_t *at;
    size_t n, directory;
    unsigned entries;
    uint8_t central[256];
} archive;

static void put(archive *a, const void *bytes, size_t n)
{
    memcpy(a->at + a->n, bytes, n);
    a->n += n;
}

static void put_number(uint8_t *at, uint64_t x, int n)
{
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(x >> 8 * i);
}

static void add(archive *a, const char *name, const void *bytes, size_t n)
{
    uint8_t local[30] = {'P', 'K', 3, 4}, *central = a->central + a->directory;
    size_t len = strlen(name);
    memcpy(central, "PK\1\2", 4);
    put_number(central + 20, n, 4);
    put_number(central + 24, n, 4);
    put_number(central + 28, len, 2);
    put_number(central + 42, a->n, 4);
    memcpy(central + 46, name, len);
    a->directory += 46 + len;
    a->entries++;
    put_number(local + 26, len, 2);
    put(a, local, sizeof local);
    put(a, name, len);
    put(a, bytes, n);
}

static void open_pickle(const uint8_t *data, size_t size)
{
    static const uint8_t storage[64] = {1, 2, 3};
    archive a = {.at = malloc(size + 1024)};
    uint8_t end[22] = {'P', 'K', 5, 6};
    if (!a.at)
        return;
    add(&a, "a/data.pkl", data, size);
    add(&a, "a/data/0", storage, sizeof storage);
    put_number(end + 10, a.entries, 2);
    put_number(end + 12, a.directory, 4);
    put_number(end + 16, a.n, 4);
    put(&a, a.central, a.directory);
    put(&a, end, sizeof end);
    open_bytes(a.at, a.n);
    free(a.at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_bytes(data, size);
    open_pickle(data, size);
    return 0;
}
