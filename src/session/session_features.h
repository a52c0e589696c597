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

/*
 * A set of pictures as bytes, as they lie in files; read by several threads at once.
 *
 *    rgb [n][side][side][3]   in memory; or NULL, and
 *    decode(self, i, &image)  makes picture i, of any size where side is 0
 */
typedef struct lw_pictures {
    const char *name; /* for messages */
    int64_t n;
    int32_t side; /* all are side x side; 0: of any sizes, for networks that prepare them */
    const uint8_t *rgb;
    int (*decode)(void *self, int64_t i, lw_image *out);
    void *self;
    /* A number of all that the pictures are (equal data, equal number): what networks make of them
     * is kept in the cache directory. 0: it is not. */
    uint64_t content;
} lw_pictures;

typedef struct lw_score_net {
    lw_network *encoder;
    lw_forward *forward;
    lw_pool *pool;          /* of the device */
    int32_t side, channels; /* of the pictures it is given */
    int32_t dim, outputs;   /* outputs 0: no head */
    uint64_t graph;         /* hash of what is computed */
    int32_t judged; /* real classes of a judge; the outputs after them are junk. 0: not a judge */
} lw_score_net;

/* spec: of models_encoder.h (not none), or a judge's run. Borrows the device. A network of RGB takes
 * gray pictures, too. */
int lw_score_net_new(lw_device *dev, const char *spec, int32_t side, int32_t channels,
                     lw_score_net **out);
/* Of RGB pictures. */
static inline int lw_score_net_open(lw_device *dev, const char *spec, int32_t side,
                                    lw_score_net **out)
{
    return lw_score_net_new(dev, spec, side, 3, out);
}
void lw_score_net_close(lw_score_net **pp);
/* Pictures x [n][side][side][channels] -> features [n][dim], probabilities [n][outputs] (softmax); either
 * may be NULL. */
int lw_score_net_run(lw_score_net *s, const float *x, int64_t n, float *features, float *probs);
/* Pictures first .. first + n - 1 of a set. LW_ESHAPE: a picture of a size that it cannot take. */
int lw_score_net_pictures(lw_score_net *s, const lw_pictures *p, int64_t first, int64_t n,
                          float *features, float *probs);
/* Compiled for so many pictures at a time. */
int32_t lw_score_net_batch(const lw_score_net *s);

#endif
