/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every fuzz target defines LLVMFuzzerTestOneInput. With -DLW_FUZZ=ON (clang) it is linked with
 * libFuzzer; otherwise with fuzz_replay.c, which runs it over the files of its corpus.
 */
#ifndef LW_FUZZ_H
#define LW_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The bytes as a file in memory that readers of paths can open; the same one for every call. */
static inline __attribute__((unused)) const char *fuzz_file(const char *name, const void *bytes,
                                                            size_t n)
{
    static char path[64];
    static int fd = -1;
    if (fd < 0)
        fd = memfd_create(name, 0);
    if (fd < 0 || ftruncate(fd, 0) != 0 || pwrite(fd, bytes, n, 0) != (ssize_t)n)
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

/* Reads every byte, so that a sanitizer sees a range that reaches too far. */
static inline void fuzz_touch(const void *bytes, size_t n)
{
    static volatile uint8_t sink;
    const uint8_t *p = bytes;
    uint8_t x = 0;
    for (size_t i = 0; i < n; i++)
        x ^= p[i];
    sink = x;
    (void)sink;
}

#endif
