/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a network offers when it is built, by name:
 *
 *   s0, s1, ...      maps f32[B,h,w,C] of any size, from the stem to the last stage or block
 *   pooled, cls      vectors f32[B,F]
 *   tokens           rows f32[B,T,C]
 *   logits           the head's f32[B,classes]
 *   y                what a generator predicts
 *
 * Shapes are asked of the graph (lw_val_type), nowhere computed. The first tap is what a caller gets
 * who names none.
 */
#ifndef LW_MODELS_TAPS_H
#define LW_MODELS_TAPS_H

#include "store/store.h"

enum { LW_MAX_MAPS = 100, LW_MAX_TAPS = LW_MAX_MAPS + 12 };

typedef struct lw_tap {
    char name[12];
    lw_val val;
} lw_tap;

typedef struct lw_taps {
    int32_t n;
    lw_tap tap[LW_MAX_TAPS];
} lw_taps;

/* Appends a value; one that is absent or of a failed graph is passed over. */
void lw_tap_add(lw_taps *t, const char *name, lw_val v);
/* s0, s1, ... */
void lw_tap_add_maps(lw_taps *t, const lw_val *map, int32_t n);
/* LW_NOVAL: there is none of this name. */
lw_val lw_tap_find(const lw_taps *t, const char *name);
/* The same. LW_EUSAGE: `where` has no such tap, naming those there are. */
int lw_tap_choose(const lw_taps *t, const char *name, const char *where, lw_val *out);
/* "pooled, s0, s1", or "none", for messages. */
void lw_tap_names(const lw_taps *t, lw_str *out);
/* Outputs of g: every tap of the list `want` ("pooled,s2"), NULL the first, "*" all, in the order
 * they have here. LW_EUSAGE: `where` has no such tap, naming those there are. */
int lw_taps_offer(const lw_taps *t, lw_graph *g, const char *want, const char *where);

#endif
