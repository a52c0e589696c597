/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training a policy over proof states by proximal policy optimisation (Schulman et al. 2017,
 * arXiv 1707.06347), as published for DeepProofLog (arXiv 2511.08581).
 *
 * One step of the training loop is one iteration: n_envs proofs are walked together for n_steps
 * sampled choices each, advantages are estimated (GAE, Schulman et al. 2016), then n_epochs passes
 * over minibatches of those choices each update the weights. True and corrupted facts of the
 * training split take turns as queries; the reward comes when a proof ends. Proofs start afresh at
 * every iteration, and all draws are keyed by (seed, iteration, proof, choice): iteration i is a
 * pure function of config, seed, data, i and the checkpoint.
 */
#ifndef LW_PPO_JOB_H
#define LW_PPO_JOB_H

#include "models/proof/models_policy.h"
#include "logic/logic.h"
#include "base/observer.h"
#include "train/train_loop.h"

enum { LW_PPO_DEPTHS = 64 };

typedef struct lw_ppo_config {
    lw_train_config train; /* data: the dataset's directory; steps: iterations; batch_size: choices
                              of a minibatch; grad_clip: --max-grad-norm */
    const char *rules_file, *facts_file, *domains_file;
    bool skip_unknown;
    lw_env_options env;    /* numbering: parity says */
    bool parity;           /* variables numbered as published */
    lw_policy_config net;  /* constants and predicates are the dataset's */
    double constant_scale; /* of the first embeddings of constants; 1: as published */
    int32_t n_envs, n_steps, n_epochs;
    int64_t timesteps; /* > 0: choices in all, instead of steps; rounded up to whole iterations */
    double gamma, gae_lambda;
    double clip_range, clip_range_vf; /* of the ratio, of the value's change (0: free) */
    double ent_coef_init, ent_coef_final, ent_coef_end; /* cosine until this share of the run */
    double vf_coef, target_kl; /* an epoch's minibatch with more than 1.5 times this divergence ends
                                  the iteration; 0: never */
    double lr_warmup;          /* share of the run */
    bool normalize_advantage;  /* per minibatch */
    int32_t reward_type;       /* lw_ppo_reward_type */
    int32_t part_states;       /* most states of one run of the update's plans, 0: 4096 */
    int32_t train_neg_ratio;   /* corrupted queries for each true one; 0: none */
    double
        hard_negatives; /* share of corrupted queries that the rules prove, where there are any */
    double curriculum;  /* share of the run in which queries are opened, those with the shortest
                                  proofs first; 0: all are from the start */
    int64_t least_model_memory;      /* MiB, of what both need */
    const char *corruption_modes[3]; /* head, tail, both: arguments that are corrupted in training,
                                        alternately, and lists of the validation */
    int32_t n_corruption_modes;
    int32_t domains;                                   /* lw_corrupt_domains */
    int32_t train_depth[LW_PPO_DEPTHS], n_train_depth; /* only queries whose depth in
                                                 train_depths.txt is one of these; 0: all */
    int64_t n_eval_queries, eval_neg_samples;          /* 0: all */
} lw_ppo_config;

/* Empties *c and fills in what the published training used. */
void lw_ppo_defaults(lw_ppo_config *c);

/* Reward of a proof that has ended; the numbers are those of --reward-type. */
typedef enum lw_ppo_reward_type {
    /*                              true: proved, not;    corrupted: proved, not */
    LW_PPO_REWARD_TRUE_PROOFS, /*      1       0                0       0 */
    LW_PPO_REWARD_PROOFS,      /*      1       0               -1       0 */
    LW_PPO_REWARD_RIGHT,       /*      1       0                0       1 */
    LW_PPO_REWARD_STRICT,      /*      1     -0.5             -1.5      1 */
    LW_PPO_REWARD_BALANCED,    /*      1      -1               -1    1 / ratio */
    LW_PPO_REWARD_GIVING_UP,   /*      the same, and 0.3 when it gave up on a corrupted one */
    LW_PPO_REWARDS
} lw_ppo_reward_type;
double lw_ppo_reward(lw_ppo_reward_type type, bool positive, lw_proof_end end, int32_t neg_ratio);

/* LW_EUSAGE with the option's name when one is out of its range; the rest as every trainer. */
int lw_train_ppo(lw_ppo_config c, const lw_observer *obs, lw_train_result *out);

#endif
