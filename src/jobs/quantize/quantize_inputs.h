/* SPDX-License-Identifier: Apache-2.0 */
/* Private to this folder: the network in f32 with its edges as outputs, and what it
 * is fed. */
#ifndef LW_QUANTIZE_INPUTS_H
#define LW_QUANTIZE_INPUTS_H

#include "data/data.h"
#include "session/session_generator.h"
#include "jobs/quantize/quantize_job.h"

typedef struct lw_quantize_inputs {
    const lw_quantize_config *c;
    const lw_observer *obs; /* may stop the decoding; NULL: nobody */
    lw_device *dev;
    const lw_network *net;
    lw_forward *f;           /* borrowed: inputs x, and t, class, latent of a U-Net */
    lw_dataset *data;        /* NULL: noise */
    int64_t *drawn;          /* its rows, lw_data_drawn */
    lw_forward *noise;       /* outputs noise, latent; NULL: an encoder */
    lw_diffusion *diffusion; /* DDPM */
    lw_method method;
    int32_t times;    /* evaluations per picture */
    int32_t h, w;     /* of the pictures the network is compiled for */
    int64_t row;      /* floats of a picture */
    float *x;         /* DDPM: the state between evaluations, [batch][row] */
    const char *what; /* a phrase for reports; static */
} lw_quantize_inputs;

/* Opens what the network and the config ask for. LW_EUSAGE: an encoder without data. Cleared by
 * lw_quantize_inputs_clear in any case. */
int lw_quantize_inputs_open(lw_quantize_inputs *in, const lw_quantize_config *c, lw_device *dev,
                            const lw_network *net);
void lw_quantize_inputs_clear(lw_quantize_inputs *in);
/* Fills the inputs for evaluation k of the pictures that start at `first`; after running it,
 * lw_quantize_inputs_next moves on (DDPM). */
int lw_quantize_inputs_fill(lw_quantize_inputs *in, int64_t first, int32_t k);
void lw_quantize_inputs_next(lw_quantize_inputs *in, int32_t k);

#endif
