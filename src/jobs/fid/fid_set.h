/* SPDX-License-Identifier: Apache-2.0 */
/* Private to this folder: A and B, whatever they are. */
#ifndef LW_FID_SET_H
#define LW_FID_SET_H

#include "eval/eval.h"
#include "formats/formats.h"
#include "jobs/fid/fid_job.h"

typedef enum fid_kind {
    FID_DATA,      /* pictures that a data spec names */
    FID_ARRAY,     /* pictures in a file of arrays, or made by a generator: in memory */
    FID_GENERATOR, /* they are still to be made */
    FID_FEATURES,  /* rows that an encoder made */
    FID_STATS      /* their mean and covariance alone */
} fid_kind;

/* What came out of a file or is to be opened; kinds fill what they have. */
typedef struct fid_set {
    const lw_fid_config *c;
    const char *source;
    char letter; /* 'A' or 'B' */
    fid_kind kind;
    int32_t split;
    lw_str spec;  /* of data */
    int64_t n;    /* pictures or rows; 0: not known yet, or not said */
    int32_t h, w; /* of pictures in memory */
    uint8_t *rgb; /* [n][h][w][3] */
    bool gray;    /* the three are one */
    int32_t
        classes;  /* that a generator is asked for in turn: picture i for i mod classes; else 0 */
    double alpha; /* strength of guidance that its generator was told; 0: none */
    double guidance_scale; /* that it was guided with; 0: none */
    float *rows;           /* [n][dim] features */
    int32_t dim;           /* of features and statistics */
    lw_stats *stats; /* of FID_STATS; beside pictures those that an ADM reference has of all its
                        pictures, for Inception's features */
    lw_contract contract; /* of features and statistics */
} fid_set;

/* Finds out what c->set[which] is, and reads files. */
int lw_fid_set_open(const lw_fid_config *c, int which, fid_set *out);
void lw_fid_set_clear(fid_set *s);
static inline bool lw_fid_is_pictures(const fid_set *s)
{
    return s->kind == FID_DATA || s->kind == FID_ARRAY || s->kind == FID_GENERATOR;
}
/* A generator's pictures, as bytes: what a file of them would hold. A dry run makes a few and adds
 * the seconds that all take. */
int lw_fid_set_make(fid_set *s, lw_device *dev, const lw_observer *obs, double *seconds);

/* ---- fid_read.c: .npy, .npz, .safetensors ---- */
/* name: of one array or set of statistics in the file; NULL: what there is. */
int lw_fid_read(const char *path, const char *name, fid_set *s);

#endif
