/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks of inverted residual blocks (Sandler et al., arXiv 1801.04381): a 3x3 stem at stride 2, seven stages of
 * blocks, a 1x1 head, the mean of all places, a classifier. MobileNetV2 and EfficientNet-Lite are such networks; they
 * differ in blocks, kernels and names.
 *
 *     x --1x1 expand--> [k x k depthwise, stride] --1x1 project--> + x, where shapes agree
 *        BN, ReLU6          BN, ReLU6                  BN
 *
 * The first block has no expansion; transformers makes it a part of the stem, without the addition. All
 * widths are read from the tensors, so that every multiplier is one network.
 */
#ifndef LW_MODELS_INVERTED_H
#define LW_MODELS_INVERTED_H

#include "models/models.h"
#include "store/store.h"

enum { LW_INVERTED_STAGES = 7, LW_INVERTED_BLOCKS = 32 };

typedef enum lw_inverted_part {
    LW_INVERTED_STEM,
    LW_INVERTED_EXPAND,
    LW_INVERTED_DEPTHWISE,
    LW_INVERTED_PROJECT,
    LW_INVERTED_HEAD
} lw_inverted_part;

/* Scopes of a convolution and of its BatchNorm; norm empty: that is folded in, the convolution has a bias. */
typedef struct lw_inverted_names {
    char conv[64], norm[64];
} lw_inverted_names;

typedef struct lw_inverted lw_inverted;
/* Names of a part of block n (1 ..; stem and head: any). */
typedef void lw_inverted_name_fn(lw_inverted_names *out, const lw_inverted *a,
                                 lw_inverted_part what, int n);

struct lw_inverted {
    lw_inverted_name_fn *name;
    const char *prefix;     /* scope of all but the classifier; NULL: none */
    const char *classifier; /* its scope */
    bool quantized;         /* weights may be bytes with scales, "weight_q" */
    bool
        same; /* TensorFlow's padding: at stride 2 an even side is padded behind only; else both alike */
    bool
        first_in_stem; /* the first block belongs to the stem, as transformers has it: nothing is added */
    float eps;         /* of BatchNorm */
    int blocks[LW_INVERTED_STAGES], stride[LW_INVERTED_STAGES], kernel[LW_INVERTED_STAGES];
    int32_t stem, head, classes;       /* classes 0: no classifier */
    int32_t inner[LW_INVERTED_BLOCKS]; /* channels of the depthwise convolution */
    int32_t width[LW_INVERTED_BLOCKS]; /* and of the result */
};

/* Number of block n (1 ..) in its stage, from 0, which *stage becomes. */
int lw_inverted_in_stage(const lw_inverted *a, int n, int *stage);
int lw_inverted_blocks(const lw_inverted *a);

/* timm's names: conv_stem, blocks.<stage>.<i>.conv_pw, conv_head. */
lw_inverted_name_fn lw_inverted_name_timm;

/* Widths and classes of a file whose tensors have the names and kernels of a. false: they are not there. */
bool lw_inverted_read(const lw_st_file *f, lw_inverted *a);

/* Channels at a multiplier, to a multiple of 8 that takes no more than a tenth away. */
int32_t lw_inverted_times(int32_t channels, double by);
/* Are the widths those of stages `width` at a multiplier, with blocks that expand six times? */
bool lw_inverted_has_widths(const lw_inverted *a, const int32_t width[LW_INVERTED_STAGES],
                            double by);

/* x [B,H,W,3] -> taps pooled [B,head], logits [B,classes] and a map of the stem and of each stage. */
void lw_inverted_build(lw_builder *b, const lw_inverted *a, lw_val x, lw_taps *out);

/* timm's config.json of such a network: padding and eps, where it says them. LW_EUNSUPPORTED names what is not
 * honoured. */
int lw_inverted_read_timm(const json_t *config, const char *where, lw_inverted *a);
/* The other way: `usual` has the padding and eps that the architecture's name says. */
void lw_inverted_write_timm(const lw_inverted *a, const char *architecture,
                            const lw_inverted *usual, json_t *config);

#endif
