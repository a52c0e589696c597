/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of prove_ppo: one training run. */
#ifndef LW_PROVE_PPO_RUN_H
#define LW_PROVE_PPO_RUN_H

#include "jobs/prove/ppo/prove_ppo_update.h"

typedef struct lw_ppo_run {
    lw_ppo_config *c;
    const lw_observer *obs;
    lw_device *dev;
    lw_kb *kb;
    lw_problems problems;
    lw_queries train, valid; /* true ones */
    lw_positives known;
    lw_corruptor *corruptor;
    lw_least_model *least;       /* NULL: no option needs it */
    int32_t shortest;            /* training queries with the shortest proofs, of a curriculum */
    bool mode[LW_CORRUPT_MODES]; /* of corruptions */
    lw_store *store;
    lw_ppo_rollout rollout;
    lw_ppo_update *update;
    json_t *model, *state; /* config.json; what checkpoints keep */
    int64_t updates;       /* of the weights so far */
    double best;           /* validation MRR of best/, -1: none yet */
    double untrained;      /* validation MRR of the first weights, -1: not measured */
    lw_ppo_rates rates;    /* of the last iteration */
    lw_ppo_report report;
    float *kept; /* weights and moments before the iteration under way */
    size_t kept_bytes;
    int64_t kept_updates;
    double explained; /* share of the targets' variance that the values explain */
} lw_ppo_run;

/* Knowledge base, queries, network, plans: all but a checkpoint. */
int lw_ppo_run_open(lw_ppo_run *r);
void lw_ppo_run_close(lw_ppo_run *r);
/* Ranks validation queries with the weights as they are, adds columns to row, keeps the
 * best weights in best/ of the run directory. self: lw_ppo_run. */
int lw_ppo_evaluate(void *self, int64_t step, json_t *row);
/* The same of the first weights, for comparison: a search that nobody trained proves much. */
int lw_ppo_evaluate_untrained(lw_ppo_run *r);

#endif
