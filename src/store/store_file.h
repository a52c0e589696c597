/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters in safetensors files, in PyTorch's names and layouts.
 *
 *   in the store                       in the file
 *   [O,KH,KW,C] (rank 4)               [O,C,KH,KW]
 *   X.to_qkv.weight [3C,C] (.bias)     X.to_q.weight, X.to_k.weight, X.to_v.weight [C,C] (.bias)
 *   everything else                    as it is
 *
 * Files may hold f32, f16 or bf16 (also f64). Prefixes that training wrappers leave on names
 * (module., _orig_mod., ema_model.) are dropped. A linear weight may be stored as a 1x1 convolution
 * [N,K,1,1].
 */
#ifndef LW_STORE_FILE_H
#define LW_STORE_FILE_H

#include "formats/formats.h"
#include "store/store_table.h"

typedef struct lw_load_opts {
    /* Text replaced in the file's names: pairs from, to, from, to, ..., NULL. NULL: nothing. */
    const char *const *replace;
    /* Convolution weight (internal name) whose kernel is the centre of the file's larger one; or
     * NULL. */
    const char *centre_crop;
    /* Unused tensors whose names start with one of these (after renaming) are not worth a warning;
     * NULL-ended. */
    const char *const *ignore;
} lw_load_opts;

/* Fills every entry of a slab (PARAM: EMA is started from it) from a file or an index.json of
 * shards. LW_EFORMAT names up to three parameters the file lacks; LW_ESHAPE names both shapes;
 * values that are not finite are LW_EFORMAT. Tensors nobody asked for are listed in one warning. On
 * failure the slab is as it was. opts may be NULL. */
int lw_store_load(lw_store *s, lw_slab slab, const char *path, const lw_load_opts *opts);
int lw_store_load_from(lw_store *s, lw_slab slab, const lw_st_file *f, const lw_load_opts *opts);
/* Names the file that a store not fixed yet will be filled from (borrowed until it is fixed):
 * fixing it then fails as lw_store_load would, before memory is taken for sizes that a config.json
 * made up. opts as of the load; may be NULL. */
void lw_store_expect(lw_store *s, const lw_st_file *f, const lw_load_opts *opts);
/* One f32 file with every entry, under its file name and layout. Written to a
 * temporary name, fsynced, renamed. meta: n_meta pairs key, value; may be NULL. */
int lw_store_save(const lw_store *s, lw_slab slab, const char *path, const char *const *meta,
                  size_t n_meta);

/* Does a file hold a tensor of this name (prefixes dropped)? For telling models apart. */
const lw_st_tensor *lw_st_find_model(const lw_st_file *f, const char *name);

#endif
