/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `prove compare`: whatever ranks triples, on the same queries and the same candidates, in one table.
 *
 *   uniform       walks that choose evenly: the least a policy must beat
 *   untrained     the first policy's network (or the published one) with the weights of a beginning, by seed
 *   policies      as given; `A+B+C` is one row whose seed k takes the k-th of them: trainings, not only draws
 *   half links    how many facts the candidate's own argument has with the predicate: what a model knows that
 *                 has never seen the other argument
 *   embedding, hybrid    with a `prove kge` run: alone, and with each policy's proofs
 *   rules         applied once, by confidence (logic_rule_answers.h)
 *   ceiling       a prover that finds every proof there is and calls all equal (logic_least_model.h)
 *
 * Every seed draws other candidates and walks anew; a number is the mean over seeds with its deviation.
 */
#ifndef LW_PROVERS_JOB_H
#define LW_PROVERS_JOB_H

#include "jobs/prove/kge/kge_job.h"
#include "jobs/prove/rank/rank_job.h"
#include "report/report.h"

typedef struct lw_provers_options {
    lw_prove_eval_options eval; /* its seeds are those of seed 0 */
    const char *const *policy;  /* runs and model folders */
    int32_t n_policies, seeds;
    const char *kge; /* NULL: none */
    bool ema;
    int32_t rule_score;
    int threads;
} lw_provers_options;

/* Walks of a row in two stages (rank_job.h), over seeds. */
typedef struct lw_prover_stages {
    int32_t n, fell_back;               /* evaluations; of these, done again in f32 alone */
    int64_t rows_bf16, rows_f32, again; /* rows of the network; corruptions walked again */
    double most_of_margin; /* the largest difference that was seen, of what is trusted */
} lw_prover_stages;

enum {
    LW_PROVERS_UNTRAINED = 1,
    LW_PROVERS_POLICY = 2
}; /* row of the first policy: behind uniform and untrained */

/* One row. */
typedef struct lw_prover {
    char *name;    /* of trainings `A+B+C`: "A and 2 more" */
    lw_rank *rank; /* [seeds][modes][queries] */
    double true_proved,
        false_proved; /* shares over seeds; NaN: it proves nothing, or is not known */
    double seconds;   /* of all seeds */
    lw_prover_stages stages;
} lw_prover;

/* What a query is sorted by. */
typedef enum lw_provers_by {
    LW_PROVERS_ALL,
    LW_PROVERS_PREDICATE,
    LW_PROVERS_DEPTH, /* of the shortest proof (least model), else as published; 0: none */
    LW_PROVERS_HALF,  /* do other facts have its half links? */
    LW_PROVERS_BYS
} lw_provers_by;

typedef struct lw_provers {
    const lw_kb *kb;
    const lw_queries *queries;
    lw_prover *row;
    int32_t n, seeds, n_modes, modes[LW_CORRUPT_MODES];
    int32_t half_row, ceiling_row; /* of half links; of the ceiling, -1: it is not known */
    int32_t *depth;                /* [queries]; -1: no proof, -2: not known */
    uint8_t
        *half; /* [modes][queries]: 1 the asked argument is seen with the predicate, 2 the known */
    int64_t provable;   /* queries; -1: not known */
    int64_t candidates; /* of one row and seed */
    int64_t alone;      /* lists of one seed without a corruption: rank 1 for every row */
    double seconds;
} lw_provers;

int lw_provers_run(const lw_kb *kb, const lw_queries *q, const lw_positives *known,
                   const lw_provers_options *o, const lw_observer *obs, lw_provers *out);
void lw_provers_clear(lw_provers *p);

/* ---- numbers ----------------------------------------------------------------------------------- */

enum { LW_PROVERS_MRR, LW_PROVERS_HITS1, LW_PROVERS_HITS10, LW_PROVERS_METRICS };

/* A group's numbers over seeds. */
typedef struct lw_provers_cell {
    double mean[LW_PROVERS_METRICS],
        deviation[LW_PROVERS_METRICS]; /* deviation: NaN for one seed */
    int64_t lists;                     /* of one seed */
} lw_provers_cell;
typedef struct lw_provers_group {
    const char *predicate; /* its name, of any length; NULL: the group is of another kind */
    char other[24];        /* "3", "no proof", "question's seen" */
    int32_t key;
    int64_t lists;
} lw_provers_group;

/* Groups of one kind, largest first. Caller frees. */
int lw_provers_groups(const lw_provers *p, lw_provers_by by, lw_provers_group **out, int32_t *n);
const char *lw_provers_group_name(const lw_provers_group *g);
lw_provers_cell lw_provers_cell_of(const lw_provers *p, int32_t row, int32_t rank_rule,
                                   lw_provers_by by, int32_t key);

/* ---- what it says ------------------------------------------------------------------------------ */

typedef struct lw_provers_context {
    const lw_provers *p;
    const lw_provers_options *o;
    const char *dataset, *split, *command, *config;
} lw_provers_context;
/* Three sentences by fixed rules: what is best and how far from the ceiling, whether training is more than its
 * deviation, what is left where a half link was never seen. */
void lw_provers_conclude(const lw_provers_context *c, lw_str sentence[3]);
/* How many lists are ranked against nothing, when there are any: a line, appended. */
void lw_provers_say_alone(const lw_provers_context *c, lw_str *out);
/* What two stages were, when they were asked for: a line, appended. */
void lw_provers_say_stages(const lw_provers_context *c, lw_str *out);
json_t *lw_provers_json(const lw_provers_context *c);
int lw_provers_text(const lw_provers_context *c, lw_str *out);
/* The table of all rows, then one of MRR by a kind of group (`most` groups at most) of so many. */
int lw_provers_table(const lw_provers_context *c, lw_table *t);
int lw_provers_group_table(const lw_provers_context *c, lw_provers_by by, int32_t most, lw_table *t,
                           int32_t *of);
int lw_provers_page(const lw_provers_context *c, const char *path);
/* summary.json, compare.csv, report.html. */
int lw_provers_save(const lw_provers_context *c, const char *dir);

extern const char *const lw_provers_by_title[LW_PROVERS_BYS];

#endif
