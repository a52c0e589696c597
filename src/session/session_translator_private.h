/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the translator: what it is made of, and who builds which part of its graph. */
#ifndef LW_SESSION_TRANSLATOR_PRIVATE_H
#define LW_SESSION_TRANSLATOR_PRIVATE_H

#include "session/session_diffusion.h"
#include "session/session_translator.h"
#include "session/session_translator_framing.h"
#include "session/session_unet.h"

struct lw_translator {
    lw_device *dev;
    lw_translator_opts o;
    lw_pixels in;
    lw_autoencoder coder; /* NULL halves: none, the network is in pixels */
    lw_network *net;      /* NULL: `coder` alone, or identity */
    lw_method method;
    lw_diffusion *schedule; /* NULL: `net` makes its picture in one step, of noise alone */
    lw_diffusion *part;     /* of the schedule, what is undone and done again */
    int32_t previous;       /* answers that `net` is shown again */
    lw_framing framing;
    int32_t out_w, out_h;    /* of the result, of each half where o.beside */
    lw_forward *plan, *back; /* back: the decoder's, where it is apart */
    int64_t frames;          /* since the start or a reset */
    bool ran;                /* frames are in flight: their state moves on, whatever is reset */
};

/* session_translator_open.c: networks, method, sizes. */
int lw_translator_open(lw_translator *t);
/* session_translator_graph.c: inputs and outputs of the plan, and of that of the decoder, whose latents are
 * [1,h,w,C]. */
int lw_translator_build(lw_translator *t, lw_graph *g);
int lw_translator_build_back(lw_translator *t, lw_graph *g, lw_type latent);
/* session_translator_moves.c: z, a picture or latent f32[1,h,w,C], as `net` makes it anew. */
lw_val lw_translator_generate(lw_translator *t, lw_graph *g, lw_val z);
/* The numbers of its moves into the plan's inputs, as strength says. */
void lw_translator_set_moves(lw_translator *t);
/* What is asked for; where that is 0 a half, and all of a network conditioned on frames. */
double lw_translator_strength(const lw_translator *t, double asked);

#endif
