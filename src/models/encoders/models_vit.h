/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vision transformer that CLIP, SigLIP and DINOv2 share. Families differ in what stands before
 * and behind the blocks, in names, and in a few numbers:
 *
 *   pictures ─patches─► + positions, class token, registers in front ─[norm]─► blocks
 *   block:   x += scale1 attention(norm1 x);  x += scale2 mlp(norm2 x)
 */
#ifndef LW_MODELS_VIT_H
#define LW_MODELS_VIT_H

#include "models/models_taps.h"

enum { LW_VIT_MAX_DEPTH = LW_MAX_MAPS - 1 };

/* What becomes of the table of positions when the picture has other patches than the table: all are
 * torch's bicubic interpolation, and differ in the last digits that show. */
typedef enum lw_vit_resize {
    LW_VIT_RESIZE_NONE,      /* such pictures are refused */
    LW_VIT_RESIZE_SIZE,      /* size=(h, w) */
    LW_VIT_RESIZE_ANTIALIAS, /* size=(h, w), antialias=True */
    LW_VIT_RESIZE_OFFSET     /* scale_factor=((h + 0.1) / grid, (w + 0.1) / grid) */
} lw_vit_resize;

typedef struct lw_vit {
    int32_t width, hidden; /* of tokens; between the two layers of the mlp */
    int32_t depth, heads;
    int32_t image_size, patch; /* sides in pixels: of pictures it was made for, of a patch */
    int32_t grid;              /* side of its table of positions, in patches */
    int32_t registers;
    lw_ewop act;
    float eps; /* of all norms */
    lw_vit_resize resize;
    bool class_unplaced; /* the class token has no position */
    bool no_qkv_bias;
    bool swiglu; /* the first half of the hidden layer, through silu, times the second */
} lw_vit;

/* Where parameters stand in files, from the network's scope on. NULL: there is none. */
typedef struct lw_vit_names {
    const char *patch;
    bool patch_bias;
    const char *class_token, *registers, *positions;
    bool batched;     /* those three have a leading dimension of 1 (and the class token one more) */
    const char *norm; /* before the blocks */
    const char *blocks;
    const char *norm1, *qkv, *out, *scale1, *norm2, *fc1, *fc2, *scale2; /* of a block */
} lw_vit_names;

/* Sets grid. LW_EFORMAT: sizes that contradict each other. */
int lw_vit_check(lw_vit *c, const char *where);

/* Tokens before the grid's: class token and registers. */
int32_t lw_vit_prefix(const lw_vit *c, const lw_vit_names *n);
/*
 * Pictures [B,h,w,3] (normalised) -> tokens [B,T,C] behind the last block. map[0 .. depth]: the grid
 * of tokens [B,h / patch,w / patch,C] before the first and behind each block. Pixels beyond the last
 * whole patch are not looked at.
 */
lw_val lw_vit_build(lw_builder *b, const lw_vit *c, const lw_vit_names *n, lw_val x, lw_val *map);
/* Token i of [B,T,C] as [B,C]. */
lw_val lw_vit_token(lw_graph *g, lw_val tokens, int32_t i);
/* fc2(act(fc1 x)), or the gated form. */
lw_val lw_vit_mlp(lw_builder *b, const lw_vit *c, const char *fc1, const char *fc2, lw_val x);

#endif
