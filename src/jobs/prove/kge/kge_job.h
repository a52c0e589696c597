/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Embeddings of a knowledge graph: training, scores of triples, ranks among all entities.
 *
 * Training (docs/kge.md): a batch takes (fact, side) pairs in a new order every epoch. One entity
 * of the fact and its relation make a query; its answer is scored against candidates that a whole
 * leaf shares: entities drawn uniformly, or all of them. Candidates that are known answers do not
 * count as false. Everything drawn is keyed by the seed and the leaf's number.
 */
#ifndef LW_KGE_JOB_H
#define LW_KGE_JOB_H

#include "eval/eval_rank.h"
#include "models/proof/models_kge.h"
#include "logic/logic.h"
#include "jobs/prove/rank/rank_job.h"
#include "train/train_loop.h"

/* ---- training -------------------------------------------------------------------------------- */

typedef enum lw_kge_loss {
    LW_KGE_AUTO,     /* nssa for distances, cross-entropy for products */
    LW_KGE_NSSA,     /* -log sigmoid(s) - sum_j w_j log sigmoid(-s_j), halved; w = softmax of
                        temperature * s_j, not differentiated (Sun et al. 2019) */
    LW_KGE_SOFTPLUS, /* the same with equal w */
    LW_KGE_CE        /* -log softmax of the answer among itself and the false ones */
} lw_kge_loss;
#define LW_KGE_LOSS_CHOICES "auto|nssa|softplus|crossentropy"

/* The checkpoint kept as checkpoints/best: the highest MRR of every second of eval_queries; that of the
 * others is reported. Both are logged as losses, 1-MRR_choosing and 1-MRR_reporting. */
typedef enum lw_kge_best { LW_KGE_BEST_NONE, LW_KGE_BEST_MRR } lw_kge_best;
#define LW_KGE_BEST_CHOICES "none|mrr"

typedef struct lw_kge_train_config {
    lw_train_config train; /* batch_size: (fact, side) pairs */
    int32_t model, dim, norm;
    bool inverse;
    double gamma, range; /* 0: the model's own */
    int32_t loss;        /* lw_kge_loss */
    int32_t negatives;   /* shared by a leaf; 0: all entities */
    bool filter_negatives;
    double temperature;              /* adversarial */
    double regularization;           /* times N3 of the rows of a query and its answer */
    double regularization_relations; /* times N3 of the query's relation; < 0: as the rows */
    double epochs;                   /* > 0: steps */
    int64_t eval_queries;            /* valid queries of a --eval-every, evenly spaced, 0: all */
    int32_t keep_best;               /* lw_kge_best */
    const lw_kb *kb;
    const lw_positives *known; /* no false answers either; its valid queries are what --eval-every
                                  ranks. NULL: none */
} lw_kge_train_config;

/* LW_EUSAGE: options that do not fit, a knowledge base without facts to learn. */
int lw_train_kge(lw_kge_train_config c, const lw_observer *obs, lw_train_result *out);

/* The loss of a step as a graph (prove_kge_loss.c). Inputs: entities i32[2 batch + negatives]
 * (known, answers, candidates), relations i32[batch], side f32[batch,1], allowed f32[batch,
 * candidates] (1: counts as false). Outputs: loss, and the gradients of both tables. */
typedef struct lw_kge_step {
    int32_t batch, negatives; /* 0: candidates are all entities */
    int32_t loss;             /* not LW_KGE_AUTO */
    float temperature;
    float regularization[2]; /* of entities, of relations (none with distances) */
} lw_kge_step;
int lw_kge_build_step(lw_builder *b, const lw_kge_config *c, const lw_kge_step *s);

/* ---- scores ---------------------------------------------------------------------------------- */

typedef struct lw_kge lw_kge;

/* SOURCE: a run, a checkpoint or a model folder, trained on the names of kb (LW_EFORMAT if not).
 * ema: the averaged weights where there are any. The device is borrowed. */
int lw_kge_open(const char *source, bool ema, const lw_kb *kb, lw_device *dev, lw_kge **out);
/* Over a store that someone else owns and may train on. */
int lw_kge_over(const lw_kge_config *c, lw_store *store, lw_slab slab, lw_device *dev,
                lw_kge **out);
void lw_kge_close(lw_kge **pp);
const lw_kge_config *lw_kge_get_config(const lw_kge *k);

/* out[i] = score of triple i (with inverse relations the mean of both directions). Any real number;
 * its sigmoid is the model's probability. */
int lw_kge_score(lw_kge *k, const lw_atom *atoms, int64_t n, float *out);
/* log sigmoid(score), without loss of digits far out. */
double lw_kge_log(double score);

/* Sets name, self and log_score of the fusion with proofs (rank_job.h); k must live as
 * long as they are used. */
int lw_kge_plausibility(lw_kge *k, lw_prove_kge *out);

/* ---- ranks ----------------------------------------------------------------------------------- */

/*
 * Ranks of all n queries among the corruptions of `pool`, in the modes asked for. Heads or tails
 * that may be any entity (lw_corrupt_options.n = 0) are scored by direction, a block of queries
 * against the whole table; drawn ones and lists of both one by one, as lw_kge_score does. Memory
 * does not grow with n, but for the lists where they are kept. obs may be NULL; LW_ESTOPPED when it asks to stop.
 * Clear *out.
 */
typedef struct lw_kge_rank_options {
    const lw_corruptor *pool;
    bool drawn; /* pool draws some */
    bool keep;  /* every list */
    bool mode[LW_CORRUPT_MODES];
} lw_kge_rank_options;
int lw_kge_rank(lw_kge *k, const lw_kge_rank_options *o, const lw_atom *queries, int64_t n,
                const lw_observer *obs, lw_rank_lists *out);
/* The same with a device of its own and the averaged weights of a run or model folder. */
int lw_kge_rank_source(const char *source, const lw_kb *kb, const lw_kge_rank_options *o,
                       const lw_queries *queries, int threads, const lw_observer *obs,
                       lw_rank_lists *out);

#endif
