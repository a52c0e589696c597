/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For targets whose readers open folders: one input is several files. A line "==== PATH" begins
 * each; what follows, up to the next such line, is its content. The content of a .safetensors file
 * is written as its names and shapes, {"conv1.weight": [16, 3, 3, 3], ...}: the file gets a header
 * in order and zeros for data, so that the fuzzer changes names and shapes and not lengths (bytes
 * that are no such object go into the file as they are).
 */
#ifndef LW_FUZZ_FOLDER_H
#define LW_FUZZ_FOLDER_H

#include "fuzz/fuzz.h"

/* A private folder that holds the files of the input and nothing else; the same path every time. */
const char *fuzz_folder(const uint8_t *data, size_t size);

#endif
