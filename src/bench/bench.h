/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench: how long the work that matters takes on this machine. A case is prepared once, run for
 * warm-up, then timed; every sample is kept. Beside each speed stand the case's error against the
 * reference kernels and its share of what this machine was measured to be able to do.
 *
 * Read: bench.c (the list of suites, the loop over cases), bench_time.c (timing), bench_workload.h (a
 * graph made ready), the suites (bench_unet.c, ...), bench_judge.c (two benches compared),
 * bench_json.c and bench_table.c (what is written); bench_profile.h (one network, step by step).
 */
#ifndef LW_BENCH_H
#define LW_BENCH_H

#include "bench/bench_doctor.h"
#include "bench/bench_tune.h"
#include "bench/ladder/bench_ladder.h"
#include "bench/profile/bench_profile.h"
#include "formats/formats.h"
#include "session/session_machine.h"
#include "base/observer.h"

typedef struct lw_bench_config {
    const char *suite; /* one of lw_bench_suites; NULL: all */
    int threads;
    int32_t conv;               /* lw_conv_mode */
    int32_t batch[16], n_batch; /* of unet and train; none: the suite's own */
    int32_t size[16], n_size;   /* of resolution, pixels; none: its own */
    bool large;                 /* the U-Net of 210M parameters */
    double dropout;             /* of training steps */
    const char *filter;         /* only cases whose "suite.name" contains this; NULL: all */
    int32_t warm_up, samples;   /* untimed and timed runs of each case */
    double seconds;             /* no further samples of a case after this long; 0: no limit */
    bool reference;             /* measure errors against the reference kernels */
    bool profile;               /* time per kind of op, from further runs */
    bool list;                  /* only name the cases */
    double memory_limit;        /* bytes a case may take; 0: the machine's */
    const char *model;          /* startup: model folder; NULL: the U-Net, random weights.
                                     stream: the network; NULL: a small and a middle one */
    const char *latents; /* the autoencoder of a model of stream in latents, and of resolution's
                            U-Net; NULL: in pixels */
    int32_t window;      /* of stream: lw_network.window */
    int32_t scale[16],
        n_scale;       /* of stream: widths, of each of its networks; none: as model says */
    int32_t precision; /* of stream, of sampling, and of latents: lw_num of the products */
} lw_bench_config;

/* What one kind of op took in a run. */
typedef struct lw_bench_part {
    char what[64]; /* "conv2d", "group_norm", "clip, adamw, ema" */
    int32_t steps;
    double ms, flops, bytes;
} lw_bench_part;

typedef struct lw_bench_case {
    char suite[16], name[64];
    char method[24]; /* "f32": how it was computed */
    int32_t batch;   /* pictures a run makes or trains on; 0: not a matter of pictures */
    double *ms;      /* every sample, in the order taken */
    int32_t n, cap;
    double cpu_ms;       /* processor time of one run, all threads */
    double flops, bytes; /* of one run, by the ops' cost rules */
    double peak_share;   /* of the fastest this machine could be: 0 .. 1; NAN: not known */
    bool memory_bound;   /* that limit is memory's, not arithmetic's */
    size_t memory;       /* bytes of weights, frame and prepared data */
    double error;        /* largest difference over the reference's largest value; NAN: unknown */
    char against[24];    /* what the error is against: "ref", "avx2", "" */
    double base_ms;      /* median of the plainer way of the same work; NAN: there is none */
    char base[40];       /* that way: "plain loop", "one call per temperature" */
    int32_t evaluations; /* of a network, to make a picture; 0: not a matter of evaluations */
    double outside_ms;   /* of a run that is no evaluation: noise, moves, copies */
    int64_t parameters;  /* of the network of a frame; 0: no frame */
    int32_t side;        /* of its pictures */
    double base_cpu_ms;  /* processor time of the base, where evaluations are counted */
    double difference;   /* largest absolute difference between the two ways */
    char skipped[120];   /* why there are no samples; "" */
    lw_bench_part *part;
    int32_t n_part;
    json_t *published; /* the same in the keys of published benches; NULL: there are none */
} lw_bench_case;

typedef struct lw_bench {
    lw_bench_case *cases;
    int32_t n;
    int32_t warm_up, samples;
    json_t *machine; /* lw_machine_json, and "peak" */
} lw_bench;

/* LW_EUSAGE: no such suite, no such case. */
int lw_job_bench(const lw_bench_config *config, const lw_observer *obs, lw_bench *out);
void lw_bench_clear(lw_bench *b); /* accepts a zeroed struct */

/* One process start of the startup suite, in the process that was started: opens the model folder,
 * compiles, makes one result. `since`: lw_now() of the parent when it started this process. New
 * reference: {"process_ms", "load_ms", "compile_ms", "first_ms", "hash"}. */
int lw_bench_startup_child(const char *model, int threads, int32_t conv, double since,
                           json_t **out);

/* ---- what samples say ------------------------------------------------------------------------ */

typedef enum lw_bench_verdict {
    LW_BENCH_NOISE,
    LW_BENCH_BETTER,
    LW_BENCH_WORSE,
    LW_BENCH_NEW, /* the base lacks it */
    LW_BENCH_GONE /* only the base has it */
} lw_bench_verdict;
const char *lw_bench_verdict_name(lw_bench_verdict v); /* "noise", "better", "regression", .. */
/* Worse (better) when both minimum and median moved by more than max(3 %, 3 MAD), where MAD is the
 * larger of the two. */
lw_bench_verdict lw_bench_judge(const lw_summary *base, const lw_summary *now);

/* ---- two benches ----------------------------------------------------------------------------- */

typedef struct lw_bench_change {
    char suite[16], name[64];
    lw_summary base, now;
    lw_bench_verdict verdict;
} lw_bench_change;
/* 0, or LW_EUSAGE naming what differs: processor, CPUs, threads, instruction set. */
int lw_bench_same_machine(const lw_bench *base, const lw_bench *now);
/* The device that its cases ran on: "cpu", "cuda:0". */
const char *lw_bench_device(const lw_bench *b);
/* Heap array (lw_free) of *n: the cases of `now` in order; with `gone` also those only the base
 * has. Cases without samples are left out. */
int lw_bench_compare(const lw_bench *base, const lw_bench *now, bool gone, lw_bench_change **out,
                     int32_t *n);

/* ---- files and text -------------------------------------------------------------------------- */

/* {"machine", "n_warmup", "n_iters", "results": [{"suite", "name", "method", "batch_size",
 * "mean_ms", .., "samples_ms"}]}; docs/benchmarks.md says what each is. New reference. */
json_t *lw_bench_to_json(const lw_bench *b);
/* A file that held lw_bench_to_json. LW_EFORMAT names what is missing. */
int lw_bench_load(const char *path, lw_bench *out);
/* Aligned text, one table for each suite; appended. */
int lw_bench_text(const lw_bench *b, lw_str *out);
int lw_bench_changes_text(const lw_bench_change *c, int32_t n, lw_str *out);
/* method,batch_size,mean_ms,p50_ms,p95_ms,p99_ms,std_ms,per_image_ms,throughput_imgs and more. */
int lw_bench_csv(const lw_bench *b, lw_str *out);

#endif
