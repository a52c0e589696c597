/* SPDX-License-Identifier: Apache-2.0 */
/* Private to distillation: encoder_distill.c sets up and feeds, encoder_distill_measures.c measures. */
#ifndef LW_ENCODER_DISTILL_PARTS_H
#define LW_ENCODER_DISTILL_PARTS_H

#include "jobs/encoder/encoder_distill.h"
#include "jobs/encoder/encoder_neighbours.h"
#include "train/pictures/train_real_features.h"

typedef struct lw_distill_measures {
    lw_neighbours near;     /* of the student; its vectors have room for the wider of the two */
    lw_real_features *real; /* of the held-out rows */
    lw_forward *student; /* averaged weights: images and the teacher's features -> pooled, loss */
    float *loss;         /* [queries] */
    int64_t *teachers;   /* [queries][LW_NEIGHBOURS], of the teacher */
    double teacher_accuracy;
} lw_distill_measures;

struct lw_distill {
    const lw_train_encoder_config *c;
    lw_picture_run *p;
    const lw_encoder_config *net;
    lw_network *teacher;
    lw_feature_set keys;
    bool flip;
    lw_real_features *real;                                  /* of the training rows */
    int64_t *wanted;                                         /* of a leaf */
    float *mean[LW_MAX_PREDICTED], *scale[LW_MAX_PREDICTED]; /* [c] of each key */
    char note[LW_REAL_FEATURES_NOTE];
    lw_distill_measures m;
};

/* "teacher/s2.loc", "mean/s2.loc", "scale/s2.loc": inputs of the graph. */
const char *lw_distill_name(char buf[40], const char *what, const lw_feature_key *k);
int lw_distill_features(const lw_distill *d, const lw_dataset *data, bool flip,
                        lw_real_features **out);

/* train_drawn: rows of the training data; copied. */
int lw_distill_measures_open(lw_distill *d, const int64_t *train_drawn);
void lw_distill_measures_clear(lw_distill *d);

#endif
