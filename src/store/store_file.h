/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters in safetensors files: our own in PyTorch's names and layouts, others' by their naming
 * (store_naming.h).
 *
 * Files may hold f32, f16 or bf16 (also f64). Prefixes that training wrappers leave on names
 * (module., _orig_mod., ema_model.) are dropped.
 */
#ifndef LW_STORE_FILE_H
#define LW_STORE_FILE_H

#include "formats/formats.h"
#include "store/store_naming.h"
#include "store/store_table.h"

/* Fills every entry of a slab (PARAM: EMA is started from it) from a file or an index.json of
 * shards. LW_EFORMAT lists what the file lacks, what it has that nobody asked for, and what has
 * another shape; values that are not finite are LW_EFORMAT. On failure the slab is as it was.
 * namings: how the file may name them; NULL: as we do. */
int lw_store_load(lw_store *s, lw_slab slab, const char *path, const lw_naming *namings);
int lw_store_load_from(lw_store *s, lw_slab slab, const lw_st_file *f, const lw_naming *namings);
/* Names the file that a store not fixed yet will be filled from (borrowed until it is fixed):
 * fixing it then fails as lw_store_load would, before memory is taken for sizes that a config.json
 * made up. namings as of the load. */
void lw_store_expect(lw_store *s, const lw_st_file *f, const lw_naming *namings);
/* One f32 file with every entry, under its file name and layout. Written to a
 * temporary name, fsynced, renamed. meta: n_meta pairs key, value; may be NULL. */
int lw_store_save(const lw_store *s, lw_slab slab, const char *path, const char *const *meta,
                  size_t n_meta);
/* The same under others' names and in their layouts (naming NULL: ours), as F32, F16 or BF16; beside
 * every running_var a num_batches_tracked of 0, which torch has there. LW_EUNSUPPORTED: the rules
 * lead there but not back (the centre of a kernel), or give a part of a tensor only; a value is too
 * large for the type. */
int lw_store_save_as(const lw_store *s, lw_slab slab, const char *path, const lw_naming *naming,
                     lw_elem as, const char *const *meta, size_t n_meta);
/* What of a file that s was loaded from stands in no entry, or (kept may be NULL) in none that `kept`
 * has by name; counters of batches aside: a new array of names, sorted. *widest: the narrowest type
 * that holds all that does (F32 for wider ones and for bytes with scales). */
int lw_store_left_out(const lw_store *s, const lw_store *kept, const lw_st_file *f,
                      const lw_naming *namings, json_t **names, lw_elem *widest);

/* What a file of that naming (NULL: ours) calls entry `name` of s; names are copied to `arena`. *n 0:
 * there is no such entry. */
int lw_store_file_names(const lw_store *s, const lw_naming *naming, const char *name,
                        lw_arena *arena, lw_file_name out[LW_MAX_FILE_NAMES], int *n);

/* Does a file hold a tensor of this name (prefixes dropped)? For telling models apart. */
const lw_st_tensor *lw_st_find_model(const lw_st_file *f, const char *name);

#endif
