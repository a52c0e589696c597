/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluation of a policy: every query and its corruptions are proved by it, and the query is
 * ranked among them by score.
 *
 *   queries -> candidates, streamed -> walks -> scores, counted as they come -> ranks -> tables
 *
 * One list is one query in one corruption mode: the query itself, then its corruptions
 * (logic_corrupt.h). Candidate k of the list (0 the query) of query q in mode m is walked under the
 * id ((3 q + m) << 32) + k, so its score is a pure function of knowledge base, options, weights, q,
 * m and k, and every number below but the seconds is one of these: not of batch size, cache,
 * memory limit, threads, or the order in which proofs end.
 *
 * Score: log-probability of the walk, minus `penalty` unless it proved. With another model's
 * plausibility (kge): weight * log plausibility, plus `bonus` when proved, minus `penalty` when
 * not.
 *
 * With `ranks_only` a corruption is walked no further once it is sure to stand above or below its
 * query: a walk whose log-probability has fallen below the query's score can only end below it, and
 * a plausibility may decide before the first step. What the least model has not cannot be proved, whatever
 * the policy: it pays the penalty in any case, which mostly decides before the first step, too. Ranks are
 * the same; what needs whole walks (the area under the curve, how many corruptions are proved) is left out.
 *
 * With `two_stage` corruptions are walked in bf16, and a choice that lies within a margin is made in f32
 * (prove_walks.h), so that they go the way of f32; one whose score lies within a margin of its query's is walked
 * again in f32. Queries are walked in f32, some in both: the margin is LW_PROVE_TRUST times what these differed
 * by. That is no bound but an experience, so it is watched: where f32 later shows more than half of it, all is
 * walked again in f32 alone.
 *
 * Memory. All queries are walked first; from then on a score is compared and forgotten. What is
 * kept is a few words a list, so that a whole filtered evaluation (hundreds of millions of
 * candidates) takes no more than a short one. With a memory limit, batch and cache are made as
 * small as it asks.
 */
#ifndef LW_RANK_JOB_H
#define LW_RANK_JOB_H

#include "eval/eval.h"
#include "formats/formats.h"
#include "logic/logic.h"
#include "base/observer.h"
#include "jobs/prove/walk/prove_walks.h"
#include "kernels/kernels.h"

/* Another model's opinion of ground atoms. */
typedef struct lw_prove_kge {
    const char *name; /* for reports */
    void *self;
    /* out[n]: natural logs of plausibilities in (0, 1]; NULL: there is none. A pure function of
     * each atom alone. */
    int (*log_score)(void *self, const lw_atom *atom, int32_t n, float *out);
    double weight, bonus, penalty; /* 2, 1, 0.5 */
} lw_prove_kge;

typedef struct lw_prove_eval_options {
    lw_walks_options walks;
    lw_corrupt_options corrupt;
    bool mode[LW_CORRUPT_MODES];
    int32_t rank_rule;   /* lw_rank_rule */
    double penalty;      /* 100 */
    size_t memory_limit; /* bytes of the whole process, 0: any */
    bool ranks_only;
    bool two_stage;          /* with ranks_only: bf16 first (walks.two_stage is set by this) */
    const char *save_scores; /* CSV of every candidate, NULL: none. Takes 16 bytes of disk for each
                                on the way */
    int64_t most_waiting; /* results kept while their query is still walked, 0: 32768; no more are
                             begun when it is reached */
    lw_prove_kge kge;
    /* Bytes for the least model, which says what any prover could reach; 0, or max_fact_pairs: it is not
     * asked. */
    size_t least_model_memory;
} lw_prove_eval_options;

enum { LW_PROVE_TRUST = 4 };

/* What became of `two_stage`. */
typedef struct lw_prove_two_stage {
    bool on, fell_back;
    lw_walks_margin margin;
    lw_walks_seen measured; /* on queries, before the first corruption */
    lw_walks_margin most;   /* seen at all */
    int64_t again;          /* corruptions walked again in f32 */
} lw_prove_two_stage;

#define LW_PROVE_ENDS 6 /* of lw_proof_end */

typedef struct lw_prove_list {
    int32_t query, mode;
    double score;      /* of the query */
    lw_proof_end end;  /* of its proof */
    int32_t depth;     /* of its proof: choices */
    lw_rank rank;      /* among its corruptions */
    int64_t negatives; /* corruptions given, -1: not all of them yet */
    int64_t proved;    /* corruptions proved; with ranks_only, those seen to be */
    int64_t known;     /* passed over as known positives */
    int64_t missing;   /* wanted and not to be had */
    int64_t first;     /* negatives of the lists before */
    bool whole;        /* every candidate was walked */
    bool provable;     /* the query has a proof, of any length (with a least model) */
    lw_rank ceiling;   /* where a prover that finds every proof ranks it: provable above not */
} lw_prove_list;

/* Proofs by their end and their depth. */
typedef struct lw_prove_ends {
    int64_t n, end[LW_PROVE_ENDS];
    int64_t *at;     /* [depths]: ended after so many choices */
    int64_t *proved; /* [depths]: of these, proved */
} lw_prove_ends;

typedef struct lw_prove_eval {
    lw_prove_list *list; /* [n_lists], by mode, then query */
    int32_t n_lists, n_modes, n_queries, whole;
    int32_t modes[LW_CORRUPT_MODES];
    double auc_pr[LW_CORRUPT_MODES]; /* of modes[i]; NaN when interrupted or ranks_only */
    int32_t depths;                  /* max_depth + 1 */
    lw_prove_ends positives, negatives;
    int64_t candidates; /* ranked */
    int64_t unwalked;   /* of these, decided by their plausibility alone (ranks_only) */
    bool ranks_only;
    lw_prove_two_stage two_stage;
    int64_t least_atoms; /* of the least model; 0: there was none */
    double least_seconds;
    lw_walks_counts walks;
    lw_walks_options used; /* batch, rows and cache as the memory limit made them */
    size_t bytes;          /* of the evaluation beside knowledge base and weights */
    int32_t threads;
    double seconds; /* wall */
    bool interrupted;
} lw_prove_eval;

/* f32, batch 512, the published limits, 100 corruptions, heads and tails, realistic, 100 taken off
 * without a proof. */
lw_prove_eval_options lw_prove_eval_defaults(void);

/*
 * known: sets of true triples beside the facts, for filtering. policy NULL: uniform. LW_EUSAGE
 * when nothing is to be ranked or an option is out of its range, LW_ENOMEM when the memory limit
 * cannot be kept (with what is needed), LW_ENUMERIC for a score that is not a number. When the
 * observer asks to stop, the proofs under way are left and the result is 0 with interrupted set:
 * lists that are whole count. Clear *out with lw_prove_eval_clear.
 */
int lw_prove_eval_run(const lw_kb *kb, const lw_queries *q, const lw_queries *const *known,
                      int32_t n_known, lw_device *dev, const lw_policy_source *policy,
                      const lw_prove_eval_options *o, const lw_observer *obs, lw_prove_eval *out);
void lw_prove_eval_clear(lw_prove_eval *e);

/* ---- ranks without walks ----------------------------------------------------------------------- */

/* Ranks of queries by mode, of whatever scored them. */
typedef struct lw_rank_lists {
    int64_t candidates; /* scored, true ones included */
    int64_t goals;      /* by rules: p(a,V) or p(V,b), each answered once */
    int64_t alone;      /* lists without a corruption: rank 1 by every rule */
    lw_rank_sum sum[LW_CORRUPT_MODES][LW_RANK_RULES];
    lw_rank_sum all[LW_RANK_RULES];  /* of all modes */
    lw_rank *list[LW_CORRUPT_MODES]; /* of each query, where kept */
    double *score[LW_CORRUPT_MODES]; /* of the query itself, where kept */
    size_t bytes;                    /* of scores kept at once */
    double seconds;
} lw_rank_lists;
/* Room for those of n queries. LW_ENOMEM. */
int lw_rank_lists_keep(lw_rank_lists *r, int mode, int32_t n);
void lw_rank_lists_add(lw_rank_lists *r, lw_corrupt_mode mode, const lw_rank *rank);
void lw_rank_lists_clear(lw_rank_lists *r);

/* By rules applied once to the facts (logic_rule_answers.h). */
typedef struct lw_rules_rank_options {
    const lw_kb *kb;
    const lw_corruptor *pool;
    bool drawn; /* pool draws some */
    bool mode[LW_CORRUPT_MODES];
    int32_t score;            /* lw_rule_score */
    const double *confidence; /* [n_rules], NULL: the rules' own */
} lw_rules_rank_options;
/* All lists are kept. Any number of threads gives the same. LW_ESTOPPED when the observer asks for it. */
int lw_rules_rank(const lw_rules_rank_options *o, const lw_queries *queries, int threads,
                  const lw_observer *obs, lw_rank_lists *out);

/* ---- what it says ---------------------------------------------------------------------------- */

/* Means over whole lists. */
typedef struct lw_prove_means {
    lw_rank_metrics rank;
    double auc_pr;       /* mean over modes; NaN for parts */
    double false_proved; /* share of the corruptions; NaN: not known */
    int64_t lists, positives_proved, negatives, negatives_proved, known, missing;
    lw_rank_metrics ceiling; /* of a prover that finds every proof; with a least model */
    int64_t positives_provable, negatives_provable;
} lw_prove_means;

/* Lists of one mode (-1: all) for which `of(self, list)` holds (NULL: all). */
lw_prove_means lw_prove_eval_means(const lw_prove_eval *e, int32_t rule, int32_t mode,
                                   bool (*of)(const void *self, const lw_prove_list *l),
                                   const void *self);
static inline double lw_prove_rank(const lw_prove_list *l, int32_t rule)
{
    return lw_rank_value(&l->rank, (lw_rank_rule)rule);
}

/* What was evaluated, for the outputs. */
typedef struct lw_prove_context {
    const lw_kb *kb;
    const lw_queries *queries;
    const lw_prove_eval_options *o;
    const char *dataset, *split, *policy, *precision;
    const char *command; /* the command line, NULL: not shown */
    const char *config;  /* its options as YAML, NULL: not shown */
    const char *device;  /* that computed the policy, "cuda:0"; NULL: not said */
} lw_prove_context;

/* MRR, Hits@k, per_mode, by predicate and depth, cuts, counts, seconds. New reference. */
json_t *lw_prove_eval_json(const lw_prove_context *c, const lw_prove_eval *e);
/* The same as text. */
int lw_prove_eval_text(const lw_prove_context *c, const lw_prove_eval *e, lw_str *out);
/* summary.json, per_query.csv and report.html into dir, made if it is not there. */
int lw_prove_eval_save(const lw_prove_context *c, const lw_prove_eval *e, const char *dir);

#endif
