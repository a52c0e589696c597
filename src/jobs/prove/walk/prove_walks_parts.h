/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of prove_walks: live proofs, and the stations they pass. */
#ifndef LW_PROVE_WALKS_PARTS_H
#define LW_PROVE_WALKS_PARTS_H

#include <math.h>

#include "jobs/prove/walk/prove_state_rows.h"
#include "jobs/prove/walk/prove_walks.h"

enum {
    LW_WALKS_MOST_WORKERS = 256,
    LW_WALKS_STEPS = 64 /* without a choice of the network, before other proofs get their turn */
};

enum { LW_WALKS_STAGES = 2 };

/* Places of walkers, first in, first out. */
typedef struct lw_walk_queue {
    int32_t *of; /* [cap] */
    int32_t cap, head, n;
} lw_walk_queue;

/* A table of features, and the walkers that wait for it. */
typedef struct lw_walk_stage {
    lw_state_rows *rows;
    lw_walk_queue waiting;
    int32_t *ready, n_ready; /* [fixed_batch_size] */
    int32_t endf;            /* slot of the state Endf, -1: not yet */
    int64_t full;            /* queued states that make a run worth while */
} lw_walk_stage;

/* A choice that bf16 leaves open: what f32 is to decide among. Slots are those of the last stage. */
typedef struct lw_contest {
    bool open;
    int32_t n,
        at; /* successors among which; those before `at` are looked up, -1: not even the state */
    int32_t current; /* slot of the state */
    int32_t *of;     /* [padding_states] numbers of the successors */
    int32_t *slot;   /* [padding_states] theirs */
    float *logit;    /* [padding_states] of all successors, by bf16 */
} lw_contest;

/* One place for a live proof. Slots are those of its stage. */
typedef struct lw_walker {
    lw_walk walk;
    lw_path *path;
    double log_prob;
    int32_t current;     /* slot of the current state, held; -1: not looked up yet */
    int32_t current_for; /* path->n_states that it belongs to */
    int32_t n;           /* successors waited for */
    int32_t *slot;       /* [padding_states] theirs, held */
    int32_t next_var;
    int32_t chosen;
    int64_t needs; /* the last ticket among them and the current state, or of its contest */
    bool bad;      /* a logit was not finite */
    int32_t stage;
    lw_contest contest;
    int32_t inexact;   /* choices whose log-probability is that of bf16 */
    int32_t measured;  /* choices in both */
    double difference; /* of these: bf16 less f32 */
} lw_walker;

/* Successors on their way from an env to the table. */
typedef struct lw_lane {
    int32_t walker;
    int32_t n;       /* 0: the proof has ended, or goes on in another round */
    int32_t at;      /* looked up so far; -1: not even the current state */
    lw_moves *moves; /* NULL: uniform */
} lw_lane;

typedef struct lw_lanes {
    lw_lane *lane; /* [most_lanes] */
    int32_t n, at; /* those before `at` are looked up */
} lw_lanes;

/*
 * What the workers do side by side: tasks in this order. The stations of a walker are one turn
 * apart, so that no two tasks of a turn meet at one walker: derived in one turn, looked up in the
 * next, computed in a later one, chosen for in the one behind.
 */
typedef struct lw_turn {
    int64_t look_up;                 /* 1: lanes that were derived before */
    int64_t parts[LW_WALKS_STAGES];  /* of runs of the network */
    int64_t groups[LW_WALKS_STAGES]; /* of ready walkers */
    int64_t lanes;                   /* to derive */
} lw_turn;

struct lw_walks {
    const lw_kb *kb;
    lw_device *dev;
    lw_walks_options o;
    lw_rng_key key;
    const lw_observer *obs;
    int workers;
    lw_env *env[LW_WALKS_MOST_WORKERS];
    lw_walks_counts part[LW_WALKS_MOST_WORKERS]; /* counted by workers, without locks */
    lw_path *paths;
    lw_walker *walker;      /* [fixed_batch_size] */
    int32_t *slots;         /* [fixed_batch_size, padding_states] */
    int32_t *contest_words; /* [fixed_batch_size, 2, padding_states]: of, slot */
    float *contest_logits;  /* [fixed_batch_size, padding_states] */
    lw_walk_queue idle, to_expand,
        contested; /* no proof; wants successors; wants rows of a contest */
    lw_lane *lane;
    lw_moves *moves;
    lw_lanes derived, looked_up; /* swapped when the latter are through */
    int32_t most_lanes;
    bool no_slots; /* the look-up waits until slots are let go of */
    lw_turn turn;
    /* the network: one table, or bf16 and f32; none: uniform */
    int stages;
    lw_walk_stage stage[LW_WALKS_STAGES];
    lw_walks_margin margin;
    lw_walks_seen seen[LW_WALKS_MOST_WORKERS];
    const lw_store *store;
    uint64_t version; /* of the weights that kept features belong to */
    bool clean;       /* nothing is held but endf */
    size_t bytes;
    lw_walks_counts counts;
};

static inline void lw_walk_push(lw_walk_queue *q, int32_t i)
{
    q->of[(q->head + q->n++) % q->cap] = i;
}

/* How far its log-probability may be from that of f32. */
static inline double lw_walks_slack(const lw_walks *w, const lw_walker *me)
{
    return me->inexact > 0 ? w->margin.score * sqrt((double)me->inexact) : 0;
}

static inline int32_t lw_walk_pop(lw_walk_queue *q)
{
    int32_t i = q->of[q->head];
    q->head = (q->head + 1) % q->cap;
    q->n--;
    return i;
}

/* A lane's walker up to its next real choice, or to its end (n = 0), or for LW_WALKS_STEPS steps (n
 * = 0): forced and uniform choices are taken at once. */
void lw_walks_derive(lw_walks *w, lw_lane *lane, int worker);
/* Looks up what contests want and what the lanes hold; false when slots run out, to go on when some are let go of. */
bool lw_walks_look_up(lw_walks *w);
/* Takes the choices of up to LW_STATE_QUERIES ready walkers of a stage, or opens a contest. */
void lw_walks_choose(lw_walks *w, int stage, int64_t group, int worker);
/* By its features of the first stage: whether a choice is left open, and then among what (prove_walks_contest.c). */
bool lw_contest_open(const lw_walks *w, lw_walker *me, const float *logit, double u);
/* Looks up its rows; false when slots run out. */
bool lw_contest_look_up(lw_walks *w, int32_t walker);
/* By its features of the last stage: the successor, and the log-probability. */
int32_t lw_contest_decide(lw_walks *w, lw_walker *me, const float *logit, double u, int worker,
                          double *log_prob);
void lw_contest_let_go(lw_walks *w, lw_walker *me);
/* Lets go of the features of a step that was chosen for, but for those of the state gone to. */
void lw_walks_let_go(lw_walks *w, lw_walker *me);

/* The stream's side of a turn. */
typedef struct lw_walks_stream {
    /* Gets a walker that has ended; its place is idle from then on. */
    int (*ended)(void *self, int32_t walker);
    void *self;
} lw_walks_stream;
/* One turn. LW_ENUMERIC: a logit is not finite. */
int lw_walks_take_turn(lw_walks *w, const lw_walks_stream *s);

#endif
