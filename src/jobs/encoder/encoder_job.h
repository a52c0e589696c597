/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train encoder: Leeway's own encoder, by reconstruction (mae), by labels (classify), from a frozen network whose
 * features it learns to predict (distill) or by telling pictures apart (contrastive), and the judge: a classifier that may also say "this is no picture of the
 * data". The judge's network, seed and data are its own; no training of
 * a generator ever sees it.
 */
#ifndef LW_ENCODER_JOB_H
#define LW_ENCODER_JOB_H

#include "train/train.h"

typedef enum lw_objective {
    LW_OBJECTIVE_MAE,
    LW_OBJECTIVE_CLASSIFY,
    LW_OBJECTIVE_JUDGE,
    LW_OBJECTIVE_DISTILL,
    LW_OBJECTIVE_CONTRASTIVE
} lw_objective;

typedef enum lw_encoder_norm {
    LW_ENCODER_GROUP_NORM,
    LW_ENCODER_BATCH_NORM /* its statistics: encoder_settle.h */
} lw_encoder_norm;

typedef enum lw_encoder_arch {
    LW_ENCODER_SMALL,        /* models_encoder.h */
    LW_ENCODER_RESNET34_UNET /* models_mae.h */
} lw_encoder_arch;

/* How the share of hidden cells grows from 0 over mask_warmup_steps. */
typedef enum lw_mask_schedule { LW_MASK_FIXED, LW_MASK_LINEAR, LW_MASK_COSINE } lw_mask_schedule;

typedef struct lw_train_encoder_config {
    lw_train_config train;
    lw_picture_config pictures;
    int32_t objective; /* lw_objective; judge: classify with an extra class of junk pictures */
    int32_t width, stages, blocks, norm_groups;
    int32_t norm_type; /* lw_encoder_norm */
    double mask_ratio;
    int32_t mask_patch;    /* side of a cell */
    int32_t mask_schedule; /* lw_mask_schedule */
    int64_t mask_warmup_steps;
    int32_t
        arch; /* lw_encoder_arch, of which the published one has no stages, blocks and norm_groups */
    int32_t patchify; /* lw_mae_config */
    int64_t
        cls_ft_steps; /* the last ones, whose loss is (1 - lambda) rec + lambda CE, lambda from 0 to 0.1 within
                             1,000 steps; 0: none */
    const char *export_dir; /* the encoder without its decoder goes there, too; NULL: nowhere */
    double input_noise; /* classify, judge: standard deviation up to this, uniform per picture */
    /* distill */
    const char *teacher;      /* spec of a frozen encoder */
    const char *teacher_keys; /* feature keys that are predicted; NULL: pooled, or cls */
    int32_t feature_cache_mb, feature_disk_mb; /* as those of drift */
    /* contrastive */
    double contrast_temperature;
    int32_t projection;              /* numbers that views are compared by */
    double least_area, view_colours; /* lw_view_opts */
} lw_train_encoder_config;

/* Trains, or with dry_run only predicts. A judge has classes + 1 outputs: a quarter of every leaf is junk of the last
 * class, lw_junk_any and blends of two pictures of one class; its config.json says "leeway_judged_classes". The
 * checkpoints of the run directory open as encoders. LW_EUSAGE: the data has no labels and the objective needs them. */
int lw_train_encoder(const lw_train_encoder_config *c, const lw_observer *obs,
                     lw_train_result *out);

#endif
