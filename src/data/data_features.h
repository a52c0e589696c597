/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers that a network made of every row of a dataset, kept in the cache directory: a mapped file,
 * made once under a lock and written aside, for all later runs.
 *
 *   KIND-KEY.data   [ header page | array 0 [rows][row bytes] | array 1 | ... | hashes | texts ]
 *
 * What the numbers are of is the caller's affair: all that their bits follow from goes into the key.
 * Every byte is compared with its hash when the file is opened.
 */
#ifndef LW_DATA_FEATURES_H
#define LW_DATA_FEATURES_H

#include "base/base.h"
#include "base/thread/pool.h"
#include "data/data_set.h"

enum { LW_MAX_FEATURE_ARRAYS = 1024 };

/* Latents are such numbers, too, but no other file goes for them, nor they for another. */
typedef enum lw_features_kind { LW_KEEP_FEATURES, LW_KEEP_LATENTS } lw_features_kind;

typedef struct lw_features_spec {
    lw_features_kind kind;
    uint64_t key;      /* of all that the bits follow from */
    const char *title; /* what they are, for people */
    int64_t rows;
    const size_t *row; /* [arrays] bytes of one row, each a multiple of 2 */
    int32_t arrays;
    const char *dir; /* NULL: lw_data_cache_dir */
    int64_t
        together;  /* bytes that all files of this kind may take: those longest unused go for a new
                      one; 0: in memory */
    lw_pool *pool; /* NULL: this thread */
    const lw_observer *obs; /* may end the wait for another process that makes them; NULL: nobody */
} lw_features_spec;

typedef struct lw_features_file {
    lw_map map;
    const void *array[LW_MAX_FEATURE_ARRAYS];
    void *memory[LW_MAX_FEATURE_ARRAYS]; /* where they are not on disk; or all NULL */
    size_t bytes[LW_MAX_FEATURE_ARRAYS]; /* of these */
} lw_features_file;

/* What made the numbers of a dataset's rows. */
typedef struct lw_features_made {
    bool flip;        /* mirrored rows too */
    uint64_t weights; /* lw_store_hash; 0: none */
    uint64_t graph;   /* lw_graph_hash */
    int32_t precision, conv;
    const char *isa;
} lw_features_made;
/* Of all that their bits follow from, but for the batch they are made in. */
uint64_t lw_features_key(const lw_dataset *d, const lw_features_made *by);

/* Fills every array. */
typedef int lw_features_make(void *self, void *const *array);

/* The file's path into `out`; "" when there is no cache directory. Bytes it has. */
uint64_t lw_features_path(const lw_features_spec *s, lw_str *out);
/* Maps the file. 1: there is none. LW_EFORMAT: damaged, LW_EUNSUPPORTED: of another version. */
int lw_features_open(const lw_features_spec *s, lw_features_file *out);
/* Maps the file, making it when it is not there or damaged (which is logged): of several processes
 * one makes it, the others wait. 1: it cannot be on disk, the message says why, nothing was made.
 * Else as `make` (LW_ESTOPPED: nothing is left behind). */
int lw_features_keep(const lw_features_spec *s, lw_features_make *make, void *self,
                     lw_features_file *out);
/* The same; where they cannot be on disk in memory, with a warning that says why. */
int lw_features_have(const lw_features_spec *s, lw_features_make *make, void *self,
                     lw_features_file *out);
void lw_features_close(lw_features_file *f);

/* For lists of the cache: rows and title (heap) of a mapped file. LW_EFORMAT, LW_EUNSUPPORTED as
 * above; 1: the file is none of these. */
int lw_features_look(const char *what, const void *image, size_t size, int64_t *rows, char **title);
/* Is it named as one of these? *tail: what follows that name. */
bool lw_features_named(const char *name, const char **tail);

#endif
