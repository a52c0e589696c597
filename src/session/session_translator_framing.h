/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the translator: where a frame lies in the network's picture, and the way back. */
#ifndef LW_SESSION_TRANSLATOR_FRAMING_H
#define LW_SESSION_TRANSLATOR_FRAMING_H

#include "session/session_translator.h"

/*
 *   source W x H ── window [x, y, w, h] ── resized to inner ── at [x, y] of the picture w x h
 *                   crop: smaller                              border: smaller
 */
typedef struct lw_framing_box {
    int32_t x, y, w, h;
} lw_framing_box;

typedef struct lw_framing {
    int32_t source_w, source_h, w, h; /* of the picture */
    lw_framing_box window, inner;
} lw_framing;

lw_framing lw_framing_of(lw_frame_fit how, int32_t source_w, int32_t source_h, int32_t w,
                         int32_t h);
/* Does the frame stay as it is? */
bool lw_framing_same(const lw_framing *f);
/* f32[B,H,W,3] of the source -> [B,h,w,3], and of the picture -> that of the window at its own size. */
lw_val lw_framing_in(lw_graph *g, const lw_framing *f, lw_val x);
/* [B,h,w,C] at another size; as it is where that is its own. */
lw_val lw_framing_resize(lw_graph *g, lw_val x, int32_t w, int32_t h);
/* A line: which part of the frame becomes which part of the picture, and how. */
void lw_framing_print(lw_str *s, const lw_framing *f);
lw_val lw_framing_out(lw_graph *g, const lw_framing *f, lw_val y);

#endif
