/* SPDX-License-Identifier: Apache-2.0 */
/* What the verbs of `leeway prove` share: one config struct, option tables over it, the opening of
 * a dataset. */
#ifndef LW_CMD_PROVE_H
#define LW_CMD_PROVE_H

#include "cli/cli.h"
#include "formats/formats.h"
#include "proof/proof.h"

typedef struct lw_prove_cli {
    const char *dataset, *query, *rules, *facts_file, *domains_file, *split;
    bool filter_queries_by_rules, skip_unknown;
    int64_t n_queries;
    int32_t max_depth, padding_atoms, padding_states, max_fact_pairs, max_total_vars;
    int64_t max_states, memory_limit, query_memory; /* memory in MiB */
    int32_t format;
    bool memory_pruning, end_proof_action, skip_unary_actions, parity;
} lw_prove_cli;

extern const lw_option lw_prove_data_options[];   /* DATASET and its files */
extern const lw_option lw_prove_search_options[]; /* limits of the breadth-first search */
extern const lw_option lw_prove_env_options[];    /* the environment that a policy walks */

int lw_prove_open(const lw_prove_cli *o, lw_problems *problems, lw_kb **out);
lw_search_options lw_prove_search(const lw_prove_cli *o);
lw_env_options lw_prove_env(const lw_prove_cli *o);
/* Warnings of the dataset as log lines. */
void lw_prove_warn(const lw_problems *p);

#endif
