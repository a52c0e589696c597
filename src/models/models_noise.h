/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Noise inside a frozen network, for Monte-Carlo uncertainty: at chosen *sites* the output y of a
 * module is disturbed, anew for every row id (lw_builder.rows) and every step of the tick.
 *
 *   dropout         y m / (1 - p), m = 1 with probability 1 - p, else 0 (Gal & Ghahramani 2016)
 *   gaussian        y + p std(y) n, n normal, std over the picture's own outputs of that module
 *   multiplicative  y (1 + p n)
 *   depth           a block is left out with probability p: its input instead of its output
 *
 * A draw depends on (seed, step, row, site, element) only: neither the batch nor the other sites nor
 * the number of threads change it. Masks are drawn where the module's output lies in PyTorch: that of
 * a hidden layer before its activation.
 *
 * Which modules are sites is a list by name, for results depend on it. Libraries wrap their linear
 * modules, and they have them cut differently: transformers has q, k and v, timm one qkv, open_clip
 * bare parameters that are no module at all. A module that the library's forward never calls (out_proj
 * of torch's MultiheadAttention, which reads its weights itself) is a *dead* site: in the list, without
 * effect.
 *
 *   hf              linear modules of transformers' vision model
 *   open_clip       those of open_clip; open_clip-2.24: as it was, where attn.out_proj is dead
 *   timm            those of timm, and its own Dropout modules, which the same switch turns on
 *   blocks          outputs of (residual) blocks
 *   depth           the same blocks, for noise of that kind
 *   head            what goes into the classifier
 *   MODULE          one module, by that library's name or ours
 *
 * Narrower: attention, mlp, mlp-down (the second layer of each mlp), last:N (the last N blocks); several
 * words with commas between them: "timm,mlp-down,last:3". Without one of the first words the list is
 * hf for transformers and blocks for other networks.
 */
#ifndef LW_MODELS_NOISE_H
#define LW_MODELS_NOISE_H

#include "models/models_network.h"

typedef enum lw_noise_kind {
    LW_NOISE_DROPOUT,
    LW_NOISE_GAUSSIAN,
    LW_NOISE_MULTIPLICATIVE,
    LW_NOISE_DEPTH
} lw_noise_kind;
#define LW_NOISE_KINDS "dropout|gaussian|multiplicative|depth"

typedef struct lw_site {
    const char *module; /* as the list's library calls it */
    const char *layer;  /* as the network is built: the random stream's name */
    int32_t part, of;   /* which of so many equal parts of the layer's outputs; 0 of 1: all */
    int32_t block;      /* which block it is in; -1: none */
    int32_t width;      /* numbers per token or pixel */
    bool live;
} lw_site;

typedef struct lw_sites {
    lw_arena *arena;
    lw_site *of;
    int32_t n, live;
    int32_t blocks;   /* of the network */
    const char *list; /* the words, those that were added included */
} lw_sites;

/* list NULL or "": as above. LW_EUSAGE: no such word or module (the nearest is named), none left. */
int lw_sites_find(const lw_network *n, const char *list, lw_sites *out);
void lw_sites_clear(lw_sites *s);

typedef struct lw_noise {
    lw_noise_kind kind;
    float p; /* probability, or share of the standard deviation; 0: none */
    const lw_sites *sites;
} lw_noise;
/* The hook of a network that is disturbed (lw_network.hook). Borrows noise. */
lw_layer_hook lw_noise_hook(const lw_noise *noise);

#endif
