/* SPDX-License-Identifier: Apache-2.0 */
/* What the trainers of both generators share: data, U-Net, store, and the grid of the averaged
 * weights. */
#ifndef LW_TRAIN_GENERATOR_H
#define LW_TRAIN_GENERATOR_H
#include "train/pictures/train_heldout.h"
#include "session/session_sampler.h"
#include "train/pictures/train_pictures.h"

typedef struct lw_generator {
    lw_picture_run p;
    lw_unet_config net;
    lw_method method;
    lw_sampler *grid;              /* made when first used */
    int32_t grid_steps, timesteps; /* evaluations per picture of grids; of the noise schedule */
    lw_heldout *heldout;           /* NULL: nothing is measured */
} lw_generator;

/* Opens g->p, declares and initialises the U-Net. Cleared by lw_generator_clear in any case. */
int lw_generator_init(lw_generator *g, lw_method m, const lw_net_config *n);
void lw_generator_clear(lw_generator *g);
/* What --eval-every measures, with `encoder` that of the loss, or NULL, and what the job says of it. */
int lw_generator_measure(lw_generator *g, const char *encoder, const lw_heldout_config *c,
                         lw_train_job *job);

/* Callbacks of the job, whose self begins with an lw_generator: 64 samples of the averaged weights (classes in turn)
 * as a PNG, and the measures. */
int lw_generator_grid(void *self, int64_t step, const char *path);
int lw_generator_evaluate(void *self, int64_t step, json_t *row);
/* The distances of a row, in words, and drawn: raw drift, fd and eval_fd where they were logged. */
void lw_generator_tell(const json_t *row, lw_str *out);
int lw_generator_plot(const char *run, lw_str svg[LW_TRAIN_PLOTS]);
#endif
