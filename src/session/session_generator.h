/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trained generator, opened from what users call SOURCE: its network, how it makes pictures, and
 * what its training says.
 */
#ifndef LW_SESSION_GENERATOR_H
#define LW_SESSION_GENERATOR_H

#include "session/session_sampler.h"

/* What the steps of a training took, by the clock and in processor time of all threads: feeding,
 * forward, backward, update. Evaluations, sample grids, logs and checkpoints are not in it. 0: not
 * known. */
typedef struct lw_train_work {
    double wall, cpu;
} lw_train_work;

typedef struct lw_source {
    char *name;             /* SOURCE as typed */
    lw_network *net;        /* averaged weights when asked for and there */
    lw_quantization *quant; /* ranges for int8; NULL: it was not quantised */
    lw_method method;
    lw_diffusion *diffusion; /* noise schedule of a DDPM or flow; NULL: drift */
    int64_t step;            /* training steps of a checkpoint; -1: not known */
    double train_seconds;    /* of a checkpoint; 0: not known */
    lw_train_work work;      /* likewise */
    bool in_turns;           /* trained in turns with what it is compared with */
    json_t *best;  /* what --keep-best had kept by then: {metric, step, reporting, floor, ...} of
                     docs/formats.md; NULL: nothing */
    uint64_t hash; /* of the weights */
    bool averaged; /* the weights are an average */
} lw_source;

/* ema: prefer the averaged weights. LW_EIO, LW_EFORMAT: what is missing or damaged;
 * LW_EUNSUPPORTED: a model whose output has other channels than its input. */
int lw_source_open(const char *source, bool ema, lw_source **out);
void lw_source_close(lw_source **pp);
/* LW_EFORMAT: it makes no pictures; LW_EUNSUPPORTED: of other channels than it takes. */
int lw_generator_check(const lw_network *n);
/* How a network makes pictures; *diffusion (lw_free) stays NULL for drift. LW_EFORMAT: its config.json and its
 * scheduler say different things. */
int lw_network_method(const lw_network *n, lw_method *method, lw_diffusion **diffusion);
/* Name of class c, "3" when the folder has no names; into buf when it has to be made. */
const char *lw_source_class(const lw_source *s, int32_t c, char buf[16]);
/* "all" or a comma-separated list of class names or numbers -> heap array (lw_free) of *n.
 * LW_EUSAGE: unknown class (nearest named), or the model is unconditional. */
int lw_source_classes(const lw_source *s, const char *list, int32_t **out, int32_t *n);

#endif
