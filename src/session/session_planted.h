/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planted cheaters: two sets of pictures that a verdict must not be taken in by, put among its rows
 * every time, because a measure that cannot say no measures nothing.
 *
 *   against a network   pictures of a generator, moved until one network of the battery finds them
 *                       as near to the training pictures as it can (session_adversarial.h): they
 *                       win that network, and gain little in the others
 *   memory              training pictures with Gaussian noise of sd LW_JUNK_GRAIN in [-1, 1]: a
 *                       generator that learnt its pictures by heart. So much noise keeps them from
 *                       being equal to any picture and what they show plain to every network
 */
#ifndef LW_SESSION_PLANTED_H
#define LW_SESSION_PLANTED_H

#include "data/data.h"
#include "session/session_adversarial.h"

enum { LW_PLANTED = 2, LW_PLANTED_PICTURES = 500, LW_PLANTED_TRAINING = 5000 };

typedef struct lw_planted {
    char name[96];   /* "against resnet20" */
    uint8_t *rgb;    /* [n][side][side][3] */
    int32_t *labels; /* [n]; NULL: none */
    int64_t n;
    char how[256];                /* in words: steps, network, distance before and after; sd */
    lw_adversarial_result attack; /* of the first */
} lw_planted;

typedef struct lw_planted_opts {
    const char *network, *name; /* the one attacked, an encoder spec, and what it is called */
    const lw_dataset *train;    /* squares */
    /* Pictures the first begins with, [n][side][side][3] in [-1, 1], of a generator; NULL: training
     * pictures blurred 2x. */
    const float *start;
    const int32_t *labels; /* [n], or NULL */
    int64_t n;     /* pictures of each set, at most LW_PLANTED_PICTURES are used; 0: that many */
    int32_t steps; /* 0: LW_ADVERSARIAL_STEPS */
    uint64_t seed;
    const lw_observer *obs;
} lw_planted_opts;

/* Both sets; lw_planted_clear each. The first network's statistics are of up to LW_PLANTED_TRAINING
 * training pictures: a cheater has no others. */
int lw_planted_make(lw_device *dev, const lw_planted_opts *o, lw_planted out[LW_PLANTED]);
void lw_planted_clear(lw_planted *p);
/* seconds = open + batches per_batch + attack.seconds */
typedef struct lw_planted_cost {
    double seconds, open;
    double per_batch; /* of training pictures */
    int64_t batches;
    lw_adversarial_cost attack;
} lw_planted_cost;
/* How long that will take, measured on pieces of it. */
int lw_planted_forecast(lw_device *dev, const lw_planted_opts *o, lw_planted_cost *out);

#endif
