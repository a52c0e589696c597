/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features of proof states by a policy network, each state computed once as long as it is kept.
 *
 *   slot = lw_state_rows_hold(r, atoms, n, lw_state_rows_hash(atoms, n))    found, or queued
 *   n = lw_state_rows_begin(r)       a run of up to `rows` queued states begins, in n parts;
 *   lw_state_rows_part(r, i, ..)     inside tasks, each i < n once, states being looked up
 *                                    meanwhile;
 *   lw_state_rows_end(r)             then they are ready
 *   lw_state_rows_query(r, ..)       current states times the head: what features are scored with
 *   lw_state_rows_drop(r, slot)      kept from now on only while there is room
 *
 * A state is its goals in their order: hashes find it, then all goals are compared, so a collision
 * costs time and no more. A slot that anybody holds stays; the others make room for new states,
 * those that were asked for again last (second chance). All features have equal bits wherever in a
 * run their state stood, so nothing depends on what is kept.
 *
 * Everything is allocated by lw_state_rows_new. One thread at a time calls, but for parts and
 * queries, which any workers compute beside it.
 */
#ifndef LW_PROVE_STATE_ROWS_H
#define LW_PROVE_STATE_ROWS_H

#include "models/models.h"
#include "plan/plan.h"
#include "logic/logic.h"

typedef struct lw_state_rows_options {
    int32_t rows;       /* states of one run of the network */
    int32_t in_use;     /* slots that are held at once at most */
    size_t cache_bytes; /* for slots; in_use of them are there in any case */
    int32_t precision;  /* lw_num: f32 or bf16 */
} lw_state_rows_options;

typedef struct lw_state_rows_counts {
    int64_t wanted, hits; /* lw_state_rows_hold: all, found or already queued */
    int64_t scored, runs; /* rows with a state, runs of `rows` each */
    int64_t evicted;
    double network_seconds; /* in parts, of all workers, by their number */
} lw_state_rows_counts;

typedef struct lw_state_rows lw_state_rows;

/* Compiles both plans. Borrows device and store. Atoms are at most config->max_atoms a state.
 * LW_ENOMEM names the size. */
int lw_state_rows_new(lw_device *dev, const lw_policy_config *config, lw_store *store,
                      const lw_state_rows_options *o, lw_state_rows **out);
void lw_state_rows_free(lw_state_rows **pp);
/* Drops everything, held or not: the weights have changed. Counts go on. */
void lw_state_rows_forget(lw_state_rows *r);

/* Of the goals in their order (lw_state_hash is of the goals in any order). */
static inline uint64_t lw_state_rows_hash(const lw_atom *atoms, int32_t n)
{
    uint64_t h = (uint64_t)n;
    for (int32_t i = 0; i < n; i++)
        h = (h ^ h >> 29) * 0x9e3779b97f4a7c15u + lw_atom_hash(atoms[i]);
    return h ^ h >> 32;
}

/* The state's slot, held once more; -1: every slot is held. New ones are queued. */
int32_t lw_state_rows_hold(lw_state_rows *r, const lw_atom *atoms, int32_t n, uint64_t hash);
/* Asks memory for what lw_state_rows_hold will read. */
void lw_state_rows_prefetch(const lw_state_rows *r, uint64_t hash);
void lw_state_rows_hold_again(lw_state_rows *r, int32_t slot);
void lw_state_rows_drop(lw_state_rows *r, int32_t slot);

int64_t lw_state_rows_queued(const lw_state_rows *r);
/* The first `rows` of the queue, or all of it: the number of parts, 0 when it is empty. */
int64_t lw_state_rows_begin(lw_state_rows *r);
/* Inside a task of the device, by worker `worker`. */
void lw_state_rows_part(lw_state_rows *r, int64_t part, int worker);
/* After all parts. */
void lw_state_rows_end(lw_state_rows *r);
/* A slot is ready when its ticket is below lw_state_rows_done. */
int64_t lw_state_rows_ticket(const lw_state_rows *r, int32_t slot);
int64_t lw_state_rows_done(const lw_state_rows *r);

/* [slots, width], valid where a slot is ready and held. */
const float *lw_state_rows_features(const lw_state_rows *r, int32_t *width);
/* The goals of a held slot. */
const lw_atom *lw_state_rows_atoms(const lw_state_rows *r, int32_t slot, int32_t *n);
enum { LW_STATE_QUERIES = 12 }; /* rows of one product */
/*
 * Inside a task of the device, by worker `worker`: query[i * width ..] of slot[i], i < n <=
 * LW_STATE_QUERIES, valid until this worker's next call. The logit of successor k is the product of
 * the query with k's features, up to a term equal for all k. After lw_state_rows_prepare.
 */
const float *lw_state_rows_query(lw_state_rows *r, int worker, const int32_t *slot, int32_t n);
/* Brings what queries need up to date with the weights. */
void lw_state_rows_prepare(lw_state_rows *r);

const lw_state_rows_counts *lw_state_rows_counted(const lw_state_rows *r);
size_t lw_state_rows_bytes(const lw_state_rows *r); /* slots, plans */

#endif
