/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last linear layer of an encoder: what goes into it, what the network says, and its weights.
 *
 *   pictures ─► network ─► f [in] ─► layer (weight, bias) ─┬─► y: logits, or pooled
 *                                    what passes it by ────┘   (SigLIP's pool head adds it)
 *
 * It is found in the graph: the product that the network's output is made of last. CLIP: the
 * projection; SigLIP, which has none: the second layer of the pool head.
 */
#ifndef LW_SESSION_LAST_LAYER_H
#define LW_SESSION_LAST_LAYER_H

#include "models/models.h"
#include "session/session_forward.h"
#include "session/session_passes.h"

typedef struct lw_last_layer_info {
    const char *output; /* "logits" of a classifier, else "pooled" */
    const char *weight; /* the parameter's name */
    int32_t in, out;
    bool bias;
    double squares; /* sum of the squares of weight and bias */
} lw_last_layer_info;

typedef struct lw_last_layer lw_last_layer;
/* For pictures of height x width, `batch` at a time; a hook of n is passed over. Borrows device and
 * network. LW_EUSAGE: the network has neither output, or its output is no linear layer's. */
int lw_last_layer_new(lw_device *dev, const lw_network *n, int32_t height, int32_t width,
                      int32_t batch, int32_t precision, lw_last_layer **out);
void lw_last_layer_free(lw_last_layer **pp);
lw_last_layer_info lw_last_layer_get_info(const lw_last_layer *l);

/* Of n pictures f [n][in] and y [n][out], valid during the call; first: the first one's number. */
typedef int lw_last_layer_use(void *self, int64_t first, int64_t n, const float *f, const float *y);
/* Pictures 0 .. n - 1, batch by batch: what a row says does not depend on the others. LW_ESTOPPED when
 * asked. */
int lw_last_layer_rows(lw_last_layer *l, int64_t n, lw_passes_fill *fill, void *pictures,
                       lw_last_layer_use *use, void *self, const char *what,
                       const lw_observer *obs);

#endif
