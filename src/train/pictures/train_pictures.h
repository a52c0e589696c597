/* SPDX-License-Identifier: Apache-2.0 */
/* What all trainers on pictures share: device, data, store, the step's plan, and leaves of pictures in order. */
#ifndef LW_TRAIN_PICTURES_H
#define LW_TRAIN_PICTURES_H

#include "data/data.h"
#include "session/session_latents.h"
#include "train/train_loop.h"

/* Pairs for networks conditioned on the frames of a clip. */
typedef struct lw_clip_config {
    const char *condition; /* lw_condition_parse; NULL: none, and nothing else counts */
    const char *degrade;   /* lw_degradation_parse; NULL: not */
    double history_noise, history_blur, history_drop; /* lw_clip_opts: noise, blur, drop */
} lw_clip_config;

/* Real pictures as published grouped trainers are told of them: another way to say --data. */
#define LW_REAL_SOURCES "none|synthetic_dataset|imagefolder|webdataset|tensor_file|tensor_shards"
typedef struct lw_real_config {
    int32_t source;                                         /* of these */
    const char *imagefolder, *webdataset, *tensor, *shards; /* its path */
    int32_t workers;      /* threads that decode; 0: all that compute */
    int32_t prefetch;     /* batches ahead for each of them; 0: as usual */
    bool ordered;         /* rows in the order of the data */
    bool persistent, pin; /* without effect here */
} lw_real_config;

typedef struct lw_picture_config {
    int64_t limit;        /* rows of the training split used; 0: all */
    int32_t image_size;   /* 0: the data's own */
    int32_t channels;     /* 0: 3 */
    int32_t on_error;     /* lw_on_error */
    const char *latents;  /* an autoencoder (lw_autoencoder_open); NULL: pixels */
    bool flip;            /* mirrored copies, where the data allows them */
    int32_t crop_padding; /* pictures are shifted by up to so many pixels */
    lw_clip_config clip;
    lw_real_config real;
} lw_picture_config;

typedef struct lw_picture_run {
    const lw_train_config *c;
    const lw_picture_config *pictures;
    const lw_observer *obs;
    lw_leaves leaves;
    lw_device *dev;
    lw_pool *decoders; /* of --real-num-workers; NULL: those of the device */
    lw_dataset
        *data; /* what is learnt: pictures, or their latents, read after lw_picture_run_prepare */
    lw_dataset *decoded; /* of latents the pictures; else NULL */
    lw_latents *latents; /* NULL: none */
    lw_clip_opts clip;   /* of clips */
    lw_clips *clips;     /* NULL: without a condition */
    lw_store *store;
    json_t *model, *files, *extra; /* lw_train_job */
    const char *weights;
    const lw_naming *namings;
    lw_plan *plan;
    lw_exec *exec;
    lw_loader *loader;
    int64_t next; /* leaf that the loader gives next */
} lw_picture_run;

/* The data spec that `data` or the source says, NULL only where neither does. LW_EUSAGE: options that do not go
 * together. */
int lw_real_spec(const lw_real_config *c, const char *data, lw_str *out);
/* LW_EUSAGE: options that do not go together. */
int lw_clip_check(const lw_picture_config *c);
/* The pictures, whatever is learnt. */
static inline const lw_dataset *lw_picture_run_pictures(const lw_picture_run *r)
{
    return r->decoded ? r->decoded : r->data;
}
/* Opens device, data (obs may stop its decoding) and an empty store. Cleared in any case. */
int lw_picture_run_open(lw_picture_run *r);
void lw_picture_run_clear(lw_picture_run *r);
/* With data, store, model and leaves there: compiles the step's graph, unless its plan is there, and fills in what it is
 * of the job. */
int lw_picture_run_job(lw_picture_run *r, const lw_graph *g, lw_train_job *job);
/* A job's `restore`: LW_EUSAGE where the autoencoder is not the one that the run began with. */
int lw_picture_run_restore(const lw_picture_run *r, const json_t *extra);
/* In a job's `prepare`: latents are found or encoded. */
int lw_picture_run_prepare(lw_picture_run *r);
/* Held-out rows as a run learns them. */
typedef struct lw_picture_held {
    lw_dataset *data;    /* pictures, or their latents */
    lw_dataset *decoded; /* of latents the pictures; else NULL */
    lw_latents *latents; /* NULL: none */
    int64_t *drawn;      /* their order: lw_data_drawn */
} lw_picture_held;
/* Opens them, with r's options; latents are found or encoded. Cleared in any case. */
int lw_picture_held_open(const lw_picture_run *r, lw_picture_held *out);
void lw_picture_held_clear(lw_picture_held *h);
static inline const lw_dataset *lw_picture_held_pictures(const lw_picture_held *h)
{
    return h->decoded ? h->decoded : h->data;
}
/* The first n samples of a leaf, which all leaves have; valid until the next call. */
int lw_picture_run_next(lw_picture_run *r, int64_t leaf, int64_t n, const lw_batch **out);
/* The same of clips, once leaves are known: samples of `unit` go together, and only the first has frames. */
int lw_picture_run_clips(lw_picture_run *r, int64_t unit);
/* Gives the step's plan a leaf of pictures, with labels where it takes them; of clips clean ones as
 * images, and condition. */
int lw_picture_run_feed(lw_picture_run *r, int64_t leaf, bool labels);

#endif
