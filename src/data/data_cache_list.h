/* SPDX-License-Identifier: Apache-2.0 */
/* The files in a cache directory: `leeway data cache list` and `leeway data cache clear`. */
#ifndef LW_DATA_CACHE_LIST_H
#define LW_DATA_CACHE_LIST_H

#include <stddef.h>
#include <stdint.h>

typedef enum lw_cached_state {
    LW_CACHED_WHOLE,     /* header, labels and texts hold together; pixels are not looked at */
    LW_CACHED_DAMAGED,   /* or cannot be read */
    LW_CACHED_OTHER,     /* written by another version: of no use to this one */
    LW_CACHED_UNFINISHED /* being built, or left by a process that was killed while building */
} lw_cached_state;
const char *lw_cached_state_name(lw_cached_state s); /* "whole", ... */

typedef struct lw_cached {
    char *path,
        *title; /* title: what stands in it, as "folder:/real/path" or "features of ..."; "" when not known */
    uint64_t bytes;
    double age;   /* seconds since it was written */
    int64_t rows; /* 0 when not known */
    int32_t height, width,
        channels; /* of its pictures; 0 of features (data_features.h), or when not known */
    lw_cached_state state;
} lw_cached;
typedef struct lw_cached_list {
    lw_cached *at; /* by name */
    size_t n, cap;
} lw_cached_list;

/* Only regular files that are named as a cache is and begin as one (unfinished ones: named). A
 * missing directory has none. */
int lw_data_cache_list(const char *dir, lw_cached_list *out);
void lw_data_cache_list_clear(lw_cached_list *l);
/* Removes the file and its lock. 1: some process is building it now, left alone. */
int lw_data_cache_remove(const lw_cached *c);

#endif
