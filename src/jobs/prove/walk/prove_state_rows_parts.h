/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of prove_state_rows. */
#ifndef LW_PROVE_STATE_ROWS_PARTS_H
#define LW_PROVE_STATE_ROWS_PARTS_H

#include "kernels/kernels.h"
#include "jobs/prove/walk/prove_state_rows.h"

typedef struct lw_state_slot {
    uint64_t hash;
    int64_t ticket;   /* place in the queue of all times: computed when below `done` */
    int32_t next;     /* in its bucket, -1: the last */
    int32_t n;        /* goals, 0: an empty slot */
    int32_t query[2]; /* that the network sees it with, 0: for any */
    int32_t held;
    bool again; /* found since the hand came by */
} lw_state_slot;

/* A run is cut into parts that fit a core's caches; each worker has an exec of its own. */
enum { LW_STATE_PART = 64, LW_STATE_MOST_WORKERS = 256 };

/* What one worker runs: its execs with their inputs and outputs. */
typedef struct lw_state_worker {
    lw_exec *exec;
    int32_t *predicates, *arguments; /* [part, most_atoms], [part, 2 most_atoms] */
    float *scale;                    /* [part], or NULL: the network has no use for it */
    int64_t *rows;                   /* [part], or NULL: no dropout */
    const float *keys, *values;      /* [part, width]; [part], or NULL */
    lw_exec *query;
    const float *queries; /* [LW_STATE_QUERIES, width] */
    float *logit;         /* [successors] */
    double seconds;       /* in parts of runs */
} lw_state_worker;

typedef struct lw_state_table {
    int32_t n_slots;
    float *features; /* [n_slots, width] */
    float *values;   /* [n_slots] */
    lw_atom *atoms;  /* [n_slots, most_atoms] */
    lw_state_slot *slot;
    int32_t *bucket; /* [mask + 1]: the first slot, -1: none */
    size_t mask;
    int32_t *queue; /* states without features, in order: queue[ticket % n_slots] */
    size_t feature_bytes, atom_bytes, bytes;
} lw_state_table;

struct lw_state_rows {
    lw_device *dev;
    lw_policy_config config;
    int32_t rows, most_atoms, width;
    bool training, sees_query;
    lw_state_table table;
    int32_t hand;
    int64_t queued, done; /* tickets given, tickets computed */
    /* the network: one plan of `part` rows */
    int32_t part, workers;
    lw_plan *network;
    lw_state_worker worker[LW_STATE_MOST_WORKERS]; /* the first owns the prepared data */
    lw_plan *product;                              /* of LW_STATE_QUERIES rows */
    int64_t running;                               /* states of this run */
    const lw_tick *tick;                           /* of this run; NULL: no dropout */
    lw_reduce_dots_fn *dots;
    size_t bytes;
    lw_state_rows_counts counts;
};

/* Plans, execs and the addresses of their inputs and outputs. */
int lw_state_rows_compile(lw_state_rows *r, lw_store *store, const lw_state_rows_options *o);

#endif
