/* SPDX-License-Identifier: Apache-2.0 */
/* What the trainers of both generators share: data, network, store, and the grid of the averaged
 * weights. */
#ifndef LW_TRAIN_GENERATOR_H
#define LW_TRAIN_GENERATOR_H
#include "train/pictures/train_heldout.h"
#include "session/session_sampler.h"
#include "train/pictures/train_pictures.h"
#include "train/pictures/train_restored.h"

typedef struct lw_generator {
    lw_picture_run p;
    lw_unet_config net; /* of the U-Net; dit of the transformer */
    lw_dit_config dit;
    lw_network network; /* the one of both that is trained, on p.store; its arch is here */
    lw_method method;
    lw_sampler *grid;        /* made when first used */
    int32_t grid_steps;      /* evaluations per picture of grids */
    lw_noise_schedule noise; /* of drift only its prediction, sample */
    lw_diffusion *diffusion; /* of grids, where it is not the usual one */
    lw_heldout *heldout;     /* NULL: nothing is measured */
    lw_restored *restored;   /* likewise, of networks with a condition */
} lw_generator;

/* LW_EUSAGE: options of generators that do not go together. */
int lw_generator_config_check(const lw_picture_config *p, const lw_heldout_config *h,
                              int64_t eval_every);
/* Opens g->p, declares and initialises the network. Cleared by lw_generator_clear in any case. */
int lw_generator_init(lw_generator *g, lw_method m, const lw_net_config *n);
void lw_generator_clear(lw_generator *g);
/* What --eval-every measures, with `encoder` that of the loss, or NULL, and what the job says of it. */
int lw_generator_measure(lw_generator *g, const char *encoder, const lw_heldout_config *c,
                         lw_train_job *job);

/* What the jobs of generators have in common. Its callbacks take `self` for g, with which the run begins: grids are 64
 * samples of the averaged weights, classes in turn; measures are told in words and drawn. */
lw_train_job lw_generator_job(const char *name, lw_generator *g, const lw_train_config *c,
                              const lw_picture_config *pictures, const lw_observer *obs);

#endif
