/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile: where the time and the memory of one network go, step by step of its plan.
 *
 * Read: bench_profile.c (measuring), bench_profile_groups.c (steps put together by op or by
 * layer), bench_profile_threads.c (what more threads could give), bench_profile_text.c and
 * bench_profile_page.c (what is shown).
 */
#ifndef LW_BENCH_PROFILE_H
#define LW_BENCH_PROFILE_H

#include "formats/formats.h"
#include "session/session_machine.h"
#include "base/observer.h"

enum { LW_PROFILE_MODELS = 8 };

typedef struct lw_profile_config {
    const char *source; /* "unet" or "unet-large" (random weights), or as for lw_network_open */
    const char *method; /* whose steps are shown: a name of lw_bench_methods; NULL: "f32" */
    bool train;         /* "unet" and "unet-large": a DDPM step, without the optimiser */
    bool compare;       /* time the other methods too */
    int threads;
    int32_t conv;                              /* lw_conv_mode */
    int32_t batch, image_size;                 /* image_size 0: the network's own, or 32 */
    int32_t runs;                              /* profiled ones, after one for warm-up */
    int32_t model[LW_PROFILE_MODELS], n_model; /* numbers of threads to predict for */
} lw_profile_config;

typedef struct lw_profile_phase {
    double ms;
    int64_t tasks;
} lw_profile_phase;

typedef struct lw_profile_step {
    const char *op, *scope, *type; /* kind of op, its layer, its result: "f32[1,32,32,128]" */
    double ms, flops, bytes;
    size_t live; /* bytes of values alive while it runs */
    int64_t tasks;
    const lw_profile_phase *phase;
    int32_t n_phase;
} lw_profile_step;

/* How much longer a thread takes for the same while so many work at once: 1 where nothing is shared. 0: not
 * measured, as there are fewer CPUs. */
typedef struct lw_profile_pace {
    double products, reading; /* of weights, from where they lie: the third cache or memory */
} lw_profile_pace;

/* One way to compute the network as a whole. */
typedef struct lw_profile_method {
    const char *name;
    double ms;             /* median of the runs */
    size_t frame, derived; /* bytes of values and of prepared data */
    double error;          /* against plain f32 without fusion; NAN: not compared */
} lw_profile_method;

typedef struct lw_profile {
    lw_arena *arena; /* owns all texts and arrays */
    const char *title;
    lw_profile_step *step; /* those that ran, in order */
    int32_t n_step;
    lw_profile_method *method; /* the one shown first */
    int32_t n_method;
    size_t weights, peak_live;  /* bytes of all slabs; the most alive at once */
    double ms;                  /* sum over the steps */
    int threads;                /* that it was measured with */
    int at_once;                /* of these, on as many CPUs */
    double barrier_us, task_us; /* what a run by all CPUs takes beside its tasks; and each task */
    int32_t cpus;               /* these */
    int32_t model[LW_PROFILE_MODELS], n_model; /* of the config */
    lw_profile_pace pace[LW_PROFILE_MODELS];   /* of so many threads */
    lw_profile_pace own;                       /* of those it was measured with */
    double weights_gbytes;                     /* that these read of weights, 10^9 per second */
    double gflops, gbytes;                     /* what this machine can do, 10^9 per second */
    json_t *machine;
} lw_profile;

/* LW_EUSAGE: a method or preset that is not there; else as lw_network_open. */
int lw_job_profile(const lw_profile_config *c, const lw_observer *obs, lw_profile *out);
void lw_profile_clear(lw_profile *p); /* accepts a zeroed struct */

/*
 * What T threads could make of a step, as a model: its phases one after the other, each of n equal
 * tasks in ceil(n / T) turns, with a barrier behind it. Nothing is said of what threads share: caches,
 * memory, clock. 1 thread: the tasks one after another, no barrier.
 */
double lw_profile_model_ms(const lw_profile *p, const lw_profile_step *s, int threads);
/*
 * The same of p->model[i] threads on CPUs that share cores, clock and memory, as measured: work takes as much longer as
 * products do, and the part of it that reading its operands once would take as much longer as reading does. NAN where so
 * many threads were not measured.
 */
double lw_profile_expected_ms(const lw_profile *p, const lw_profile_step *s, int32_t i);
/* Measures the barrier, and the paces of as many threads as there are CPUs for; `peak` are the limits of p->threads. Two
 * seconds for each. */
int lw_profile_measure_threads(lw_profile *p, lw_num num, lw_isa isa, const lw_machine_peak *peak,
                               const lw_observer *obs);

/* Steps put together. */
typedef struct lw_profile_group {
    const char *name; /* borrowed from the profile */
    int32_t steps;
    double ms, flops, bytes;
} lw_profile_group;
/* By kind of op (depth 0), or by the first `depth` dotted parts of the layer's name; longest
 * first. Heap array (lw_free) of *n. */
int lw_profile_groups(const lw_profile *p, int depth, lw_profile_group **out, int32_t *n);

typedef struct lw_profile_view {
    bool layers;   /* group by layer too */
    int32_t depth; /* dotted parts of a layer's name */
    int32_t top;   /* slowest steps shown; 0: all, in order */
} lw_profile_view;
int lw_profile_text(const lw_profile *p, const lw_profile_view *v, lw_str *out);
json_t *lw_profile_to_json(const lw_profile *p, const lw_profile_view *v); /* new reference */
/* One HTML page with plots. */
int lw_profile_page(const lw_profile *p, const lw_profile_view *v, const char *path);

#endif
