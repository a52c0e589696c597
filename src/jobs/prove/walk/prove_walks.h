/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many proofs walked by one policy until each has ended. Proofs enter from a stream as others end,
 * so a batch never waits for its longest proof and nothing is padded: only states that exist are
 * scored, states that many proofs meet are scored once, and the network always runs on full
 * batches of rows as long as there is work for them.
 *
 *   stream -> at most fixed_batch_size live proofs -> successors (all workers)
 *          -> rows of features, kept by state (prove_state_rows.h) -> choice -> next state
 *
 * All four stations work side by side on different proofs, turn by turn (prove_walks_turn.c).
 *
 * The result of a walk is a pure function of knowledge base, options, weights, query and id. It
 * does not depend on fixed_batch_size, rows, cache_bytes, threads, or on the other walks. With one
 * successor there is no choice: log-probability 0, and no network. The uniform policy has
 * log-probability -ln n at a step of n successors.
 *
 * Memory: everything is allocated in lw_walks_new and lw_walks_bytes says how much; runs allocate
 * nothing.
 */
#ifndef LW_PROVE_WALKS_H
#define LW_PROVE_WALKS_H

#include "base/observer.h"
#include "plan/plan.h"
#include "logic/logic.h"
#include "store/store.h"
#include "models/models.h"

struct lw_policy_config;
struct lw_store;

/* Weights that are given; both borrowed. NULL, or config NULL: the uniform policy. */
typedef struct lw_policy_source {
    const struct lw_policy_config *config;
    struct lw_store *store;
} lw_policy_source;

/* With `two_stage`, how a walk's features are computed. The way is that of f32 in any case, as long as
 * the margin holds. */
typedef enum lw_walk_how {
    LW_WALK_FIRST, /* in bf16; what of a choice lies within the margin in f32, too */
    LW_WALK_EXACT, /* in f32 */
    LW_WALK_BOTH   /* in both, f32 decides: bf16 is measured by it */
} lw_walk_how;

typedef struct lw_walk {
    int64_t id; /* the caller's; keys the random choices */
    lw_atom query;
    double give_up; /* below 0: the walk ends as abandoned once its log-probability is below this */
    lw_walk_how how;
    double before, within; /* the caller's: what a first walk came to, and how exactly */
} lw_walk;

typedef struct lw_walk_result {
    lw_walk walk;
    lw_proof_end end;
    int32_t depth;   /* choices */
    double log_prob; /* sum of the choices' log-probabilities */
    double slack;    /* that of f32 differs by at most this; 0: it is that of f32 */
} lw_walk_result;

/* How far bf16 is trusted. */
typedef struct lw_walks_margin {
    double
        logit; /* two logits of a choice differ from f32 by amounts that differ by at most this */
    double score; /* the log-probability of n choices differs by at most sqrt(n) times this */
} lw_walks_margin;

/* What was seen where both were computed. */
typedef struct lw_walks_seen {
    int64_t choices, logits; /* of LW_WALK_BOTH */
    lw_walks_margin most;    /* the least margin that would have held */
} lw_walks_seen;

typedef struct lw_walks_options {
    lw_env_options env;
    int32_t fixed_batch_size; /* 512: proofs alive together */
    int32_t rows;             /* 1024: states of one run of the network */
    size_t cache_bytes;       /* of kept features; below what the live proofs need, that much */
    bool sample;              /* draw choices; else the most probable one, the first of equals. The
                                 uniform policy always draws */
    uint64_t seed;
    int32_t precision; /* lw_num of the network's products: f32 or bf16 */
    bool two_stage;    /* with f32: bf16 first, f32 where that leaves a choice open */
} lw_walks_options;

/* C(field, what it counts) */
#define LW_WALKS_COUNTS(C)                                   \
    C(walks, "proofs walked to their end")                   \
    C(query_steps, "choices")                                \
    C(forced, "choices among one successor")                 \
    C(states_offered, "successors of all choices")           \
    C(ends_offered, "of these, Endf, which is scored once")  \
    C(states_wanted, "states whose features were looked up") \
    C(cache_hits, "of these, there already or on their way") \
    C(states_scored, "rows computed")                        \
    C(plan_runs, "runs of the network, of `rows` rows each") \
    C(query_rows, "current states multiplied by the head")   \
    C(query_runs, "runs of that product")                    \
    C(evicted, "kept features that made room for others")    \
    C(contested, "choices that bf16 left open, made in f32") \
    C(first_scored, "rows computed in bf16 before f32")

typedef struct lw_walks_counts {
#define C(field, what) int64_t field;
    LW_WALKS_COUNTS(C)
#undef C
    lw_env_counts env;
    double seconds; /* wall time of lw_walks_run, all runs, without `next` and `done` */
    /* These go on side by side: seconds of all workers, divided by their number. */
    double engine_seconds;  /* deriving successors */
    double lookup_seconds;  /* finding states that are kept */
    double network_seconds; /* running plans, filling and emptying them */
    double choice_seconds;  /* products, softmax, taking the choice */
} lw_walks_counts;

typedef struct lw_walks lw_walks;

lw_walks_options lw_walks_defaults(void);
/* Borrows kb, device and policy. LW_EUSAGE with the option's name when one is out of its range, or
 * when the policy was made for other symbols. */
int lw_walks_new(const lw_kb *kb, lw_device *dev, const lw_policy_source *policy,
                 const lw_walks_options *o, lw_walks **out);
void lw_walks_free(lw_walks **pp);
/*
 * Walks all that `next` gives until it says false. `done` gets each result on the caller's thread,
 * in any order; a negative code of it ends the run and is returned. LW_EUSAGE when a query is no
 * atom of the knowledge base; LW_ENUMERIC when a logit is not finite. After an error the next run
 * starts afresh; features are kept from run to run until the weights' version changes.
 */
int lw_walks_run(lw_walks *w, bool (*next)(void *self, lw_walk *out),
                 int (*done)(void *self, const lw_walk_result *r), void *self);
/* With `two_stage`: how far bf16 is trusted from now on (at first: nowhere), and what was seen so far. Both
 * are for the caller between runs. A margin that is no proven bound is one that has to be watched. */
void lw_walks_trust(lw_walks *w, lw_walks_margin margin);
lw_walks_seen lw_walks_see(const lw_walks *w);
/* Asked between turns; when it says true,
 * lw_walks_run ends with LW_ESTOPPED and without the proofs under way. Borrowed; NULL: nobody. */
void lw_walks_observe(lw_walks *w, const lw_observer *obs);
/* Of all runs so far. Lives in w, brought up to date by each run. */
const lw_walks_counts *lw_walks_counted(const lw_walks *w);
/* Bytes that w holds: proofs, scratch, features, plans. */
size_t lw_walks_bytes(const lw_walks *w);

#endif
