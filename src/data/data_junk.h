/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures that are not of the data: the eleventh class a judge is trained with, and the negative
 * controls it is scored with. Each is a pure function of (dataset, seed, kind, index).
 */
#ifndef LW_DATA_JUNK_H
#define LW_DATA_JUNK_H

#include <stdint.h>

#include "data/data_set.h"

typedef enum lw_junk_kind {
    LW_JUNK_AVERAGE,  /* mean of two pictures of different classes */
    LW_JUNK_SPLICE,   /* left or upper half of one, the other half of one of another class */
    LW_JUNK_BLUR,     /* averaged over cells of a quarter of the side, brought back bilinearly */
    LW_JUNK_BLUR2,    /* the same with cells of 2x2 */
    LW_JUNK_WARP,     /* strongly bent by a smooth random field */
    LW_JUNK_TILE,     /* half size, repeated 2x2 */
    LW_JUNK_NOISE,    /* independent uniform bytes */
    LW_JUNK_NOISED,   /* a picture plus Gaussian noise, sd 0.3 */
    LW_JUNK_MEAN,     /* mean of the picture's class plus Gaussian noise, sd 0.05 */
    LW_JUNK_REPEATED, /* one of ten fixed pictures (of different classes while they last), for ever
                       */
    LW_JUNK_GRAINED,  /* a picture plus Gaussian noise, sd LW_JUNK_GRAIN */
    LW_JUNK_COUNT
} lw_junk_kind;
#define LW_JUNK_GRAIN 0.1

/* Borrows the dataset; holds the class means and room for two pictures: one user at a time. */
typedef struct lw_junk lw_junk;
int lw_junk_new(const lw_dataset *d, uint64_t seed, lw_junk **out);
void lw_junk_free(lw_junk **pp);
/* Picture `index` of a kind into dst [h][w][channels], in [-1, 1]. Returns the class it pretends to be:
 * the class of the (first) real picture it is made of; index mod classes for LW_JUNK_NOISE. */
int32_t lw_junk_make(lw_junk *j, lw_junk_kind kind, int64_t index, float *dst);
/* For training a judge: AVERAGE, SPLICE, BLUR, WARP, TILE or NOISE, chosen by index. BLUR2, MEAN,
 * NOISED, REPEATED and GRAINED stay unseen, so that as controls they test more than memory. */
int32_t lw_junk_any(lw_junk *j, int64_t index, float *dst);

/* The pixel functions, on [h][w][c]; dst must not overlap the sources. */
void lw_junk_average(const float *a, const float *b, int32_t h, int32_t w, int32_t c, float *dst);
void lw_junk_splice(const float *a, const float *b, int32_t h, int32_t w, int32_t c, int vertical,
                    float *dst);
void lw_junk_blur(const float *a, int32_t h, int32_t w, int32_t c, int32_t cell, float *dst);
void lw_junk_warp(const float *a, int32_t h, int32_t w, int32_t c, uint64_t seed, int64_t index,
                  float *dst);
void lw_junk_tile(const float *a, int32_t h, int32_t w, int32_t c, float *dst);

#endif
