/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of `leeway prove` share: one config struct, option tables over it, the opening of
 * a dataset. */
#ifndef LW_CMD_PROVE_H
#define LW_CMD_PROVE_H

#include "cli/cli.h"
#include "formats/formats.h"
#include "logic/logic.h"

typedef struct lw_prove_cli {
    const char *dataset, *query, *rules, *facts_file, *domains_file, *split;
    bool filter_queries_by_rules, skip_unknown;
    int64_t n_queries;
    int32_t query_order;                                                /* lw_query_order */
    int64_t seed;                                                       /* of it */
    int32_t max_depth, padding_atoms, max_fact_pairs;                   /* of the search */
    int64_t max_states, memory_limit, query_memory, least_model_memory; /* memory in MiB */
    int32_t format;
    lw_env_options env; /* numbering: parity says */
    bool parity;
} lw_prove_cli;

/* --padding-atoms of every verb: the published environment's. */
#define LW_PROVE_PADDING_ATOMS "6"

/* Rows of the environment that a policy walks, for a struct T with `env` and `parity`. Defaults as
 * lw_env_defaults: a test compares them. */
/* clang-format off */
#define LW_PROVE_ENV_OPTIONS(T) \
    {LW_OPT(T, env.max_depth), .name = "max-depth", .fallback = "20", .min = 1, .max = 10000, \
     .unit = "steps", .group = "Environment", .help = "choices before a proof is given up"}, \
    {LW_OPT(T, env.padding_atoms), .name = "padding-atoms", .aliases = "max-atoms", \
     .fallback = LW_PROVE_PADDING_ATOMS, .min = 1, .max = LW_PROOF_MOST_ATOMS, .unit = "goals", \
     .group = "Environment", .help = "longer states are rejected and counted"}, \
    {LW_OPT(T, env.padding_states), .name = "padding-states", .fallback = "120", .min = 1, \
     .max = 65536, .unit = "states", .group = "Environment", \
     .help = "successors of a state; those behind are counted"}, \
    {LW_OPT(T, env.max_fact_pairs), .name = "max-fact-pairs", .fallback = "0", \
     .max = 2147483647, .unit = "facts", .group = "Environment", \
     .help = "facts tried of each predicate, 0: all"}, \
    {LW_OPT(T, env.max_total_vars), .name = "max-total-vars", .fallback = "100", .min = 1, \
     .max = 1000000, .unit = "variables", .group = "Environment", \
     .help = "successors with a variable behind are rejected and counted"}, \
    {LW_OPT(T, env.memory_pruning), .name = "memory-pruning", .fallback = "true", \
     .group = "Environment", .help = "drop successors that are already on their path"}, \
    {LW_OPT(T, env.end_proof_action), .name = "end-proof-action", .fallback = "true", \
     .group = "Environment", .help = "offer Endf, which gives up"}, \
    {LW_OPT(T, env.skip_unary_actions), .name = "skip-unary-actions", .group = "Environment", \
     .help = "take the only successor without counting a step"}, \
    {LW_OPT(T, parity), .name = "parity", .group = "Environment", \
     .help = \
         "number variables as the published environment's parity mode does, instead of by first " \
         "appearance"}
/* Rows of a policy that walks, for a struct T with what they are called. */
#define LW_PROVE_POLICY_OPTIONS(T) \
    {LW_OPT(T, deterministic), .name = "deterministic", .fallback = "true", .group = "Policy", \
     .help = "take the most probable successor, but draw one; uniform always draws"}, \
    {LW_OPT(T, temperature), .name = "temperature", .fallback = "0", .max = 1e6, \
     .group = "Policy", .help = "logits are divided by it, 0: as the policy says"}
#define LW_PROVE_WORK_OPTIONS(T, d_cache) \
    {LW_OPT(T, rows), .name = "rows", .fallback = "1024", .min = 1, .max = 1 << 20, \
     .unit = "states", .group = "Work", .help = "of one run of the network"}, \
    {LW_OPT(T, cache_memory), .name = "cache-memory", .fallback = d_cache, .max = 1 << 24, \
     .unit = "MiB", .group = "Work", .help = "for features of states already computed"}
/* clang-format on */

extern const lw_option lw_prove_data_options[];   /* DATASET and its files */
extern const lw_option lw_prove_limit_options[];  /* how many of the queries, and which */
extern const lw_option lw_prove_search_options[]; /* limits of the breadth-first search */
extern const lw_option lw_prove_env_options[];    /* the environment that a policy walks */

/* The least model, where it was asked for and fits. */
typedef struct lw_prove_least {
    lw_least_model *model;
    bool wanted;
    double seconds;
} lw_prove_least;
extern const lw_option lw_prove_least_options[];
/* max_depth as lw_least_options has it. */
int lw_prove_open_least(const lw_prove_cli *o, const lw_kb *kb, int32_t max_depth,
                        const lw_observer *obs, lw_prove_least *out);
void lw_prove_least_clear(lw_prove_least *m);
/* LW_ENOMEM where it does not fit: for commands that cannot do without. */
int lw_prove_need_least(const lw_prove_cli *o, const lw_prove_least *m);
/* {"atoms", "seconds", "bytes"}, null where there is none. */
json_t *lw_prove_least_json(const lw_prove_least *m);

int lw_prove_open(const lw_prove_cli *o, lw_problems *problems, lw_kb **out);
/* The dataset and the queries that options ask for, warnings logged. LW_EFORMAT when the split has
 * no query, or none is left. What was opened stays the caller's to free, failure or not. */
int lw_prove_open_queries(const lw_prove_cli *o, lw_problems *problems, lw_kb **kb,
                          lw_queries *queries);
lw_search_options lw_prove_search(const lw_prove_cli *o);
lw_env_options lw_prove_env(const lw_prove_cli *o);
/* --n-corruptions: a number, or "all", which is 0. */
int lw_prove_count(const char *text, int64_t *n);
/* --corruption-modes as flags, mode[LW_CORRUPT_MODES]. */
void lw_prove_modes(const char *const *word, int32_t n, bool *mode);
/* --dry-run: what would be done to so many queries, printed; true: there it ends. lists: rankings among
 * n_corruptions (0: all) in each, 0: none. */
bool lw_prove_dry_run(const lw_cli *cli, const char *what, const lw_queries *q, int64_t lists,
                      int64_t n_corruptions);
/* Warnings of the dataset as log lines. */
void lw_prove_warn(const lw_problems *p);

#endif
