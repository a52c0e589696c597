/* SPDX-License-Identifier: Apache-2.0 */
/* Private to models: what a feature key is made of, what families share. */
#ifndef LW_MODELS_PRIVATE_H
#define LW_MODELS_PRIVATE_H

#include "models/models.h"

typedef enum lw_key_kind {
    LW_KEY_WHOLE,  /* the picture as one vector, or a tap as it is: a slot per location or row */
    LW_KEY_P4,     /* 4x4 patches of the picture */
    LW_KEY_NORM_X, /* root mean square per channel */
    LW_KEY_STAT,   /* one of LW_STAT_* of the picture (tap -1) or of a map */
} lw_key_kind;

/* x as build sees it: resized as the preparation says where that is a matter of floats, its numbers,
 * then n->fit. */
lw_val lw_network_see(const lw_network *n, lw_graph *g, lw_val x);
/* Sets n->channels, and fits its preparation to them, by the weights in f (NULL: it has none) and
 * n->config. LW_EFORMAT: these contradict each other; LW_EUNSUPPORTED: more than LW_MAX_CHANNELS, or
 * mean and std of other channels. */
int lw_network_channels(lw_network *n, const char *where, const lw_st_file *f);
/* x as it is; before a network of RGB each channel of gray pictures is the gray one, before one of
 * gray RGB becomes luma by the weights of data_pixels.h, which nothing rounds here. */
lw_val lw_network_gray(const lw_network *n, lw_graph *g, lw_val x);
/* Groups of a GroupNorm: the most up to `most` that divide the channels. */
int32_t lw_norm_groups(int32_t most, int32_t channels);
/* sqrt(mean x^2 + 1e-6) per channel, [B,H,W,C] -> [B,C]. */
lw_val lw_root_mean_square(lw_graph *g, lw_val x);
/* Sets n->fit to the size of its preparation. */
void lw_network_fit_own(lw_network *n);

/*
 * A convolution (no bias, unless asked for) of scope `conv` and the BatchNorm of scope `norm`; norm NULL: it is folded
 * in, the convolution has a bias. In inference form running_mean and running_var are those of the files; in training
 * (b->training) those of LW_BATCH_NORM pictures at a time (largest divisor of the batch), and the builder's hook sees
 * what goes into the norm.
 */
enum { LW_BATCH_NORM = 32 };
typedef struct lw_conv_bn_opts {
    int kernel, stride;
    int kernel_w;   /* where its width is another than `kernel` */
    bool same;      /* padded as TensorFlow's SAME; else by half the kernel on all sides */
    bool valid;     /* not padded */
    bool depthwise; /* a filter for every channel; o is their number */
    bool bias;    /* the convolution has one besides its BatchNorm; initial values are PyTorch's */
    bool trained; /* not taken from a file only: initial values are PyTorch's */
    float eps;
    lw_act act; /* behind both: none or ReLU */
} lw_conv_bn_opts;
lw_val lw_conv_bn_as(lw_builder *b, const char *conv, const char *norm, lw_val x, int32_t o,
                     lw_conv_bn_opts how);
/* With padding k / 2 and eps 1e-5. */
lw_val lw_conv_bn(lw_builder *b, const char *conv, const char *norm, lw_val x, int32_t o, int k,
                  int stride);

#endif
