/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train drift: a one-step generator that follows the drift field of docs/drifting.md in feature space; or,
 * with a condition, a one-step student that restores the frames of a clip.
 */
#ifndef LW_DRIFT_JOB_H
#define LW_DRIFT_JOB_H

#include "jobs/drift/drift_alpha.h"
#include "session/session.h"
#include "train/train.h"

typedef enum lw_drift_aggregation { LW_SUM_THEN_MSE, LW_MSE_EACH } lw_drift_aggregation;
typedef enum lw_drift_terms { LW_TERMS_SUM, LW_TERMS_MEAN } lw_drift_terms;

/* What the loss is of, and how it is put together. Zeroed it is the published one: of all keys, summed. */
typedef struct lw_drift_loss_config {
    bool use_feature_loss;    /* refuses to go without an encoder */
    lw_feature_filter filter; /* of the keys */
    int32_t aggregation;      /* lw_drift_aggregation, of a key's temperatures */
    int32_t term_reduction;   /* lw_drift_terms, of keys */
    bool include_raw;         /* all pixels are a key, which counts raw_weight times */
    double raw_weight;
} lw_drift_loss_config;

/* What features are of, where a generator makes latents: these, the pictures decoded of them, or of
 * both: the last of several encoders sees pictures, the others latents. */
#define LW_FEATURE_SPACES "latent|pixel|both"
enum { LW_SPACE_LATENT, LW_SPACE_PIXEL, LW_SPACE_BOTH };

typedef struct lw_drift_config {
    lw_train_config train;
    lw_picture_config pictures;
    lw_net_config net;
    const char *encoder;  /* spec of models_encoder.h: none, resnet18:FILE, a run, folder or file */
    int32_t encoder_size; /* side of the pictures it sees; 0: its own */
    int32_t encoder_resize;   /* of LW_ENCODER_RESIZES */
    int32_t feature_space;    /* of --latents: LW_SPACE_... */
    const char *feature_keys; /* names or a set's name, comma separated */
    lw_drift_loss_config loss;
    float temperatures[8];
    int32_t n_temperatures;
    double temperature_anneal; /* at step 0 they are so many times as high; 0 and 1: as they are */
    double temperature_anneal_end; /* share of the steps after which they are as they are */
    double finish_frechet; /* share of the steps, the last ones, that follow a Frechet distance */
    bool normalize_over_x;
    bool own_scale;          /* S of each slot of a key, not of the key */
    int32_t variant;         /* lw_drift_variant */
    int32_t field_precision; /* lw_drift_products */
    int32_t groups, negatives_per_group, positives_per_group, unconditional_per_group;
    int32_t class_rule;   /* lw_class_rule */
    double uncond_weight; /* weight of each unconditional negative, where no alpha says it */
    lw_alpha_config alpha;
    bool use_queue; /* positives and unconditional negatives come from it */
    lw_queue_opts queue;
    int32_t queue_report; /* 1: counts of every class in the summary */
    int32_t class_chunk;  /* > 0: a step in parts, the field of so many groups at a time */
    double memory_limit;  /* GiB; > 0: in the largest parts that fit; 0: what the process may use */
    int32_t feature_cache_mb; /* real features are kept when they fit; 0: never */
    int32_t feature_disk_mb;  /* of those that runs keep on disk, together; 0: kept in memory */
    int32_t feature_type;     /* of real features: 0 f32, 1 bf16 */
    double pixel_weight; /* with a condition: of the mean squared difference to the clean frame */
    lw_heldout_config heldout;
} lw_drift_config;

/* Trains, or with dry_run only predicts. */
int lw_train_drift(const lw_drift_config *c, const lw_observer *obs, lw_train_result *out);
/* The same ready to be run, in slices if need be (lw_training_advance); closing it frees all. *c is
 * copied, what it points to is not. */
int lw_train_drift_open(const lw_drift_config *c, const lw_observer *obs, lw_training **out);

#endif
