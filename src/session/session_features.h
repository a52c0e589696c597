/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frozen network that looks at pictures: features for Frechet distances, and a judge's
 * probabilities.
 *
 * An encoder whose files say what its pictures go through (lw_preparation, with a size) sees just
 * that: a picture is rounded to bytes, as one that lies in a file is (rows of a dataset keep their
 * own), and prepared by lw_prepare, or by the graph where its resize is one of floats. Any other sees
 * the numbers as they are.
 */
#ifndef LW_SESSION_FEATURES_H
#define LW_SESSION_FEATURES_H

#include "data/data.h"
#include "session/session_forward.h"

typedef struct lw_score_net {
    lw_network *encoder;
    lw_forward *forward;
    lw_pool *pool;        /* of the device */
    int32_t side;         /* of the pictures it is given */
    int32_t dim, outputs; /* outputs 0: no head */
    int32_t judged; /* real classes of a judge; the outputs after them are junk. 0: not a judge */
} lw_score_net;

/* spec: of models_encoder.h (not none), or a judge's run. Borrows the device. */
int lw_score_net_open(lw_device *dev, const char *spec, int32_t side, lw_score_net **out);
void lw_score_net_close(lw_score_net **pp);
/* Pictures x [n][side][side][3] -> features [n][dim], probabilities [n][outputs] (softmax); either
 * may be NULL. */
int lw_score_net_run(lw_score_net *s, const float *x, int64_t n, float *features, float *probs);

#endif
