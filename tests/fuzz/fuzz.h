/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every fuzz target defines LLVMFuzzerTestOneInput. With -DLW_FUZZ=ON (clang) it is linked with
 * libFuzzer; otherwise with fuzz_replay.c, which runs it over the files of its corpus.
 */
#ifndef LW_FUZZ_H
#define LW_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
