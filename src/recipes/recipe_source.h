/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trained generator opened from what users call SOURCE (a run, a checkpoint, a model folder), and
 * `leeway sample`: pictures from it in a file.
 */
#ifndef LW_RECIPE_SOURCE_H
#define LW_RECIPE_SOURCE_H

#include "recipes/recipe_precision.h"
#include "recipes/recipe_config.h"
#include "recipes/recipe_sampler.h"

typedef struct lw_source {
    char *name;     /* SOURCE as typed */
    char *dir;      /* the model folder found there */
    json_t *config; /* its config.json */
    lw_unet_config net;
    lw_store *store; /* frozen; averaged weights when asked for and there */
    lw_method method;
    lw_diffusion *diffusion; /* noise schedule of a DDPM; NULL: drift */
    int64_t step;            /* training steps of a checkpoint; -1: not known */
    double train_seconds;    /* of a checkpoint; 0: not known */
    lw_train_work work;      /* likewise */
    bool in_turns;           /* trained in turns with what it is compared with */
    uint64_t hash;           /* of the weights */
    bool averaged;           /* the weights are an average */
    lw_quantization *quant;  /* ranges for int8; NULL: it was not quantised */
} lw_source;

/* ema: prefer the averaged weights. LW_EIO, LW_EFORMAT: what is missing or damaged;
 * LW_EUNSUPPORTED: a model of other things than pictures of 3 channels. */
int lw_source_open(const char *source, bool ema, lw_source **out);
void lw_source_close(lw_source **pp);
/* Name of class c, "3" when the folder has no names; into buf when it has to be made. */
const char *lw_source_class(const lw_source *s, int32_t c, char buf[16]);
/* "all" or a comma-separated list of class names or numbers -> heap array (lw_free) of *n.
 * LW_EUSAGE: unknown class (nearest named), or the model is unconditional. */
int lw_source_classes(const lw_source *s, const char *list, int32_t **out, int32_t *n);

typedef struct lw_sample_config {
    const char *source;
    const char *classes; /* "all": in turn; or a list that is gone through in turn */
    const char *output;  /* x.png: grid; x.npy: [n,3,H,W] f32; else a folder of pictures */
    int64_t n;
    int32_t steps, kind;           /* lw_sampler_kind */
    int32_t spacing;               /* lw_sampler_opts.spacing */
    bool use_clipped_model_output; /* else lw_sampler_opts.keep_eps */
    int32_t batch;
    bool ema;
    int32_t precision; /* lw_num */
    uint64_t seed;
    int32_t threads;
    int32_t conv; /* lw_conv_mode */
} lw_sample_config;

typedef struct lw_sample_result {
    int64_t n, step, parameters;
    int32_t evaluations, image_size;
    const char *method, *sampler, *precision; /* static */
    double seconds, images_per_second;
    size_t bytes; /* of weights and frames */
    uint64_t hash;
    bool averaged;
} lw_sample_result;

int lw_recipe_sample(const lw_sample_config *c, const lw_observer *obs, lw_sample_result *out);

#endif
