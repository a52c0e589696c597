/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the networks of models_rehearsal.h. */
#ifndef LW_MODELS_REHEARSAL_PARTS_H
#define LW_MODELS_REHEARSAL_PARTS_H

#include "models/image/models_rehearsal.h"

typedef struct lw_rehearsal {
    int32_t base, side;
} lw_rehearsal;

extern const lw_network_def lw_rehearsal_stress, lw_rehearsal_lsd, lw_rehearsal_simple;

/* x [B,h,w,C] and a plane of t / length behind it. */
lw_val lw_rehearsal_with_time(lw_graph *g, lw_val x, lw_val t, float length);
/* PyTorch's ConvTranspose2d of 4x4, stride 2, padding 1: twice the sides. */
lw_val lw_rehearsal_up(lw_builder *b, const char *name, lw_val x, int32_t o);
lw_val lw_rehearsal_conv3(lw_builder *b, const char *name, lw_val x, int32_t o, int stride);
/* [B,h,w,C] as [B,h w,C]. */
lw_val lw_rehearsal_tokens(lw_graph *g, lw_val x);
/* Facts of n with a condition of so many channels. */
void lw_rehearsal_describe(lw_network *n, int32_t condition);

#endif
