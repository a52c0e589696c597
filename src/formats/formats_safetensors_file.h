/* SPDX-License-Identifier: Apache-2.0 */
/* Insides of an open safetensors file, shared by its reader's three parts. */
#ifndef LW_FORMATS_SAFETENSORS_FILE_H
#define LW_FORMATS_SAFETENSORS_FILE_H

#include "base/base.h"
#include "formats/formats_safetensors.h"

#define LW_ST_MAX_HEADER ((size_t)100 << 20)

struct lw_st_file {
    lw_arena *arena; /* names, tensors, meta */
    const char *path;
    lw_map map;            /* empty for bytes in memory and for an index */
    lw_st_tensor *tensors; /* sorted by name */
    size_t n;
    const char **meta; /* key, value, key, value... */
    size_t n_meta;
    lw_st_file **shards;
    size_t n_shards;
};

int lw_st_file_new(const char *path, lw_st_file **out);
/* Reads and checks header and layout of `size` bytes; fills tensors and meta. */
int lw_st_read_header(lw_st_file *f, const unsigned char *bytes, size_t size);
void lw_st_sort(lw_st_tensor *tensors, size_t n);
/* Opens the shards that an index names. */
int lw_st_open_index(const char *path, lw_st_file **out);

#endif
