/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures moved, pixel by pixel, down the gradient of one network's Frechet distance (the loss of
 * arXiv 2604.28190, on pixels instead of a generator's weights): what a distance in that network
 * alone cannot tell from good pictures. A verdict that is worth something must.
 *
 *   x ─network─► features ─lw_frechet_gradient─► cotangent ─network backwards─► Adam on x, clipped
 *
 * Every step looks at all pictures at once. The network sees them through its graph alone: one whose
 * files prepare pictures in another size sees them resized as lw_encoder_open says.
 */
#ifndef LW_SESSION_ADVERSARIAL_H
#define LW_SESSION_ADVERSARIAL_H

#include "base/observer.h"
#include "eval/eval.h"
#include "models/models.h"
#include "plan/plan.h"

typedef struct lw_adversarial_opts {
    int32_t steps;          /* 0: LW_ADVERSARIAL_STEPS */
    double rate;            /* of Adam, pictures in [-1, 1]; falls to 0. 0: LW_ADVERSARIAL_RATE */
    const lw_observer *obs; /* progress in steps; may stop it (LW_ESTOPPED) */
} lw_adversarial_opts;
#define LW_ADVERSARIAL_STEPS 100
#define LW_ADVERSARIAL_RATE 0.02

typedef struct lw_adversarial_result {
    double before, after; /* Frechet distance to the reference, as the graph sees the pictures */
    double moved;         /* root mean square of the change of a number in [-1, 1] */
} lw_adversarial_result;

/*
 * x [n][side][side][3] in [-1, 1], rounded to bytes at the end as pictures in files are. reference:
 * of the network's pooled features. LW_EUSAGE: the network has none, or n < 2.
 */
int lw_adversarial_pictures(lw_device *dev, const lw_network *attacked, int32_t side,
                            const lw_stats *reference, const lw_adversarial_opts *o, float *x,
                            int64_t n, lw_adversarial_result *out);
/* seconds = open + steps (batches per_batch + gradient) + gradient */
typedef struct lw_adversarial_cost {
    double seconds;
    double open;      /* compiling, and the reference's decomposition */
    double per_batch; /* a step of it: forwards, backwards, Adam */
    double gradient;  /* of the distance, by the features of all pictures */
    int64_t batches;
    int32_t steps;
} lw_adversarial_cost;
/* How long that will take, measured on a batch and on the gradient of n drawn rows. */
int lw_adversarial_forecast(lw_device *dev, const lw_network *attacked, int32_t side, int32_t steps,
                            int64_t n, lw_adversarial_cost *out);

#endif
