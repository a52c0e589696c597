/* SPDX-License-Identifier: Apache-2.0 */
/* Private to models: what a feature key is made of. */
#ifndef LW_MODELS_PRIVATE_H
#define LW_MODELS_PRIVATE_H

#include "models/models.h"

typedef enum lw_key_kind {
    LW_KEY_PIX,    /* the picture, one slot */
    LW_KEY_P4,     /* 4x4 patches of the picture */
    LW_KEY_NORM_X, /* root mean square per channel */
    LW_KEY_LOC,    /* a map, one slot per location */
    LW_KEY_STAT,   /* one of LW_STAT_* of the picture (map -1) or of a map */
    LW_KEY_POOLED,
} lw_key_kind;

/* Space and width of map s (0: stem) of an encoder on square images. */
typedef struct lw_map_shape {
    int32_t size, c;
} lw_map_shape;
lw_map_shape lw_encoder_map_shape(const lw_encoder *e, int32_t image_size, int32_t s);

#endif
