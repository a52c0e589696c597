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
    const lw_naming *source_namings;
    const lw_memory *memory; /* the host's until an exec binds the store */
    float *slab[LW_SLABS];   /* what the host sees */
    float *there[LW_SLABS];  /* in `memory`: the same blocks, or a device's */
    bool edited[LW_SLABS];   /* by the host, not handed over yet */
    uint64_t version[LW_SLABS];
    lw_params params;
};

/* A tensor of a file, or rows of one, that is an entry or rows of one. */
typedef struct store_piece {
    const lw_store_entry *entry;
    const lw_name_rule *rule; /* NULL: the same name and rows */
    const char *name;         /* of the file's tensor, wrappers dropped */
    int rank;
    int64_t shape[LW_ARRAY_MAX_RANK]; /* of the whole tensor in the file */
    int64_t skip;                     /* its values before this piece's, after transposing */
    int64_t at, count;                /* the entry's values before this piece's; how many */
} store_piece;

typedef struct store_pieces {
    lw_arena *arena; /* names */
    store_piece *of;
    size_t n, cap;
} store_pieces;

/* What is allocated of a slab. */
size_t lw_store_slab_bytes(const lw_store *s);
/* A whole slab as the host sees it, brought up to date; NULL: no such slab. */
float *lw_store_host(const lw_store *s, lw_slab slab);

/* Every entry of s in order, in pieces by a naming (NULL: ours). LW_ENOMEM. */
int lw_store_pieces_of(const lw_store *s, const lw_naming *naming, store_pieces *out);
void lw_store_pieces_clear(store_pieces *p);
/* A piece's values from a whole tensor of its file (src, not changed) to the entry's (dst, of the
 * whole entry), and back. t: as it is in the file. */
void lw_store_piece_read(const store_piece *p, const lw_st_tensor *t, const float *src, float *dst);
void lw_store_piece_write(const store_piece *p, const float *src, float *dst);
/* Are the entry's values those of the whole tensor of the file, in its order? */
bool lw_store_piece_as_it_is(const store_piece *p);

/* Where each piece of a store is in a file. */
typedef struct store_source {
    const lw_st_tensor *tensor;
    const lw_st_tensor *scale; /* per row of an I8 tensor; NULL */
} store_source;

typedef struct store_match {
    store_pieces pieces;
    store_source *source; /* of each piece */
} store_match;

/* Adds every entry of a slab to a writer, names behind `prefix`; then puts the data in the same
 * order. */
int lw_store_write_header(const lw_store *s, const char *prefix, lw_st_writer *w);
int lw_store_write_data(const lw_store *s, lw_slab slab, lw_st_writer *w);
/* Finds every entry in a file whose names carry `prefix`, by the naming that fits. Errors as
 * lw_store_load's. */
int lw_store_match(const lw_store *s, const lw_st_file *f, const char *prefix,
                   const lw_naming *namings, store_match *out);
void lw_store_match_clear(store_match *m);
/* Fills a slab from a file whose names carry `prefix`; with LW_OK every entry was filled. `f` is
 * checked whole before the first byte is changed. */
int lw_store_read_slab(lw_store *s, lw_slab slab, const lw_st_file *f, const char *prefix,
                       const lw_naming *namings);

/* Step directories under run/checkpoints. */
const char *lw_store_step_name(char buf[32], int64_t step);
bool lw_store_parse_step(const char *name, int64_t *step);
/* Is dir a whole checkpoint, as far as names tell? */
bool lw_store_dir_whole(const char *dir);

#endif
