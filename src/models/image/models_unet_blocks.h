/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that diffusers' UNet2DModel and AutoencoderKL are made of: names and order of operations are
 * theirs. */
#ifndef LW_MODELS_UNET_BLOCKS_H
#define LW_MODELS_UNET_BLOCKS_H

#include "models/models_taps.h"

typedef struct lw_block_style {
    int32_t norm_groups;
    float norm_eps;
    int32_t heads, head_dim; /* attention heads; or 0: channels / head_dim */
    lw_val temb;     /* silu of an embedding [1,W] or [B,W], which every residual block takes
                                scale and shift from; absent: none does */
    bool shift_only; /* shift alone: h + temb instead of h (1 + scale) + shift */
    bool pad_end;    /* halving pads one row and column of zeros at the end only */
    bool zero_init;  /* what a block adds starts at zero */
    float dropout;   /* live when the builder trains */
} lw_block_style;

/* Scopes resnets.j and attentions.j. Maps are [B,h,w,C]. */
lw_val lw_block_res(lw_builder *b, const lw_block_style *s, int j, lw_val x, int32_t out);
lw_val lw_block_attention(lw_builder *b, const lw_block_style *s, int j, lw_val x);
/* downsamplers.0, half the sides; upsamplers.0, twice the sides. */
lw_val lw_block_down(lw_builder *b, const lw_block_style *s, lw_val x, int32_t out);
lw_val lw_block_up(lw_builder *b, lw_val x, int32_t out);
/* mid_block. What leaves each of its blocks, residual and all, is divided by scale; 0: by 1. */
lw_val lw_block_middle(lw_builder *b, const lw_block_style *s, lw_val x, bool attention,
                       float scale);
lw_val lw_block_norm(lw_builder *b, const lw_block_style *s, const char *name, lw_val x,
                     lw_act act);

/* Names that diffusers itself renames when it loads older folders. */
extern const lw_name_rule lw_block_older_names[];

#endif
