/* SPDX-License-Identifier: Apache-2.0 */
/* The table of names and the slabs behind it. */
#ifndef LW_STORE_TABLE_H
#define LW_STORE_TABLE_H

#include "ir/ir.h"

typedef struct lw_store lw_store;

typedef struct lw_store_entry {
    const char *name; /* dotted, lives as long as the store */
    uint64_t hash;    /* lw_hash_name(name): the stream of its initial values */
    lw_type type;     /* internal layout: linear [N,K], convolution [O,KH,KW,C] */
    lw_init init;
    int64_t offset; /* floats from the start of every slab; a multiple of 16 */
    int64_t count;  /* floats */
} lw_store_entry;

/* A frozen store has a PARAM slab only and asks for no gradients. */
int lw_store_new(bool frozen, lw_store **out);
void lw_store_free(lw_store **pp);
/* What a builder needs. Lives as long as the store. */
const lw_params *lw_store_params(const lw_store *s);

/* Fixes the names and allocates the slabs (zeros). Later declarations only find names. Fixing twice
 * is allowed and does nothing. LW_ENOMEM names the size. Required before any exec binds
 * this store. */
int lw_store_fix(lw_store *s);
bool lw_store_is_fixed(const lw_store *s);
bool lw_store_is_frozen(const lw_store *s);

int32_t lw_store_count(const lw_store *s); /* entries */
const lw_store_entry *lw_store_at(const lw_store *s, int32_t i);
int32_t lw_store_find(const lw_store *s, const char *name); /* -1: no such name */
int64_t lw_store_param_count(const lw_store *s);            /* numbers, without the gaps */
size_t lw_store_bytes(const lw_store *s); /* of all slabs, also before they are allocated */

/*
 * Slabs are on the host until an exec binds the store, then in the memory of its device. Execs and
 * the device's functions get addresses there, which on a CPU are the host's; all others read and
 * edit what the host sees.
 */

/* Address of a whole slab; *floats (may be NULL) is its length, gaps included. NULL: not fixed, or
 * no such slab. */
float *lw_store_slab(const lw_store *s, lw_slab slab, int64_t *floats);
/* All of them, and their length: for an update (lw_device.update). */
int64_t lw_store_slabs(const lw_store *s, float *slab[LW_SLABS]);
/* One entry as the host sees it, until the slab changes; others follow at their offsets. NULL as
 * above. */
const float *lw_store_data(const lw_store *s, int32_t i, lw_slab slab);
/* The same to be changed: lw_store_touch hands the changes over. */
float *lw_store_edit(lw_store *s, int32_t i, lw_slab slab);

/* Fills PARAM by the declared rules, keyed by (seed, name): independent of order, of other entries
 * and of threads. EMA becomes a copy, GRAD, M and V zero. Normal: Box-Muller in double. The store
 * must be fixed. */
void lw_store_init(lw_store *s, uint64_t seed);
/* The initial values of one entry into dst[entry->count]. */
void lw_store_init_entry(const lw_store_entry *e, uint64_t seed, float *dst);
/* EMA = PARAM (no-op for a frozen store). */
void lw_store_start_ema(lw_store *s);

/* Says that a slab's bytes changed, by an edit or an update: execs prepare their derived data
 * again. */
void lw_store_touch(lw_store *s, lw_slab slab);
uint64_t lw_store_version(const lw_store *s, lw_slab slab);

/* Name of the first entry with a value that is not finite in a slab; NULL: all are finite. */
const char *lw_store_first_bad(const lw_store *s, lw_slab slab);
/* Hash over names, types and the bytes of a slab: equal stores give equal hashes. */
uint64_t lw_store_hash(const lw_store *s, lw_slab slab);

#endif
