/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transformer that drifting generates with (Deng et al. 2026, after LightningDiT): patches of noise as
 * tokens, a condition from class, styles and guidance strength that modulates every block. Names of tensors and
 * keys of config.json are those of the official release, whose layers are [in, out]; tensors of its files have
 * dots where it has slashes (docs/formats.md).
 *
 *   DiT   hidden  blocks  heads  patch  pictures      parameters
 *   B/2      768      12     12      2  32 x 32 x 4  132,708,880
 *   L/2     1024      24     16      2  32 x 32 x 4  462,909,456
 *   B/16     768      12     12     16  256 x 256 x 3  133,864,704
 *   L/16    1024      24     16     16  256 x 256 x 3  464,450,304
 */
#ifndef LW_MODELS_DIT_H
#define LW_MODELS_DIT_H

#include "models/models_network.h"

typedef enum lw_dit_rope {
    LW_DIT_ROPE_1D, /* tokens in a row, the in-context ones first */
    LW_DIT_ROPE_2D, /* half of each head by the patch's row, half by its column; in-context tokens stay */
    LW_DIT_ROPE_NONE
} lw_dit_rope;
#define LW_DIT_ROPES "1d_flat|2d_axial|none"

typedef struct lw_dit_config {
    int32_t image_size, channels, patch;
    int32_t hidden, depth, heads;
    float mlp_ratio;             /* a block's inner width: 2/3 of it, in whole multiples of 32 */
    int32_t classes;             /* 0: unconditional */
    int32_t styles, style_words; /* codebooks, and entries of each; 0: none */
    int32_t tokens;              /* in context, in front of the patches; 0: none */
    bool no_qk_norm;
    int32_t rope; /* lw_dit_rope */
    float alpha;  /* greatest strength of guidance that it is told; 0: none, which is 1 */
} lw_dit_config;

/* hidden, depth, heads of DiT-B, and the rest as published; pictures and classes are the caller's. */
lw_dit_config lw_dit_base(void);
/* LW_EUSAGE with the field and the bound that does not hold. */
int lw_dit_check(const lw_dit_config *c);
/* f32[B,H,W,channels] of noise in.x, in.classes and in.styles where the configuration has them, in.alpha
 * (absent: 1). */
lw_val lw_dit(lw_builder *b, const lw_dit_config *c, lw_network_in in);
/* config.json; new reference. */
json_t *lw_dit_to_json(const lw_dit_config *c);
/* LW_EFORMAT: missing or wrong fields; LW_EUNSUPPORTED: a variant that is not built here. */
int lw_dit_from_json(const json_t *j, const char *where, lw_dit_config *out);

#endif
