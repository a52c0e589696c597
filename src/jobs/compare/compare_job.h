/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A drifting generator beside a DDPM, a rectified flow or both: how good and how fast each is,
 * measured the same way, on one page.
 *
 * Writes report.html (self-contained), side_by_side.png, drift_samples_1nfe.png,
 * ddpm_samples_ddim<K>.png, flow_samples_euler<K>.png, latency.csv and summary.json.
 */
#ifndef LW_COMPARE_JOB_H
#define LW_COMPARE_JOB_H

#include "train/train_config.h"
#include "jobs/compare/compare_score.h"
#include "session/session_verdict.h"

enum {
    LW_COMPARE_MAX_STEPS = 16,
    LW_COMPARE_MAX_STAGES = 8,
    LW_COMPARE_MAX_STRENGTHS = 8,
    LW_COMPARE_OTHERS = 2 /* generators of several evaluations beside drift: DDPM, flow */
};

/* A run that led here, for curves and times: "encoder" in runs/encoder. */
typedef struct lw_compare_stage {
    const char *name, *run;
} lw_compare_stage;

typedef struct lw_compare_config {
    const char *drift, *ddpm, *flow; /* SOURCE each; of the last two one may be NULL */
    const char *output_dir;
    const char *judge,
        *reader;         /* runs of a judge and of a plain classifier, or NULL; compare_score.h */
    const char *encoder; /* for Frechet distances; NULL: the reader's, the judge's, else the drift
                            run's encoder */
    const char *battery; /* specs of networks for a verdict (session_battery.h); NULL: the folder
                            `battery` beside the drift run where there is one */
    const char *planted_network; /* of the battery, by name, that a planted cheater is made against;
                                    NULL: that of the fewest parameters */
    int32_t planted_steps;       /* of its gradient; 0: no cheaters are planted */
    const char *data;            /* NULL: what the drift run was trained on */
    int64_t limit;               /* training rows the runs saw; 0: as its config.yaml says */
    int32_t on_error;            /* lw_on_error, of pictures that cannot be read */
    int64_t n_fid;               /* pictures of drift; also of the others unless n_ddpm */
    int64_t n_ddpm;              /* of the others; 0: n_fid */
    double alpha[LW_COMPARE_MAX_STRENGTHS]; /* strengths of guidance that drift is scored with
                                               besides what it is without one, alpha 1; the best of
                                               them is what the others are compared with */
    int32_t n_alpha;
    double guidance_scale[LW_COMPARE_MAX_STRENGTHS]; /* the same of the others, in as many steps as
                                                        unguided, up to the usual number, and twice
                                                        the evaluations; 1: none */
    int32_t n_guidance_scale;
    int32_t solver; /* 1: ddim_steps and score_steps are of DPM-Solver++(2M) */
    int32_t ddim_steps[LW_COMPARE_MAX_STEPS],
        n_ddim_steps; /* timed, beside what the headline names; the first is scored with n_ddpm
                         pictures */
    int32_t score_steps[LW_COMPARE_MAX_STEPS],
        n_score_steps; /* evaluations scored besides; of these DDPM's best is found */
    int32_t ancestral_steps[LW_COMPARE_MAX_STEPS], n_ancestral_steps; /* the same, ancestral */
    int32_t flow_steps[LW_COMPARE_MAX_STEPS],
        n_flow_steps;     /* evaluations of the flow, timed and scored; the last is its usual one */
    int32_t flow_sampler; /* 0: Euler, 1: Heun */
    int64_t n_slow; /* pictures where DDPM needs more evaluations than ddim_steps[0]; 0: n_ddpm */
    double latency_seconds; /* budget of one timed cell; slower cells are extrapolated from fewer
                               evaluations */
    bool use_clipped_model_output; /* else lw_sampler_opts.keep_eps, of DDPM */
    bool ema;
    int32_t precision; /* lw_num of both generators */
    int64_t seed;
    int32_t threads;
    int32_t conv;                   /* lw_conv_mode */
    bool dry_run;                   /* opens everything and says how long the verdict takes */
    const char *title;              /* of the page; NULL: a plain one */
    const char *caveat;             /* one more sentence on what this does not show, or NULL */
    const char *commands;           /* shell lines that make all of it again; NULL: none shown */
    const lw_compare_stage *stages; /* besides the two runs */
    int32_t n_stages;
} lw_compare_config;

/* The checkpoint that --keep-best kept of a run: its distance to the half of the held-out pictures
 * that it was not chosen by, and that of as many real pictures. */
typedef struct lw_compare_kept {
    char metric[16]; /* "": none was kept */
    int64_t step;
    double value, floor;
    bool compared; /* its weights are those compared */
} lw_compare_kept;

/* The time that drift and one other were trained for, as their checkpoints have it: steps alone;
 * and what was kept. */
enum { LW_EQUAL_WORK_PERCENT = 5 };
typedef struct lw_compare_work {
    const char *name; /* of the other: "DDPM" */
    lw_train_work drift, other;
    lw_compare_kept kept_drift, kept_other;
    double wall_percent,
        cpu_percent;   /* the larger is so much more than the smaller; NAN: unknown */
    bool known, equal; /* equal: both within LW_EQUAL_WORK_PERCENT */
    bool in_turns;     /* trained in turns: any load hit both alike */
} lw_compare_work;
/* Some sentences on n pairs with the same drift, for a page and for stdout; appended. */
void lw_compare_work_text(const lw_compare_work *w, int n, lw_str *out);

/* How a picture is made. */
typedef struct lw_compare_setting {
    int32_t evaluations;   /* of the network, all of them; drift: 1 */
    int32_t sampler;       /* of DDPM, flow: lw_sampler_kind; auto: DDIM */
    double alpha;          /* of drift: strength of guidance; 0: none */
    double guidance_scale; /* of the others; 0: none */
} lw_compare_setting;

/* One timed cell: a batch of pictures from noise to pixels. */
typedef struct lw_latency {
    const char *method; /* "drift", "ddpm", "flow" */
    lw_compare_setting how;
    int32_t batch, runs;
    double median, p95, p99; /* seconds per batch; NAN: not measured, the machine was busy */
    double cpu;              /* processor seconds of all threads per batch, median */
    double times_drift;      /* over drift's time in the same turn, median of turns */
    bool extrapolated;       /* from fewer evaluations */
    bool refused; /* contradicted another cell, or its processor time, twice: no numbers but NANs */
    size_t bytes; /* weights, activations, packed weights */
} lw_latency;

/* "53.1x", or that it was not measured. */
const char *lw_compare_times(char buf[32], double times);
/* Marks (`refused`), among the cells of all methods and batches, those that contradict one of fewer
 * evaluations, the extrapolated one where one of two is, and those whose times drift by the clock
 * and in processor time are more than half apart; returns how many. */
int lw_latency_contradictions(lw_latency *l, int n);
/* Well more time by the clock than the threads worked, and uneven: others used the processors. */
bool lw_latency_busy(const lw_latency *l, int threads);

/* Pictures in the precision asked for beside f32, from the same noise. */
typedef struct lw_paired {
    int64_t n;         /* pictures; 0: f32 was asked for */
    double rms, worst; /* of differences, pictures in [-1, 1] */
} lw_paired;

/* A setting with which another was scored, beside drift's pictures, as
 * many of them. */
typedef struct lw_operating_point {
    lw_compare_setting how; /* of 0 evaluations: no such point */
    lw_score score, drift;
    double floor;          /* Frechet distance of as many real pictures */
    int accepted, frechet; /* against drift: -1 worse, 0 equal, 1 better, beyond chance */
    double ratio;          /* time of one picture over drift's; NAN: not timed */
} lw_operating_point;

/* What the comparison found, each side at its best. A measure is better or worse beyond chance when
 * the 95 % interval of its difference leaves out 0; else it is equal. Another reaches drift's quality
 * where no measure is worse beyond chance nor by five points of acceptance or a fifth of the
 * distance, which few pictures would let pass. */
typedef struct lw_headline {
    lw_operating_point equal; /* the other's fewest evaluations that reach drift's quality */
    lw_operating_point best;  /* of the settings that none beats by as much, the one of
                                 the fewest evaluations */
    int points;               /* settings that were scored */
    bool by_acceptance;       /* the judge is fit: acceptance counts besides Frechet distance */
    char text[1200];          /* in words, for a page and for stdout */
} lw_headline;

/* What was found of another generator beside drift. */
typedef struct lw_compare_other {
    const char *name;    /* "DDPM", "flow" */
    int32_t evaluations; /* usual ones: the first of ddim_steps, the last of flow_steps */
    lw_score score;      /* with these */
    lw_headline headline;
    lw_paired paired;
    double speedup[3]; /* drift's, at 1, 8, 64 pictures against the usual; NAN: not measured */
} lw_compare_other;

typedef struct lw_compare_result {
    char distance[96];    /* what the Frechet distance is called: "Frechet distance, resnet56" */
    lw_score real, drift; /* drift at its best; floors have the size of its set */
    double drift_alpha;   /* strength of guidance there; 0: unguided */
    lw_score drift_few; /* drift, as many pictures as the others' sets have: comparable distances */
    double floor_few;   /* real against real with as many pictures as the others' sets */
    int n_others;
    lw_compare_other other[LW_COMPARE_OTHERS];
    lw_compare_work work[LW_COMPARE_OTHERS]; /* of drift beside each */
    double untrained_fd;
    bool judged;
    lw_judge_exam exam;
    lw_bar_line bar[LW_BAR_COUNT];
    int bar_failed;                /* lines of drift that apply and fail */
    int controls, controls_passed; /* controls that pass every line (none should) */
    bool real_passes;
    lw_paired paired_drift;
    bool busy;                     /* while latency was timed, others used the processors */
    double verdict_seconds;        /* of a dry run: forecast; 0: there is no battery */
    char verdict[LW_VERDICT_TEXT]; /* of the battery, in lines; "": there was none */
    char report[512];              /* path of report.html */
} lw_compare_result;

int lw_job_compare(const lw_compare_config *c, const lw_observer *obs, lw_compare_result *out);

#endif
