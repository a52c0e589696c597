/* SPDX-License-Identifier: Apache-2.0 */
/* Private: what a verdict needs of one network, from features alone. */
#ifndef LW_SESSION_VERDICT_NETWORK_H
#define LW_SESSION_VERDICT_NETWORK_H

#include "data/data.h"
#include "session/session_verdict.h"

/* Honest sets: ten kinds of junk in two shares; draws of undamaged pictures. */
enum {
    VERDICT_KINDS = 10, /* of junk */
    VERDICT_SHARES = 2,
    VERDICT_DAMAGED = VERDICT_SHARES * VERDICT_KINDS,
    VERDICT_WHOLE = 8,
    VERDICT_SLICED_ROWS = 2000 /* of the reference, in sliced distances */
};

typedef struct verdict_sizes {
    int64_t reference, unseen, honest; /* pictures; of each honest set */
} verdict_sizes;
verdict_sizes lw_verdict_sizes_of(int64_t reference, int64_t unseen);
/* Reference, unseen, and `honest` of each kind of junk, one behind the other. */
int64_t lw_verdict_picture_count(const verdict_sizes *s);
int lw_verdict_pictures(const lw_verdict_real *real, const verdict_sizes *s, uint8_t **out);

typedef struct verdict_network {
    lw_pool *pool;
    const char *name;
    int32_t dim;
    verdict_sizes sizes;
    lw_verdict_opts o;
    float *features; /* of lw_verdict_pictures, [count][dim] */
    lw_stats *reference;
    lw_frechet_loss *loss;
    int64_t floor_n; /* the floor last asked for */
    double floor[2];
} verdict_network;

/* Takes *features. */
int lw_verdict_network_open(lw_pool *pool, const char *name, int32_t dim, const verdict_sizes *s,
                            const lw_verdict_opts *o, float **features, verdict_network *out);
void lw_verdict_network_clear(verdict_network *n);
/* Distances of the first n unseen pictures (of all when there are fewer). */
int lw_verdict_floor(verdict_network *n, int64_t rows, double *frechet, double *sliced);
/* Sets frechet and sliced of v, and replicates of both. */
int lw_verdict_distances(const verdict_network *n, const float *f, int64_t rows,
                         const lw_resampling *how, lw_verdict_value *v, double *frechet,
                         double *sliced);
/* Levels of the honest sets of real: damaged[i * stride], whole[i * stride]. */
int lw_verdict_honest(verdict_network *n, const lw_verdict_real *real, int32_t stride,
                      double *damaged, double *whole);
/* Adds the seconds that all of this takes, measured on drawn features. */
int lw_verdict_time(lw_pool *pool, int32_t dim, const lw_verdict_real *real,
                    const lw_verdict_opts *o, const lw_verdict_set *rows, int32_t n_rows,
                    double *seconds);

#endif
