/* SPDX-License-Identifier: Apache-2.0 */
/* Private to this folder: one model with its pictures, and a rung of it. */
#ifndef LW_BENCH_LADDER_PARTS_H
#define LW_BENCH_LADDER_PARTS_H

#include "bench/ladder/bench_ladder.h"
#include "eval/eval.h"
#include "session/session.h"

typedef struct ladder_model {
    const lw_ladder_config *c;
    const lw_observer *obs;
    lw_device *dev;
    lw_network *net;
    lw_sites sites;
    lw_noise noise;
    lw_layer_hook hook;
    lw_dataset *data; /* says which pictures; in memory */
    lw_preparation preparation;
    uint8_t *pixels; /* [pictures][h][w][3], as this run decoded them */
    lw_ladder_model *out;
} ladder_model;

typedef struct ladder_rung {
    const char *name;
    bool again; /* decodes in each pass */
    bool bf16;
    int32_t rows; /* at once; 0: measured before */
    bool whole;   /* not cut in front of the first site */
    bool folded;  /* passes and pictures in one batch, else one pass after the other */
    bool unfused;
} ladder_rung;

/* ---- bench_ladder_run.c ---- */
/* `passes` passes of all pictures. */
int lw_ladder_run(ladder_model *m, const ladder_rung *r, int32_t passes, lw_ladder_rung *out);

/* ---- bench_ladder_inputs.c: where nothing is at hand ---- */
/* A folder with a network of CLIP B/32's shape, and one of pictures, below dir. */
int lw_ladder_draw_model(const char *dir);
int lw_ladder_draw_pictures(const char *dir, int32_t n);

#endif
