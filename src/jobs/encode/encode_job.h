/* SPDX-License-Identifier: Apache-2.0 */
/* Features of pictures: a frozen network over a data spec, row by row into one file. */
#ifndef LW_ENCODE_JOB_H
#define LW_ENCODE_JOB_H

#include "data/data.h"
#include "session/session.h"

enum { LW_ENCODE_TAPS = 16 };

typedef struct lw_encode_config {
    const char *source;   /* a run, checkpoint, model folder or weights file of an encoder */
    bool ema;             /* averaged weights of a checkpoint */
    const char *data;     /* data spec; NULL: the manifest's */
    const char *manifest; /* a JSON file that lists pictures, below the folder of data; or NULL */
    int32_t on_error;     /* lw_on_error */
    int32_t split;        /* lw_split */
    int32_t image_size;   /* 0: what the network says, else the data's own */
    int64_t limit;        /* the first so many rows only; 0: all */
    int64_t num_images;   /* so many rows, drawn without replacement and sorted; 0: all */
    const char *layers[LW_ENCODE_TAPS];
    int32_t n_layers;  /* 0: pooled, or the first there is */
    bool l2_normalize; /* rows of vectors have length 1 */
    int32_t precision; /* lw_num */
    int32_t batch;     /* rows at a time; results do not depend on it */
    uint64_t seed;
    int32_t threads, conv;
    const char *output; /* .safetensors, .npz or .npy */
    bool resume;        /* go on with what an interrupted encode left */
    bool device_change; /* though another kind of device began it */
    bool dry_run;       /* only say what would be written */
} lw_encode_config;

typedef struct lw_encode_tap {
    char name[16];
    int rank;
    int64_t shape[LW_MAX_RANK]; /* [rows, ...] */
} lw_encode_tap;

typedef struct lw_encode_result {
    char network[32];
    /* that computed the rows: "cpu", "cuda"; "cpu, cuda" where both did */
    char device[LW_DEVICE_KINDS];
    int64_t parameters, rows, done_before; /* done_before: by the encode that was interrupted */
    int64_t skipped;                       /* pictures that could not be read */
    int32_t height, width;
    char data[1024];       /* the spec as it was opened, perhaps cut */
    char preparation[256]; /* of the pictures, in words */
    lw_encode_tap tap[LW_ENCODE_TAPS];
    int32_t n_taps;
    uint64_t file_bytes, disk_bytes; /* the output; what the disk must have while it is written */
    uint64_t picture_bytes;          /* as they are decoded, in the cache of the data */
    uint64_t memory_bytes;           /* weights, frame, prepared data, a batch of results */
    double seconds;                  /* of all rows of this call; predicted by a dry run */
    double decode, prepare, forward, write; /* its parts */
} lw_encode_result;

/*
 * Writes the taps and the labels ([rows] int32_t, not into an .npy), row after row, into
 * `output`.partial, and at last renames it; OUTPUT.json says what each row is (docs/encoders.md).
 * LW_ESTOPPED: interrupted, what is done is kept for `resume`, whose file has the same bytes.
 * LW_EUSAGE: no such tap, several into an .npy, a generator, what is half done is of another call.
 */
int lw_job_encode(const lw_encode_config *c, const lw_observer *obs, lw_encode_result *out);

#endif
