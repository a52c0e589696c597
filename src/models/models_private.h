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

/* A kxk convolution (padding k / 2, no bias) of scope `conv` and the BatchNorm of scope `norm` in
 * inference form. */
lw_val lw_conv_bn(lw_builder *b, const char *conv, const char *norm, lw_val x, int32_t o, int k,
                  int stride);

#endif
