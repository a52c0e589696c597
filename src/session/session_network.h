/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of any model folder: U-Net, Leeway's encoder, ResNets. Opened once, built at any
 * batch size.
 */
#ifndef LW_SESSION_NETWORK_H
#define LW_SESSION_NETWORK_H

#include "models/models.h"
#include "session/session_quantization.h"

typedef struct lw_network {
    char *dir;              /* the folder or file the weights came from */
    json_t *config;         /* config.json; NULL: weights alone */
    const char *kind;       /* "unet" or "encoder" */
    const char *name;       /* "UNet2DModel", "resnet18", "leeway", ... */
    lw_unet_config unet;    /* kind "unet" */
    lw_encoder *encoder;    /* kind "encoder", else NULL */
    lw_store *store;        /* frozen; the encoder's own when there is one */
    int64_t parameters;     /* trained numbers: BatchNorm's running statistics do not count */
    int32_t channels;       /* of its pictures */
    int32_t image_size;     /* it was made for; 0: any */
    lw_quantization *quant; /* ranges for int8; NULL: it was not quantised */
    bool training;          /* a U-Net is built with dropout and its input rows i64[B] */
} lw_network;

/* source: a run (its newest checkpoint), a checkpoint or model folder, or weights alone of a known
 * ResNet. ema: the averaged weights of a checkpoint. LW_EFORMAT says what the folder lacks. */
int lw_network_open(const char *source, bool ema, lw_network **out);
void lw_network_close(lw_network **pp);
/* Parameters with gradients (without values) instead of the folder's, and `training`. LW_EUSAGE:
 * not a U-Net. */
int lw_network_train(lw_network *n);

/* Declares inputs and outputs in g. U-Net: x f32[B,H,W,C] (or the small noise of --noise-shape), t
 * f32[B], class i32[B] and latent f32[B,K] where it has them; output y f32[B,H,W,O]. Encoder: x;
 * outputs logits f32[B,K] when it has a head, pooled f32[B,F], and every map s0, s1, ...
 * f32[B,h,w,c]. want: one output's name, NULL the first, "*" all. LW_ESHAPE: pictures it cannot
 * take; LW_EUSAGE: no such output, naming those there are. */
int lw_network_build(const lw_network *n, lw_graph *g, int32_t batch, int32_t h, int32_t w,
                     const char *want);

#endif
