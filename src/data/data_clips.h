/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of a clip for networks conditioned on frames: a picture, the same made worse, and the
 * pictures before it as a network's own answers would be, which are never perfect.
 *
 * Sample g is a pure function of (dataset, options, g): a frame in the order of data_loader.h, one
 * crop and one mirroring of everything (streams "clip.crop", "clip.flip"). Made worse are whole
 * frames, so that a crop knows no border of its own; noise is that of row g. Previous frames are clean
 * ones, blurred by up to `blur` pixels and with noise of up to `noise` levels, each drawn evenly
 * (streams "clip.history", "clip.noise"); zeros where the clip begins, and all of them in a share
 * `drop` of the samples, as when a stream begins.
 */
#ifndef LW_DATA_CLIPS_H
#define LW_DATA_CLIPS_H

#include "data/data_degrade.h"
#include "data/data_set.h"

typedef struct lw_clip_opts {
    int32_t side;     /* of crops */
    bool frame;       /* the condition begins with the current frame made worse */
    int32_t previous; /* frames before it, the newest first */
    lw_degradation degradation;
    double noise, blur, drop;
    bool flip;
    int32_t batch; /* for the order: as lw_loader_opts.batch_size */
    uint64_t seed;
    lw_pool *pool;
} lw_clip_opts;

typedef struct lw_clips lw_clips;
/* d: RGB frames in order, opened whole; without frame and previous pictures of any kind. Borrowed. Keeps
 * every frame made worse up to the first noise, where there is a condition.
 * LW_EUSAGE: frames smaller than a crop. */
int lw_clips_new(const lw_dataset *d, const lw_clip_opts *o, lw_clips **out);
void lw_clips_free(lw_clips **pp);
/* Samples first .. first + n - 1: clean [n][side][side][3], condition
 * [n][side][side][3 (frame + previous)], in [-1, 1]; NULL where that is of no channels. */
int lw_clips_fill(lw_clips *c, int64_t first, int64_t n, float *clean, float *condition);
/* Row i made worse, [h][w][3], where there is a condition; noise is that of the row's number. */
int lw_clips_frame(const lw_clips *c, int64_t i, lw_raster *out);

#endif
