/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Features of proof states by a policy network, each state computed once as long as it is kept.
 *
 *   slot = lw_state_rows_hold(r, atoms, n, lw_state_hash(atoms, n), query)    found, or queued
 *   n = lw_state_rows_begin(r)       a run of up to `rows` queued states begins, in n parts;
 *   lw_state_rows_part(r, i, ..)     inside tasks, each i < n once, states being looked up
 *                                    meanwhile;
 *   lw_state_rows_end(r)             then they are ready
 *   lw_state_rows_query(r, ..)       current states times the head: what features are scored with
 *   lw_state_rows_choose(r, ..)      one of the successors of such a state
 *   lw_state_rows_drop(r, slot)      kept from now on only while there is room
 *
 * A state is its goals in their order: hashes find it, then all goals are compared, so a collision
 * (or another order) costs time and no more. A slot that anybody holds stays; the others make room for new states,
 * those that were asked for again last (second chance). All features have equal bits wherever in a
 * run their state stood, so nothing depends on what is kept.
 *
 * Everything is allocated by lw_state_rows_new and lw_state_rows_grow. One thread at a time calls,
 * but for parts, queries and choices, which any workers compute beside it.
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
    int32_t successors; /* of a choice at most */
    int32_t precision;  /* lw_num: f32 or bf16 */
    bool training;      /* as updates will compute: goals as they stand, dropout (masks are drawn by
                           slot), and values too */
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

/* The state's slot, held once more; -1: every slot is held. New ones are queued; from an empty table
 * they get slots 0, 1, 2 .. as long as none is dropped. hash: lw_state_hash of the goals. query: of the proof;
 * a network that sees the query (lw_policy_sees_query) has rows for each of them, where its constants occur. */
int32_t lw_state_rows_hold(lw_state_rows *r, const lw_atom *atoms, int32_t n, uint64_t hash,
                           lw_atom query);
/* Twice as many slots; states keep theirs. LW_ENOMEM: nothing has changed. */
int lw_state_rows_grow(lw_state_rows *r);
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
/* The whole queue, on all workers. tick: of dropout. */
void lw_state_rows_run(lw_state_rows *r, const lw_tick *tick);
/* A slot is ready when its ticket is below lw_state_rows_done. */
int64_t lw_state_rows_ticket(const lw_state_rows *r, int32_t slot);
int64_t lw_state_rows_done(const lw_state_rows *r);

/* The goals of a held slot, and their hash. */
const lw_atom *lw_state_rows_atoms(const lw_state_rows *r, int32_t slot, int32_t *n,
                                   uint64_t *hash);
/* The same as a row of the network's inputs: predicates[A], arguments[2A], scale (NULL: not wanted),
 * A = the policy's max_atoms. */
void lw_state_rows_fill(const lw_state_rows *r, int32_t slot, int32_t *predicates,
                        int32_t *arguments, float *scale);
/* Are these rows equal, so that their features have equal bits at any precision? */
bool lw_state_rows_alike(const lw_state_rows *r, int32_t a, int32_t b);
/* [slots], with `training`; valid where a slot is ready and held. */
const float *lw_state_rows_values(const lw_state_rows *r);

enum { LW_STATE_QUERIES = 12 }; /* rows of one product */
/* Brings what queries need up to date with the weights. */
void lw_state_rows_prepare(lw_state_rows *r);
/* Inside a task of the device, by worker `worker`: the queries of n <= LW_STATE_QUERIES current
 * states, for choices until this worker's next call. */
void lw_state_rows_query(lw_state_rows *r, int worker, const int32_t *slot, int32_t n);
/*
 * Behind it: the logits of n successors (their slots) of the i-th of these states, products of query
 * and features, up to a term equal for all. Each is a function of the two states alone. This
 * worker's until its next call.
 */
const float *lw_state_rows_logits(lw_state_rows *r, int worker, int32_t i, const int32_t *slot,
                                  int32_t n);
/* A choice by logits: u in [0, 1) draws by their softmax; below 0: the most probable one, the first
 * of equals. *log_prob: of the choice; NaN when a logit is not finite. */
int32_t lw_logits_choose(const float *logit, int32_t n, double u, double *log_prob);
/* Natural log of the softmax at k. */
double lw_logits_log_prob(const float *logit, int32_t n, int32_t k);
/* Both: the choice among these successors. */
int32_t lw_state_rows_choose(lw_state_rows *r, int worker, int32_t i, const int32_t *slot,
                             int32_t n, double u, double *log_prob);

const lw_state_rows_counts *lw_state_rows_counted(const lw_state_rows *r);
size_t lw_state_rows_bytes(const lw_state_rows *r);     /* slots, plans */
double lw_state_rows_row_flops(const lw_state_rows *r); /* of a state's features */

#endif
