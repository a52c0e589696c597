/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   toy_graph     points, perceptron and field as graphs
 *   toy_train     one training
 *   toy_measure   what its points are worth
 *   toy_suite     all trainings, their table
 *   toy_page      pictures and page
 */
#ifndef LW_TOY_PARTS_H
#define LW_TOY_PARTS_H

#include "jobs/toy/toy_job.h"
#include "session/session.h"

typedef enum lw_toy_points {
    LW_TOY_TWO_BLOBS,
    LW_TOY_SWISS_ROLL,
    LW_TOY_CHECKERBOARD,
    LW_TOY_DATAS
} lw_toy_points;
extern const char *const lw_toy_data_name[LW_TOY_DATAS];
#define LW_TOY_SIDE 4.0 /* all points lie in -4 .. 4, but for tails */

typedef struct lw_toy_balance {
    const char *name;
    float attraction, repulsion;
    const char *published; /* FID of the paper's ablation on ImageNet */
} lw_toy_balance;
enum { LW_TOY_BALANCES = 6 };
extern const lw_toy_balance lw_toy_balances[LW_TOY_BALANCES];

/* n points of the distribution, [n,2]; rows i64[n]: which. */
lw_val lw_toy_real(lw_graph *g, lw_toy_points data, lw_val rows);
/* Noise [n,noise] of the rows through the perceptron: [n,2]. */
lw_val lw_toy_generate(lw_builder *b, const lw_toy_config *c);
/* V [n,2] of x [n,2] against y [m,2]. */
lw_val lw_toy_field(lw_graph *g, lw_val x, lw_val y, float temperature, const lw_toy_balance *w);

/* What 2-D points are worth. All distances in the points' units. */
typedef struct lw_toy_measure {
    double sliced; /* sliced Wasserstein distance to points held out */
    double
        chance; /* the same between two sets of real points: what is left when nothing is wrong */
    double distance;            /* mean distance of a generated point to the nearest held-out one */
    double precision, coverage; /* eval.h */
    /* of two_blobs: share of generated points within three standard deviations of each centre, mean
     * distance of the centres, difference of the shares nearer to each; else NAN */
    double coverage_a, coverage_b, center_distance, mode_balance_error;
} lw_toy_measure;
/* x [n][2] generated, y and z [n][2] real. */
int lw_toy_measure_points(lw_pool *pool, lw_toy_points data, const float *x, const float *y,
                          const float *z, int64_t n, lw_toy_measure *out);

typedef struct lw_toy_run {
    const lw_toy_config *c;
    lw_device *dev;
    lw_toy_points data;
    const lw_toy_balance *balance;
    int64_t seed;
    const char *dir;
    lw_toy_measure measure;
    lw_train_result trained;
} lw_toy_run;
/* Trains one and measures what it generates, which it leaves in dir/points.npy. With train.dry_run: only
 * predicts. Goes on with what is in dir. */
int lw_toy_train(lw_toy_run *r, const lw_observer *obs);
/* Real points beyond those of any training: `set` 0, 1, .. */
int lw_toy_held_out(lw_device *dev, lw_toy_points data, int32_t set, int64_t seed, int32_t n,
                    float *out);

int lw_toy_picture(const float *const *points, const char *const *titles, int n_sets, int64_t n,
                   lw_image *out);
int lw_toy_page(const lw_toy_config *c, const json_t *results, const lw_table *table,
                const lw_image *pictures, const char *path);

#endif
