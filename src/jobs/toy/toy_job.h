/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drifting in the plane (Deng, Li, Li, Du, He, "Generative Modeling via Drifting", 2026, Algorithm 2): a
 * perceptron learns points of a known distribution, without an encoder, in seconds; and what becomes of it
 * when attraction and repulsion are out of balance.
 */
#ifndef LW_TOY_JOB_H
#define LW_TOY_JOB_H

#include "formats/formats.h"
#include "report/report.h"
#include "train/train_loop.h"

#define LW_TOY_DATA "two_blobs|swiss_roll|checkerboard"
#define LW_TOY_ABLATIONS                                                      \
    "baseline|attraction_1_5x|repulsion_1_5x|attraction_2_0x|repulsion_2_0x|" \
    "attraction_only"

enum { LW_TOY_MAX = 16 }; /* names of a list */

typedef struct lw_toy_config {
    lw_train_config
        train; /* batch_size: points of a step, and real ones beside them; seed: the first */
    const char *data[LW_TOY_MAX], *ablation[LW_TOY_MAX]; /* none, or "all": all */
    int32_t n_data, n_ablation;
    int32_t seeds;                /* of each */
    int32_t hidden, depth, noise; /* width and number of hidden layers, numbers of the noise */
    double temperature;           /* in the points' units */
    int32_t points;               /* generated ones that are measured, beside as many held out */
} lw_toy_config;

typedef struct lw_toy_result {
    lw_table table;            /* a row for each data and ablation: means over seeds */
    json_t *json;              /* what toy_results.json holds */
    lw_str page;               /* its path */
    int64_t runs;              /* trainings asked for */
    lw_train_result predicted; /* with train.dry_run, and nothing else: of one of them */
} lw_toy_result;
void lw_toy_result_clear(lw_toy_result *r);

/*
 * Trains every combination in output_dir/DATA/ABLATION/seed_S, each with points.npy f32 [points,2], what its
 * generator makes, and writes toy_results.json, points_DATA.png and report.html. With train.resume it goes on: combinations that toy_results.json has are kept, others
 * are added. LW_EUSAGE: unknown names, or a directory with other settings; LW_ESTOPPED after saving.
 */
int lw_train_toy(const lw_toy_config *c, const lw_observer *obs, lw_toy_result *out);

#endif
