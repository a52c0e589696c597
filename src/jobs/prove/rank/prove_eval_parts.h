/* SPDX-License-Identifier: Apache-2.0 */
/* Private to this folder: an evaluation under way. */
#ifndef LW_PROVE_EVAL_PARTS_H
#define LW_PROVE_EVAL_PARTS_H

#include "base/base.h"
#include "jobs/prove/rank/rank_job.h"

enum { LW_PROVE_PENDING = 256 }; /* results scored together */

/* A walk with its score. */
typedef struct lw_prove_scored {
    lw_walk_result r;
    double score;
} lw_prove_scored;

/* What --save-scores keeps of a corruption until all are there. */
typedef struct lw_prove_saved {
    double score;
    int32_t depth, end;
} lw_prove_saved;

typedef struct lw_prove_run {
    const lw_kb *kb;
    const lw_queries *q;
    const lw_prove_eval_options *o;
    const lw_observer *obs;
    lw_prove_eval *e;
    lw_corruptor *corruptor;
    lw_least_model *least; /* NULL: not asked for, or it does not fit */
    lw_least_asker *asker; /* of it */
    lw_walks *walks;
    bool two_stage; /* asked for, and there is a network */
    /* the stream: the queries of all lists, then the corruptions of list after list */
    bool queries_given, stop, paused;
    int64_t at;                      /* list, in the order given: all modes of a query together */
    lw_corruptions cursor;           /* of that list */
    bool begun;                      /* cursor is */
    int64_t ordinal;                 /* of the candidate given last in that list */
    lw_walk drawn[LW_PROVE_PENDING]; /* corruptions to give next */
    int32_t n_drawn, at_drawn;
    lw_walk
        *again; /* to be walked in f32; given before others, so never more than were under way */
    int32_t n_again, most_again;
    bool margin_known;
    int error;               /* of drawing them */
    int64_t first, expected; /* corruptions given of lists before; candidates in all, at most */
    /* results */
    lw_walk_result pending[LW_PROVE_PENDING];
    int32_t n_pending;
    lw_prove_scored *waiting; /* corruptions whose query is still being walked */
    int64_t n_waiting, most_waiting;
    int64_t queries_left;
    lw_auc_pr *auc[LW_CORRUPT_MODES];
    lw_map saved;
} lw_prove_run;

/* How a query or a corruption is walked first: prove_eval_stages.c. */
lw_walk_how lw_prove_how(const lw_prove_run *w, const lw_prove_list *l, bool query);
/* After the queries' walks. */
void lw_prove_set_margin(lw_prove_run *w);
/* Whether a corruption's score is too near its query's for bf16; then it is put to be walked again. */
bool lw_prove_again(lw_prove_run *w, const lw_prove_list *l, const lw_prove_scored *s);
/* What was seen in all; whether the margin is to be trusted no more. */
bool lw_prove_margin_fails(lw_prove_run *w);
/* Walks everything: prove_eval_count.c. */
int lw_prove_run_all(lw_prove_run *w);
/* The least model has it, without itself as a fact. */
int lw_prove_provable(lw_prove_run *w, lw_atom a, bool *out);
/* Corruptions of one list that there can be. */
int64_t lw_prove_most(const lw_prove_run *w, const lw_prove_list *l);
/* The CSV of every candidate from w->saved: prove_eval_scores.c. */
int lw_prove_save_scores(const lw_prove_run *w, const char *path);

/* "proved", "failed", .. */
const char *lw_prove_end_name(lw_proof_end end);

#endif
