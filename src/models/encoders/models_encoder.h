/* SPDX-License-Identifier: Apache-2.0 */
/* Leeway's own small encoder. */
#ifndef LW_MODELS_ENCODER_H
#define LW_MODELS_ENCODER_H

#include "formats/formats.h"
#include "models/models_taps.h"
#include "store/store.h"

/* conv3-norm-ReLU, then `stages` stages of `blocks` residual blocks at widths width * 2^s (stride 2
 * from the second stage on). The norm is GroupNorm with up to norm_groups groups, or BatchNorm, which
 * a frozen encoder folds into its convolutions (models_conv_bn.c). Head fc on the pooled last
 * map; decoder for masked reconstruction: nearest x2, concat with the skip, conv3-ReLU down to full
 * resolution, 1x1 to the picture's channels. */
enum { LW_MAX_STAGES = 8, LW_MAX_PREDICTED = 8 };

/* A linear layer from a value of the encoder to `width` numbers of another network. */
typedef struct lw_predicted {
    int32_t stage; /* from every place of map s<stage>; -1: from the pooled feature */
    int32_t width;
} lw_predicted;

typedef struct lw_encoder_config {
    int32_t image_size, channels; /* of its pictures */
    int32_t width, stages, blocks;
    int32_t norm_groups; /* of GroupNorm */
    bool batch_norm;     /* BatchNorm instead */
    int32_t classes;     /* outputs of fc; 0: no head */
    int32_t judged;      /* real classes of a judge, the others are junk; 0: not a judge */
    bool decoder;        /* has the decoder's parameters */
    /* Layers predict.0, predict.1, ... of an encoder that was distilled. */
    int32_t n_predicted;
    lw_predicted predicted[LW_MAX_PREDICTED];
    int32_t projection; /* numbers of the head that contrastive training has; 0: none */
} lw_encoder_config;

/* width 16, 3 stages, 1 block, 8 groups: demo size. */
lw_encoder_config lw_encoder_default(int32_t image_size);
int lw_encoder_check(const lw_encoder_config *c);
/* Taps logits (with a head), pooled, s0 .. s<stages>. */
void lw_encoder_net(lw_builder *b, const lw_encoder_config *c, lw_val x, lw_taps *out);
/* Reconstruction f32[B,H,W,channels] from the maps of an (masked) image. Needs c->decoder. */
lw_val lw_encoder_decode(lw_builder *b, const lw_encoder_config *c, const lw_taps *taps);
/* Prediction i of a distilled encoder, f32[B,T,width]: T places of its map, or 1. */
lw_val lw_encoder_predict(lw_builder *b, const lw_encoder_config *c, const lw_taps *taps,
                          int32_t i);
/* Projection of an encoder trained by contrast, f32[B,projection]: linear, ReLU, linear of the pooled
 * feature. */
lw_val lw_encoder_project(lw_builder *b, const lw_encoder_config *c, const lw_taps *taps);
/* Per image: sum((rec - x)^2 mask) / (sum(mask) + 1e-8), mask f32[B,H,W,1] counted once per pixel
 * -> f32[B]. */
lw_val lw_mae_loss(lw_graph *g, lw_val rec, lw_val x, lw_val mask);
/* 1 where a cell of cell x cell is hidden (probability p, f32[1]), from row-keyed draws:
 * f32[B,size,size,1]. */
lw_val lw_mae_mask(lw_builder *b, int32_t batch, int32_t size, int32_t cell, lw_val p);
/* x * (1 - mask) */
lw_val lw_mae_hide(lw_graph *g, lw_val x, lw_val mask);

json_t *lw_encoder_to_json(
    const lw_encoder_config *c); /* _class_name LeewayEncoder; new reference */
int lw_encoder_from_json(const json_t *j, const char *where, lw_encoder_config *out);
/* Declares the parameters in a fresh store (decoder as the config says) and fixes it. */
int lw_encoder_declare(const lw_encoder_config *c, lw_store *s);

#endif
