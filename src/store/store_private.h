/* SPDX-License-Identifier: Apache-2.0 */
/* Private to store: the table's memory, and what one entry is called in a file. */
#ifndef LW_STORE_PRIVATE_H
#define LW_STORE_PRIVATE_H

#include "store/store.h"

struct lw_store {
    lw_arena *arena; /* names */
    lw_store_entry *entry;
    size_t n, cap;
    int64_t floats; /* length of a slab */
    bool frozen, fixed;
    const lw_st_file *source; /* must hold all names and types before slabs are made; or NULL */
    const lw_load_opts *source_opts;
    const lw_memory *memory; /* the host's until an exec binds the store */
    float *slab[LW_SLABS];   /* what the host sees */
    float *there[LW_SLABS];  /* in `memory`: the same blocks, or a device's */
    bool edited[LW_SLABS];   /* by the host, not handed over yet */
    uint64_t version[LW_SLABS];
    lw_params params;
};

/* How an entry is laid out in a file: `parts` tensors, each `count` floats of the entry. */
typedef struct store_disk {
    int parts;    /* 1, or 3 for a packed q|k|v projection */
    bool permute; /* rank 4: [O,KH,KW,C] here, [O,C,KH,KW] in the file */
    int rank;
    int64_t shape[LW_MAX_RANK]; /* of each part */
    int64_t count;              /* of each part */
} store_disk;

/* A whole slab as the host sees it, brought up to date; NULL: no such slab. */
float *lw_store_host(const lw_store *s, lw_slab slab);

store_disk lw_store_disk_of(const lw_store_entry *e);
/* The file's name of part k, into s (replaced). */
const char *lw_store_disk_name(lw_str *s, const lw_store_entry *e, int part);
/* dst[O,KH,KW,C] <- src[O,C,KH,KW] and back; d's shape is the file's. */
void lw_store_from_disk(const store_disk *d, const float *src, float *dst);
void lw_store_to_disk(const store_disk *d, const float *src, float *dst);

/* Adds every entry of a slab to a writer, names behind `prefix`; then puts the data in the same
 * order. */
int lw_store_write_header(const lw_store *s, const char *prefix, lw_st_writer *w);
int lw_store_write_data(const lw_store *s, lw_slab slab, lw_st_writer *w);
/* Has the file every entry, of a fitting shape? Errors as lw_store_load's. */
int lw_store_match(lw_store *s, const lw_st_file *f, const lw_load_opts *opts);
/* Fills a slab from a file whose names carry `prefix`; with LW_OK every entry was filled. `f` is
 * checked whole before the first byte is changed. */
int lw_store_read_slab(lw_store *s, lw_slab slab, const lw_st_file *f, const char *prefix,
                       const lw_load_opts *opts);

/* Step directories under run/checkpoints. */
const char *lw_store_step_name(char buf[32], int64_t step);
bool lw_store_parse_step(const char *name, int64_t *step);
/* Is dir a whole checkpoint, as far as names tell? */
bool lw_store_dir_whole(const char *dir);

#endif
