/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to jobs/drift: a training under way. drift_train.c sets it up and feeds it; drift_sources.c opens
 * the encoders that its keys are of; drift_draws.c says what a step is
 * of, drift_step.c is its graphs, drift_chunks.c meets the groups of a step part by part and drift_kept.c keeps their
 * features meanwhile, drift_fit.c chooses how large parts are, drift_predict.c says what a step takes.
 */
#ifndef LW_DRIFT_RUN_H
#define LW_DRIFT_RUN_H

#include <stdio.h>

#include "eval/eval.h"
#include "train/pictures/train_generator.h"

#include "jobs/drift/drift_draws.h"
#include "jobs/drift/drift_job.h"

typedef struct lw_drift_phase {
    lw_plan *plan;
    lw_exec *exec; /* NULL: only compiled */
} lw_drift_phase;

/* How a step is cut, beside its leaves. */
typedef struct lw_drift_cut {
    int32_t groups; /* whose field is taken at a time */
    bool mapped;    /* features between the phases are in a file */
} lw_drift_cut;

/* Features of a step's pictures between its phases, [pictures][slots][c] of each key. */
typedef struct lw_drift_kept {
    float *gen[LW_MAX_FEATURE_KEYS];                           /* then dloss/dgen */
    void *pos[LW_MAX_FEATURE_KEYS], *unc[LW_MAX_FEATURE_KEYS]; /* or NULL: fetched when wanted */
    int64_t *state[LW_MAX_FEATURE_KEYS]; /* sums between doors (lw_drift_door), as doubles */
    void *memory;
    lw_map map; /* one of both */
    size_t bytes;
} lw_drift_kept;

enum { LW_DRIFT_DOORS = 3 };

/* An encoder of --encoder, and what of the loss is of it. */
typedef struct lw_drift_source {
    char *spec;
    lw_network *encoder;
    const lw_network
        *decoder;        /* what it sees are pictures decoded of latents; NULL: what is made */
    lw_feature_set keys; /* under the encoder's own names */
    int32_t first;       /* its first among the keys of the step */
    lw_real_features *real;
} lw_drift_source;

/* Features of real pictures, of all sources. */
typedef struct lw_drift_real_cost {
    bool kept;    /* all of them */
    size_t held;  /* bytes of the process's own, all sources: lw_real_features_cost */
    double flops; /* a step's, for the others */
} lw_drift_real_cost;

typedef struct lw_drift_finish lw_drift_finish;

typedef struct drift_run {
    lw_generator g; /* first: its callbacks take the run for it */
    lw_drift_config c;
    lw_network *decoder; /* of latents, whose pictures features are of; NULL: of what is made */
    lw_drift_source source[LW_ENCODERS_MOST];
    int32_t sources;
    lw_feature_set keys; /* of all sources; of several the names are "1.s2.loc", "2.s2.loc" */
    lw_str features_note;
    lw_drift_draws draws;
    int32_t groups, n, np, nu; /* groups: of the graph that is built */
    float heat;                /* temperatures of the step are so many times the config's */
    /* A step in parts: */
    bool chunked;
    lw_drift_cut cut;
    lw_drift_phase field[LW_DRIFT_DOORS]; /* with all groups at a time only the first */
    lw_drift_kept kept;
    float stats[LW_MAX_FEATURE_KEYS][LW_DRIFT_STATS(LW_DRIFT_MAX_TAU)];
    float loss;
    lw_drift_finish *finish; /* NULL: there is no finishing phase */
    bool finishing;          /* this step is of it */
} drift_run;

/* Do temperatures follow the step? Then "heat" is an input of the graphs with fields. */
static inline bool lw_drift_anneals(const drift_run *r)
{
    return r->c.temperature_anneal > 0.0 && r->c.temperature_anneal != 1.0;
}
static inline bool lw_drift_of_clips(const drift_run *r)
{
    return r->c.pictures.clip.condition != NULL;
}
/* Is the step in parts, whether or not it fits in one? */
static inline bool lw_drift_parts_asked(const drift_run *r)
{
    return r->c.class_chunk > 0 || r->c.memory_limit > 0.0 || r->c.finish_frechet > 0.0;
}
/* Pictures generated in a step. */
static inline int64_t lw_drift_pictures(const drift_run *r)
{
    return r->g.p.leaves.size * r->g.p.leaves.n;
}

/* Inputs and outputs of a key: "gen/s2.loc". */
enum { LW_DRIFT_NAME = 64 };
static inline const char *lw_drift_name(char buf[LW_DRIFT_NAME], const char *what,
                                        const lw_feature_key *k)
{
    snprintf(buf, LW_DRIFT_NAME, "%s/%s", what, k->name);
    return buf;
}

/* ---- drift_step.c ---------------------------------------------------------------------------- */

lw_dtype lw_drift_real_type(const drift_run *r);
/* All of a step of r->groups groups, forward and backward. */
int lw_drift_build(const drift_run *r, lw_graph *g);
/* Its parts. Some pictures: from noise to features "gen/KEY", and with "grad/KEY" back to the weights; */
int lw_drift_build_leaf(const drift_run *r, lw_graph *g, int32_t pictures);
/* and from the features of r->groups groups to the sums behind S or lambda, or to "grad/KEY" and "stats/KEY". */
int lw_drift_build_field(const drift_run *r, lw_graph *g, lw_drift_door door);

/* ---- drift_sources.c ------------------------------------------------------------------------- */

/* Encoders and keys. */
int lw_drift_sources_open(drift_run *r);
void lw_drift_sources_close(drift_run *r);
/* The first that sees pictures, in whose features these are measured; NULL: none does. */
const char *lw_drift_sources_measured(const drift_run *r);
/* Prepares features of real pictures, and what the job says of them; finds or makes those that are kept. */
int lw_drift_sources_real(drift_run *r, lw_train_job *job);
int lw_drift_sources_fill(drift_run *r);
lw_drift_real_cost lw_drift_real_get_cost(const drift_run *r);
/* Features of rows [n]: dst[k] of key k of the step. */
int lw_drift_sources_fetch(drift_run *r, const int64_t *rows, int64_t n, void *const *dst);

/* ---- drift_train.c --------------------------------------------------------------------------- */

/* Gives an exec pictures of a step from `first` on: noise, classes, strengths; */
void lw_drift_feed_pictures(drift_run *r, lw_exec *e, int64_t step, int64_t first, int64_t n);
/* what fields want beside features; and all that those of some groups want beside generated pictures. */
void lw_drift_feed_heat(const drift_run *r, lw_exec *e);
int lw_drift_feed_real(drift_run *r, lw_exec *e, int32_t first, int32_t groups);

/* ---- drift_fit.c ----------------------------------------------------------------------------- */

/* Whether the step is in parts, and in which; the plans. LW_EUSAGE: none fits. */
int lw_drift_fit(drift_run *r, lw_train_job *job);
/* Compiles the phases of a cut. */
int lw_drift_compile(drift_run *r, const lw_drift_cut *cut);
/* Bytes of a training: weights, leaf, phases, features. */
size_t lw_drift_bytes(const drift_run *r, const lw_train_job *job);
/* Of what the field's execs read in place, and so have no memory for. */
size_t lw_drift_bound_bytes(const drift_run *r);
void lw_drift_phases_clear(drift_run *r);

/* ---- drift_chunks.c -------------------------------------------------------------------------- */

/* Before the first leaf of a step: features of all its pictures, and the field of all groups. */
int lw_drift_chunks_meet(drift_run *r, int64_t step);
/* Feeds a leaf. */
int lw_drift_chunks_leaf(drift_run *r, int64_t step, int64_t leaf);

/* ---- drift_finish.c -------------------------------------------------------------------------- */

/* LW_EUSAGE: --finish-frechet has no key to work on, or is not for this training. */
int lw_drift_finish_check(const drift_run *r);
size_t lw_drift_finish_bytes(const drift_run *r);
/* Meets the real pictures of each class. LW_ESTOPPED when the observer asks to stop. */
int lw_drift_finish_open(drift_run *r);
/* Its parts: makes room; class c has these statistics of each key (NULL: the key does not count). */
int lw_drift_finish_new(drift_run *r);
int lw_drift_finish_class(drift_run *r, int32_t c, lw_stats *const *stats);
void lw_drift_finish_close(drift_run *r);
/* Loss and dloss/dfeature of the step's pictures, in the features' place. */
int lw_drift_finish_take(drift_run *r);

/* ---- drift_kept.c ---------------------------------------------------------------------------- */

/* Are features of real pictures among them? Not where a cache has them. */
bool lw_drift_keeps_real(const drift_run *r);
size_t lw_drift_kept_bytes(const drift_run *r);
/* A cache directory's free bytes may be too few: LW_EUSAGE. */
int lw_drift_kept_room(const drift_run *r);
int lw_drift_kept_open(drift_run *r);
void lw_drift_kept_close(drift_run *r);
/* Floats before picture i of key k. */
/* Bytes of a key's sums. */
static inline size_t lw_drift_state_bytes(const drift_run *r, int k)
{
    return sizeof(int64_t) * (size_t)LW_DRIFT_STATE_OF(r->c.own_scale, r->keys.key[k].slots);
}
static inline size_t lw_drift_kept_at(const drift_run *r, int k, int64_t i)
{
    return (size_t)i * (size_t)r->keys.key[k].slots * (size_t)r->keys.key[k].c;
}

/* ---- drift_summary.c ------------------------------------------------------------------------- */

/* pixel_summary.json or latent_summary.json, RUN.md, env_snapshot.json and both fingerprints. */
int lw_drift_conclude(void *self, const lw_train_result *out);

/* ---- drift_predict.c ------------------------------------------------------------------------- */

/* Corrects --dry-run: a part of each phase is run and timed, where that takes no minutes. */
int lw_drift_predict(void *self, lw_train_result *out);

#endif
