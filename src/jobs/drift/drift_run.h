/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to jobs/drift: a training under way. drift_train.c sets it up and feeds it; drift_draws.c says what a step is
 * of, drift_step.c is the graph of some groups, drift_chunks.c meets all groups of a step some at a time.
 */
#ifndef LW_DRIFT_RUN_H
#define LW_DRIFT_RUN_H

#include "train/pictures/train_generator.h"

#include "jobs/drift/drift_draws.h"
#include "jobs/drift/drift_job.h"

typedef struct drift_run {
    lw_generator g; /* first: its callbacks take the run for it */
    lw_drift_config c;
    lw_network *encoder;
    lw_feature_set keys;
    lw_real_features *real;
    char features_note[LW_REAL_FEATURES_NOTE + 64 + 512];
    lw_drift_draws draws;
    int32_t groups, n, np, nu; /* groups: of a leaf */
    /* With --class-chunk or --memory-limit: */
    lw_drift_door door;    /* of the leaf's plan: LW_DRIFT_FIELD */
    int32_t chunk;         /* groups of a pass' plan */
    lw_plan *pass_plan[2]; /* to S, to lambda */
    lw_exec *pass[2];
    int64_t state[LW_MAX_FEATURE_KEYS][LW_DRIFT_STATE]; /* doubles; of the step at hand */
} drift_run;

static inline bool lw_drift_of_clips(const drift_run *r)
{
    return r->c.pictures.clip.condition != NULL;
}

/* ---- drift_step.c ---------------------------------------------------------------------------- */

lw_dtype lw_drift_real_type(const drift_run *r);
/* The graph of r->groups groups at r->door: gradients, or the sums of a door before the last. */
int lw_drift_build(const drift_run *r, lw_graph *g);

/* ---- drift_train.c --------------------------------------------------------------------------- */

/* Gives an exec `groups` groups of a step from `first` on. */
int lw_drift_feed(drift_run *r, lw_exec *e, int64_t step, int64_t first, int32_t groups);

/* ---- drift_chunks.c -------------------------------------------------------------------------- */

static inline bool lw_drift_chunked(const lw_drift_config *c)
{
    return c->class_chunk > 0 || c->memory_limit > 0.0;
}
/* Compiles the passes of the chunk that is asked for, or that fits, once the leaf's plan is there. LW_EUSAGE: none
 * fits. */
int lw_drift_chunks_open(drift_run *r, lw_train_job *job);
void lw_drift_chunks_close(drift_run *r);
/* Before the first leaf of a step: the sums behind S and lambda of all its groups. */
int lw_drift_chunks_meet(drift_run *r, int64_t step);
/* Before each leaf's run. */
void lw_drift_chunks_give(const drift_run *r, lw_exec *e);

#endif
