/* SPDX-License-Identifier: Apache-2.0 */
/* Private to models: what a feature key is made of. */
#ifndef LW_MODELS_PRIVATE_H
#define LW_MODELS_PRIVATE_H

#include "models/models.h"

typedef enum lw_key_kind {
    LW_KEY_WHOLE,  /* the picture as one vector, or a tap as it is: a slot per location or row */
    LW_KEY_P4,     /* 4x4 patches of the picture */
    LW_KEY_NORM_X, /* root mean square per channel */
    LW_KEY_STAT,   /* one of LW_STAT_* of the picture (tap -1) or of a map */
} lw_key_kind;

#endif
