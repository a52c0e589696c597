/* SPDX-License-Identifier: Apache-2.0 */
/* What the trainers of both generators share: data, U-Net, store, and the grid of the averaged
 * weights. */
#ifndef LW_TRAIN_GENERATOR_H
#define LW_TRAIN_GENERATOR_H
#include "train/train_heldout.h"
#include "session/session_sampler.h"
#include "train/train_loop.h"

typedef struct lw_generator {
    lw_device *dev;
    lw_dataset *data;
    lw_unet_config net;
    lw_store *store;
    lw_method method;
    lw_sampler *grid;              /* made when first used */
    int32_t grid_steps, timesteps; /* evaluations per picture of grids; of the noise schedule */
    lw_heldout *heldout;           /* NULL: nothing is measured */
    const lw_observer *obs;
    uint64_t seed;
    int32_t precision; /* lw_num of products, of the training step and of grids */
    lw_plan *plan;
    lw_exec *exec;
    json_t *model;
} lw_generator;

/* Opens device and data (g->obs may stop its decoding), declares and initialises the U-Net. Cleared
 * by lw_generator_clear in any case. */
int lw_generator_init(lw_generator *g, lw_method m, const lw_train_config *c,
                      const lw_net_config *n);
void lw_generator_clear(lw_generator *g);
/* 64 samples of the averaged weights (classes in turn) as a PNG; also the job's grid
 * callback body. */
int lw_generator_grid(lw_generator *g, int64_t step, const char *path);
/* What --eval-every measures, with `encoder` that of the loss, or NULL; the job's callback body,
 * and what the job says of it. */
int lw_generator_measure(lw_generator *g, const lw_train_config *t, const char *encoder,
                         const lw_heldout_config *c);
int lw_generator_evaluate(lw_generator *g, int64_t step, json_t *row);
/* A sampler of the averaged weights, kept. */
int lw_generator_sampler(lw_generator *g, lw_sampler **out);
/* A train job with everything that both fill alike. */
lw_train_job lw_generator_job(lw_generator *g, const char *name, void *self, lw_leaves leaves);

#endif
