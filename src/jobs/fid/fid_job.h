/* SPDX-License-Identifier: Apache-2.0 */
/* leeway fid: distances between two sets of pictures, in the features of frozen networks. */
#ifndef LW_FID_JOB_H
#define LW_FID_JOB_H

#include "data/data.h"
#include "formats/formats.h"
#include "session/session.h"

enum { LW_FID_ENCODERS = 32, LW_FID_PROBES = LW_BATTERY_MOST };

typedef struct lw_fid_config {
    const char *set[2]; /* A and B; B may be NULL when statistics are to be written */
    int32_t split[2];   /* lw_split, of data that has splits */
    int32_t on_error;   /* lw_on_error */
    int64_t num_images; /* of each set, drawn by seed; of a generator: made. 0: all */
    int32_t image_size; /* side of pictures of data for networks that take any; 0: their own */
    const char *encoders[LW_FID_ENCODERS];
    int32_t n_encoders;
    const char *battery;  /* encoders, or folders of them, that judge A together; NULL: none */
    const char *probe;    /* likewise, whose linear probes name the classes of A; NULL: none */
    int64_t probe_images; /* of B's training part, that they are fitted on, at most */
    const char *resize;   /* a name of lw_resample_form_name; NULL: the encoder's own */
    bool precision_recall, kid, inception_score, sliced_wasserstein;
    const char *save_stats; /* of the last set; or NULL */
    bool force;             /* contracts may differ */
    bool dry_run;
    int32_t precision; /* lw_num of the encoders */
    int32_t batch;     /* pictures at a time; results do not depend on it */
    bool ema;          /* averaged weights of generators */
    int32_t sampler;   /* lw_sampler_kind, and its evaluations, of generators */
    int32_t steps;
    double alpha;          /* strength of guidance of generators that are told one; 0: 1, none */
    double guidance_scale; /* of the others: lw_sampler_opts.guidance_scale */
    uint64_t seed;
    int32_t threads, conv;
} lw_fid_config;

/* What A or B turned out to be. */
typedef struct lw_fid_side {
    const char *source;    /* as typed; NULL: not given */
    char what[160];        /* "10000 pictures of 32x32, held-out" */
    char kind[16];         /* "data", "array", "generator", "features", "statistics" */
    int64_t count;         /* of pictures; 0: a file of statistics does not say */
    double alpha;          /* strength of guidance that a generator was told; 0: none */
    double guidance_scale; /* that a generator was guided with; 0: none */
} lw_fid_side;

enum { LW_FID_NOTES = 10 };
typedef struct lw_fid_row {
    lw_contract contract;
    char distance[96]; /* what the Frechet distance is called */
    int32_t dim;
    int64_t count[2];
    bool compared; /* frechet is there: two sets */
    double frechet;
    double precision, recall;
    double kid, kid_sd;     /* kid_sd NAN: every subset is the whole of both */
    int32_t kid_rows;       /* of each of its subsets */
    double score, score_sd; /* Inception score of A */
    double sliced;
    char note[LW_FID_NOTES][256];
    int32_t n_notes;
    double seconds;
} lw_fid_row;

/* What a linear probe on one network says (eval_probe.h): shares of pictures whose class it names,
 * with their 95 % intervals (Wilson's). */
typedef struct lw_fid_probe {
    char name[48];
    double ridge;
    lw_interval made, real; /* of A; of held-out pictures of B */
} lw_fid_probe;

/* A network of --probe that does not count. */
typedef struct lw_fid_left_out {
    char name[48], why[256];
} lw_fid_left_out;

typedef struct lw_fid_result {
    lw_fid_side side[2];
    lw_fid_row row[LW_FID_ENCODERS];
    int32_t n_rows;
    char verdict[LW_VERDICT_TEXT]; /* of the battery, in lines; "": there was none */
    json_t *verdict_json; /* the object "verdict" of docs/formats.md, the caller's; or NULL */
    double verdict_seconds;
    lw_fid_probe probe[LW_FID_PROBES];
    int32_t n_probes, probes_needed;         /* more than half of them name a class together */
    lw_fid_left_out left_out[LW_FID_PROBES]; /* of --probe */
    int32_t n_left_out;
    int64_t probe_fitted, probe_images[2]; /* pictures: learnt from; of A, of B's held-out part */
    lw_interval named, named_real;         /* by that many: of A, of B */
    double seconds;                        /* predicted by a dry run */
    uint64_t memory_bytes;                 /* most of it: pictures, features, one network */
} lw_fid_result;

/*
 * One row for each encoder; with a battery its verdict on A, beside the real pictures of B; with a probe
 * the shares of A whose class its networks name; without encoders one row, of two sets that are features or statistics
 * already. LW_EUSAGE: an encoder is needed, or a measure that these sets do not have; LW_EFORMAT:
 * what is wrong with a set, or contracts that differ.
 */
int lw_job_fid(const lw_fid_config *c, const lw_observer *obs, lw_fid_result *out);

#endif
