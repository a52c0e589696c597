/* SPDX-License-Identifier: Apache-2.0 */
/* What a suite adds to a bench. Private to this folder. */
#ifndef LW_BENCH_CASE_H
#define LW_BENCH_CASE_H

#include "backend/backend.h"
#include "bench/bench.h"

typedef struct lw_bench_run {
    const lw_bench_config *config;
    const lw_observer *obs;
    lw_device *dev; /* at the level LW_ISA allows */
    lw_device *ref; /* the reference kernels, as many threads */
    lw_isa isa;
    lw_machine_peak peak;
    const char *suite; /* the one that is running */
    bool counting;     /* only naming cases: lw_bench_wants records and says no */
    int32_t total;     /* cases there will be */
    lw_bench *out;
} lw_bench_run;

/* One suite: its cases, in order. Everything that takes time stands behind lw_bench_wants. */
typedef struct lw_bench_suite {
    const char *name;
    int (*run)(lw_bench_run *r);
    bool of_cpu; /* none of it is computed by a GPU */
} lw_bench_suite;
extern const lw_bench_suite lw_bench_suites[];
extern const size_t lw_bench_n_suites;

int lw_bench_suite_kernels(lw_bench_run *r);
int lw_bench_suite_unet(lw_bench_run *r);
int lw_bench_suite_resolution(lw_bench_run *r);
int lw_bench_latents(lw_bench_run *r); /* resolution, with --latents: networks in them */
int lw_bench_suite_train(lw_bench_run *r);
int lw_bench_suite_field(lw_bench_run *r);
int lw_bench_suite_mae(lw_bench_run *r);
int lw_bench_suite_dit(lw_bench_run *r);
int lw_bench_suite_queue(lw_bench_run *r);
int lw_bench_suite_table8(lw_bench_run *r);
int lw_bench_suite_parity(lw_bench_run *r);
int lw_bench_suite_attention(lw_bench_run *r);
int lw_bench_suite_sampling(lw_bench_run *r);
int lw_bench_suite_startup(lw_bench_run *r);
int lw_bench_suite_prove(lw_bench_run *r);
int lw_bench_suite_eval(lw_bench_run *r);
int lw_bench_whole_verdict(lw_bench_run *r); /* the last case of eval */
int lw_bench_suite_mc(lw_bench_run *r);
int lw_bench_suite_stream(lw_bench_run *r);

/* One case, ready to be called. */
typedef struct lw_bench_work {
    const char *name, *method;
    int32_t batch;
    int (*call)(void *self);
    void *self;
    double flops, bytes;
    lw_num num; /* of its products: which peak it is held against */
    size_t memory;
    double warm;                 /* seconds of a run just made, for its error; 0: none */
    double error;                /* NAN: not measured */
    const char *against;         /* or NULL */
    lw_exec *exec;               /* profiled when asked for; may be NULL */
    const char *extra;           /* work outside the exec, timed by the callee: its name, or NULL */
    const double *extra_seconds; /* of the last call */
    double extra_bytes;
} lw_bench_work;

/* True when --filter lets the case through and it is to be run now. */
bool lw_bench_wants(lw_bench_run *r, const char *name);
/* A new case without samples, named and numbered. */
int lw_bench_new_case(lw_bench_run *r, const char *name, const char *method, int32_t batch,
                      lw_bench_case **out);
/* Warms up, times, profiles and stores one case. LW_ESTOPPED when asked to stop. *out (may be
 * NULL): the case, until the next one. */
int lw_bench_measure(lw_bench_run *r, const lw_bench_work *w, lw_bench_case **out);
/* Median time of a few runs of a plainer way to do c's work, which it is then compared with. */
int lw_bench_measure_base(lw_bench_run *r, lw_bench_case *c, const char *base,
                          int (*call)(void *self), void *self);
/* A case that cannot run: what the message says. */
int lw_bench_skip(lw_bench_run *r, const char *name, const char *method, int32_t batch,
                  size_t memory, const char *why);
int lw_bench_add_sample(lw_bench_case *c, double ms);
/* From c's samples, flops, bytes and memory: the least time by arithmetic and by memory, of which
 * the larger is the limit, over the median. num: type of the products. */
void lw_bench_set_share(const lw_bench_run *r, lw_num num, lw_bench_case *c);
/* Bytes a case may take. */
size_t lw_bench_memory_limit(const lw_bench_run *r);
/* Time per kind of op over a few runs, into c->part, longest first. */
int lw_bench_profile(lw_bench_case *c, const lw_bench_work *w);

/* A new directory where temporary files go, its path into *dir (empty where it failed). */
int lw_bench_temp_dir(lw_str *dir);

/* ---- methods --------------------------------------------------------------------------------- */

/* A way to compute a network. A new one is a row of bench_methods.c. */
typedef struct lw_bench_method {
    const char *name; /* "f32-unfused" */
    const char *tag;  /* in names of cases: "_unfused"; "" for plain f32 */
    lw_compile_opts opts;
    lw_num num;      /* of its products */
    bool trains;     /* has gradients */
    bool train_only; /* the same as another method where nothing is trained */
} lw_bench_method;
extern const lw_bench_method lw_bench_methods[];
extern const size_t lw_bench_n_methods;
/* Is it the one of --precision? Of suites that compute one type at a time. */
bool lw_bench_asked_for(const lw_bench_run *r, const lw_bench_method *m);

#endif
