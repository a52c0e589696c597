/* SPDX-License-Identifier: Apache-2.0 */
/* Private to this folder: a set as one encoder sees it. */
#ifndef LW_FID_VIEW_H
#define LW_FID_VIEW_H

#include "jobs/fid/fid_set.h"

/* A network with a pooled feature, and what is done to a picture before its graph. */
typedef struct fid_encoder {
    lw_network *net; /* its graph resizes nothing */
    bool sized;      /* `preparation` makes pictures of one size; else they stay as they are */
    bool floats;     /* in floats, picture by picture: their sizes may differ */
    lw_preparation preparation;
    lw_contract contract; /* where sized */
} fid_encoder;

typedef struct fid_view {
    const fid_set *set;
    const fid_encoder *encoder; /* NULL: the set is features or statistics */
    lw_dataset *data;           /* pictures of data: prepared, as they are, or only their names */
    int32_t h, w;               /* of the pictures its graph takes, as many channels as it has */
    int64_t n;                  /* pictures; 0: a file of statistics does not say */
    int32_t dim;
    lw_contract contract; /* nothing said: by a file of another program */
    float *rows;          /* [n][dim]; NULL: statistics alone */
    float *logits;        /* [n][classes] */
    lw_stats *stats;      /* as the set's, or of rows */
} fid_view;

/* By spec, with the resize asked for. */
int lw_fid_encoder_open(const lw_fid_config *c, const char *spec, fid_encoder *out);
void lw_fid_encoder_clear(fid_encoder *e);
/* What can be said before a network has run: contract, size, count. e NULL: none is needed. A dry
 * run opens one row of data only where rows are prepared. */
int lw_fid_view_open(const fid_set *s, const fid_encoder *e, lw_pool *pool, const lw_observer *obs,
                     fid_view *out);
void lw_fid_view_clear(fid_view *v);
/* Rows, and logits too where they are wanted. */
int lw_fid_view_run(fid_view *v, lw_device *dev, bool logits, const lw_observer *obs);
/* Seconds that takes, by a batch of it; memory of it. */
int lw_fid_view_predict(const fid_view *v, lw_device *dev, double *seconds, uint64_t *bytes);
/* Of c->battery: A beside real pictures of B (fid_verdict.c). */
int lw_fid_verdict(const lw_fid_config *c, const fid_set set[2], lw_device *dev,
                   const lw_observer *obs, lw_fid_result *out);
/* Of c->probe: does A show the classes asked for (fid_probe.c)? */
int lw_fid_probes(const lw_fid_config *c, const fid_set set[2], lw_device *dev,
                  const lw_observer *obs, lw_fid_result *out);
/* Statistics and contract into a file. */
int lw_fid_save(const fid_view *v, const char *path);

#endif
