/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ladder: what each step away from the obvious loop over noisy passes is worth.
 *
 *   for each pass: for each batch: open files, decode, resize, stack, copy, forward; then scores
 *
 * Every rung changes one thing and truly runs, on a few pictures and passes; what whole jobs would
 * take is worked out from it, and one such prediction is checked against a run of several times the
 * size. Each rung's mean score stands beside its time: rungs that compute something else show.
 */
#ifndef LW_BENCH_LADDER_H
#define LW_BENCH_LADDER_H

#include "base/base.h"
#include "formats/formats.h"

enum { LW_LADDER_MODELS = 8, LW_LADDER_RUNGS = 7, LW_LADDER_JOBS = 6 };

typedef enum lw_ladder_part {
    LW_LADDER_LOAD,    /* bytes of files */
    LW_LADDER_DECODE,  /* to pixels */
    LW_LADDER_RESIZE,  /* and crop, to bytes of the network's size */
    LW_LADDER_STACK,   /* to floats */
    LW_LADDER_ONCE,    /* forward in front of the first site */
    LW_LADDER_COPY,    /* rows into the batch */
    LW_LADDER_FORWARD, /* of the passes */
    LW_LADDER_ACCUMULATE,
    LW_LADDER_PARTS
} lw_ladder_part;
extern const char *const lw_ladder_part_name[LW_LADDER_PARTS];

typedef struct lw_ladder_config {
    const char *models[LW_LADDER_MODELS]; /* none: CLIP B/32 with random weights */
    int32_t n_models;
    const char *data;  /* a folder of pictures; NULL: some are drawn */
    const char *sites; /* NULL: the network's usual list */
    int32_t pictures, passes;
    int32_t threads, conv;
    uint64_t seed;
} lw_ladder_config;

typedef struct lw_ladder_rung {
    const char *name;                      /* "decode each pass" */
    char skipped[120];                     /* why it did not run; "" */
    int32_t rows;                          /* at once */
    int64_t passes;                        /* rows that were run */
    int64_t decodes;                       /* pictures that were decoded, counted */
    double part[LW_LADDER_PARTS], seconds; /* without compiling */
    double compile;
    double mean;                /* trace_pre over pictures */
    double once;                /* seconds for each picture, however many passes */
    double every;               /* seconds for each row */
    double job[LW_LADDER_JOBS]; /* predicted seconds of each job */
} lw_ladder_rung;

typedef struct lw_ladder_model {
    char name[64], sites[128];
    int32_t n_sites, live, dim, height, width;
    lw_ladder_rung rung[LW_LADDER_RUNGS];
    double check_predicted, check_seconds; /* of the last fused rung, `check_passes` rows */
    int64_t check_passes;
} lw_ladder_model;

typedef struct lw_ladder {
    lw_ladder_model model[LW_LADDER_MODELS];
    int32_t n;
    bool drawn, random; /* pictures, weights: neither is anybody's */
    int32_t pictures, passes;
} lw_ladder;

/* A job of the experiments, of one model; trials x pictures x passes rows. */
typedef struct lw_ladder_job {
    const char *name, *what;
    int64_t pictures, rows;
} lw_ladder_job;
extern const lw_ladder_job lw_ladder_jobs[LW_LADDER_JOBS];

/* LW_EUSAGE: pictures that are no files, a model without sites. */
int lw_job_ladder(const lw_ladder_config *c, const lw_observer *obs, lw_ladder *out);
void lw_ladder_text(const lw_ladder *l, lw_str *out);
json_t *lw_ladder_json(const lw_ladder *l); /* new reference */

#endif
