/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the evaluation of a policy takes and where the time goes: the same candidates walked
 * with each number of proofs alive together, by no network, in f32 and in bf16, as many times one
 * query, ranked without whole walks in f32 and in two stages, and the cost of every single step of one batch.
 *
 * A sample is a run on a set-up of its own, so that nothing is known from the one before. Setting
 * up (plans, memory, tables projected, one candidate walked) is timed apart.
 *
 * Read: prove_bench.c (what is run), prove_bench_tables.c (text, CSV, JSON),
 * prove_bench_page.c (the page).
 */
#ifndef LW_PROVE_BENCH_JOB_H
#define LW_PROVE_BENCH_JOB_H

#include "formats/formats.h"
#include "session/session_machine.h"
#include "base/observer.h"
#include "jobs/prove/rank/rank_job.h"
#include "report/report.h"

enum { LW_PROVE_BENCH_MOST = 16 };

typedef struct lw_prove_bench_config {
    lw_walks_options walks; /* fixed_batch_size: of cases that are not about it, and of the steps */
    lw_corrupt_options corrupt;
    int32_t mode; /* lw_corrupt_mode: one list for each query */
    int32_t batch[LW_PROVE_BENCH_MOST], n_batch;
    int32_t samples;           /* of each case; of steps at least 5 */
    double seconds;            /* no further samples of a case after this long; 0: no limit */
    bool steps;                /* measure every step of one batch */
    size_t least_model_memory; /* of ranking, as lw_prove_eval_options has it */
} lw_prove_bench_config;

/* One way to evaluate all candidates. */
typedef struct lw_prove_bench_case {
    char name[48]; /* "network f32, batch 512" */
    const char *
        method; /* "uniform", "f32", "repeated" (f32, the first query again and again), "bf16", "ranks" (f32,
                    walks left where ranks are sure), "two stages" (the same, bf16 first) */
    int32_t batch;
    lw_summary set_up, run; /* milliseconds; of ranking, run is the walks and set_up the rest */
    lw_walks_counts counts; /* of the sample nearest to the median time */
    double counts_ms;       /* that sample's time */
    double cpu_ms;          /* and its processor time, all threads */
    double flops;           /* of the network's products that were needed */
    double share;           /* of the measured peak for `method`, over the whole run; NAN */
    double network_share;   /* the same over the time in the network alone; NAN */
    double fill;            /* states of a run of the network, over the rows it has; NAN */
    size_t bytes;
} lw_prove_bench_case;

/* One step of a batch that is not refilled. */
typedef struct lw_prove_bench_step {
    double done;    /* share of the batch's proofs that had ended before it */
    double ms;      /* what walks one step longer take more, by the fastest samples */
    lw_summary all; /* ms of walks of at most so many steps, this one included */
} lw_prove_bench_step;

typedef struct lw_prove_bench {
    int64_t candidates, query_steps, proved;
    int32_t queries;
    lw_prove_bench_case *cases;
    int32_t n_cases;
    lw_prove_bench_step *steps;
    int32_t n_steps, step_batch;
    double *active; /* [max_depth + 1]: share of all proofs alive after so many choices */
    int32_t max_depth;
    double padded_steps;   /* query-steps of an evaluation in batches that end together */
    int32_t padded_states; /* states of such a step */
    int32_t threads;
    lw_machine_peak peak;
    json_t *machine; /* lw_machine_json */
} lw_prove_bench;

/* 100 corruptions in one list, batches 64 .. 4096, 3 samples, steps. */
lw_prove_bench_config lw_prove_bench_defaults(void);
/* policy: with a network. LW_EFAILED when a case's results differ from another's; ranks included. */
int lw_prove_bench_run(const lw_kb *kb, const lw_queries *q, lw_device *dev,
                       const lw_policy_source *policy, const lw_prove_bench_config *c,
                       const lw_observer *obs, lw_prove_bench *out);
void lw_prove_bench_clear(lw_prove_bench *b);
/* Multiplications and additions of the products that walks could not do without: a scored state
 * takes the residual blocks and the head's first product (the input product is in the tables), a
 * choice the head's second one, a successor a dot product. */
double lw_prove_bench_flops(const struct lw_policy_config *c, const lw_walks_counts *n);

/* ---- what it says ---------------------------------------------------------------------------- */

/* What was measured, for the outputs. */
typedef struct lw_prove_bench_context {
    const char *dataset, *policy, *command;
} lw_prove_bench_context;

int lw_prove_bench_text(const lw_prove_bench_context *c, const lw_prove_bench *b, lw_str *out);
json_t *lw_prove_bench_json(const lw_prove_bench_context *c, const lw_prove_bench *b);
/* ms of n steps from the samples in all. Walks that may take fewer steps take no longer than those
 * that may take more: a faster sample of these counts for them too, so that no step is negative. */
void lw_prove_bench_step_times(lw_prove_bench_step *s, int32_t n);
/* One row a case. */
int lw_prove_bench_csv(const lw_prove_bench *b, lw_str *out);
/* One row a step. */
int lw_prove_bench_steps_csv(const lw_prove_bench *b, lw_str *out);
/* The tables of text, CSV and page: note's times, cases, where the time goes, steps. */
int lw_prove_bench_times(const lw_prove_bench *b, lw_table *t);
int lw_prove_bench_cases(const lw_prove_bench *b, lw_table *t);
int lw_prove_bench_parts(const lw_prove_bench *b, lw_table *t);
int lw_prove_bench_steps(const lw_prove_bench *b, lw_table *t);
/* Sentences about padding and about equal results; appended. */
void lw_prove_bench_remarks(const lw_prove_bench *b, lw_str *out);
/* summary.json, cases.csv, steps.csv and report.html into dir, made if it is not there. */
int lw_prove_bench_save(const lw_prove_bench_context *c, const lw_prove_bench *b, const char *dir);

#endif
