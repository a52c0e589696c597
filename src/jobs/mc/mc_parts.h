/* SPDX-License-Identifier: Apache-2.0 */
/* Private to this folder: one model's trials, and their files. */
#ifndef LW_MC_PARTS_H
#define LW_MC_PARTS_H

#include "base/base.h"
#include "formats/formats.h"
#include "jobs/mc/mc_job.h"

/* In the order of LW_MC_EXPERIMENTS. */
enum {
    MC_EXP0 = 1 << LW_MC_EXP0,
    MC_EXP0B = 1 << LW_MC_EXP0B,
    MC_EXP4 = 1 << LW_MC_EXP4,
    MC_EXP5 = 1 << LW_MC_EXP5,
    MC_VALIDITY = 16,
    MC_ERRORS = 32
};

typedef double mc_scores[LW_PASS_SCORES];

typedef struct mc_model {
    const lw_mc_config *c;
    const lw_observer *obs;
    lw_mc_model_result *out;
    lw_device *dev;
    int *lock;              /* of the output directory; -1: nothing is written yet */
    unsigned experiments;   /* MC_EXP0 | .. */
    const char *experiment; /* whose folder keeps trials that an interrupted call leaves */
    const char *stem;       /* NAME_T4_partial.npz: what the trials are of */
    lw_network *net;
    lw_sites sites;
    lw_noise noise;
    lw_layer_hook hook;
    lw_dataset *data;
    lw_str spec; /* of the data */
    lw_passes *passes;
    json_t *about;                   /* all that decides a bit of the scores */
    char **name;                     /* of every picture */
    int64_t n;                       /* pictures */
    int32_t dim, most;               /* the largest T */
    int32_t done;                    /* trials */
    mc_scores *scores;               /* [n_passes][trials][n] */
    lw_pass_geometry (*geometry)[2]; /* [trials][n], of the largest T; NULL: not asked for */
    double *mean, *var;              /* [n_passes][n][dim] of the trial that runs */
    struct mc_one_pass *one_pass;    /* NULL: not asked for */
    int32_t *right;                  /* [n] answers, for errors; NULL: not known */
    double *reference;               /* [n]; NULL: not asked for */
} mc_model;

static inline mc_scores *mc_at(const mc_model *m, int32_t passes, int32_t trial)
{
    return m->scores + ((int64_t)passes * m->c->trials + trial) * m->n;
}

/* Whether its trials are those whose scores, pictures and costs are written as exp0's. */
static inline bool mc_is_exp0(const mc_model *m)
{
    return lw_str_eq(m->experiment, "exp0_nested_mc");
}

/* ---- mc_model.c ---- */
int lw_mc_open(mc_model *m, const char *spec);
void lw_mc_close(mc_model *m);
/* The pictures as the network wants them, made worse before (NULL: not). */
int lw_mc_pictures(const mc_model *m, const lw_degradation *worse, lw_dataset **out);
/* Trials from m->done on; each is kept as soon as it is done. */
int lw_mc_trials(mc_model *m);
/* Seconds of a run of so many rows, when everything is warm. */
int lw_mc_time_rows(mc_model *m, int32_t rows, double *seconds);
/* ---- mc_forecast.c ---- */
/* LW_ENOMEM names what is needed, and what of; sets out->arrays and out->need. */
int lw_mc_check_memory(mc_model *m);
/* How long all of it will take; opened: the seconds that have gone already. */
int lw_mc_forecast(mc_model *m, double opened);
/* ---- mc_model.c ---- */
/* Pictures as m's network takes them; which rows and how many is the caller's. */
lw_data_opts lw_mc_data_opts(const mc_model *m);
/* A folder may be named without a word before it. */
int lw_mc_data_open(const char *spec, const lw_data_opts *o, lw_dataset **out);
/* lw_passes_fill of a model's pictures. */
int lw_mc_fill(void *model, int64_t first, int64_t n, float *dst);

/* ---- mc_laplace.c: --one-pass laplace ---- */

/* Finds the last layer, opens the calibration pictures; in lw_mc_open. */
int lw_mc_one_pass_open(mc_model *m);
void lw_mc_one_pass_close(struct mc_one_pass **pp);
/* Scores [n] of m's pictures, also of a copy of m with others. The first call sweeps the calibration
 * pictures. Only where m->one_pass is there. */
int lw_mc_one_pass(const mc_model *m, double (*scores)[LW_LAPLACE_SCORES]);
/* Scores of m's own pictures into OUTPUT/one_pass/MODEL. */
int lw_mc_one_pass_write(mc_model *m);

/* ---- mc_state.c: trials that an interrupted call left ---- */
int lw_mc_state_read(mc_model *m);
int lw_mc_state_write(const mc_model *m);
void lw_mc_state_remove(const mc_model *m);
/* OUTPUT/EXPERIMENT/MODEL/NAME into s. */
const char *lw_mc_path(const mc_model *m, const char *experiment, bool by_model, const char *name,
                       lw_str *s);

/* ---- mc_files.c ---- */
int lw_mc_write(mc_model *m);
json_t *lw_mc_reliability_json(const lw_reliability *r);
/* exp0_progress_T{T}.json: trials that are done, and whether they agree so far. */
int lw_mc_progress(const mc_model *m);
/* What every summary begins with. */
json_t *lw_mc_summary_json(const mc_model *m, const char *experiment);
int lw_mc_add_paths(const mc_model *m, lw_npz *z);
/* Score s of T number p as f32 [trials][n], of the first trials. */
int lw_mc_add_score(const mc_model *m, lw_npz *z, const char *name, int32_t p, lw_pass_score s,
                    int32_t trials);
/* f64 [n] */
int lw_mc_add_f64(const mc_model *m, lw_npz *z, const char *name, const double *values);
/* Into OUTPUT/EXPERIMENT/MODEL/NAME, or without MODEL. */
int lw_mc_save(const mc_model *m, const char *experiment, bool by_model, const char *name,
               const lw_npz *z);
int lw_mc_save_json(const mc_model *m, const char *experiment, bool by_model, const char *name,
                    const json_t *j);
json_t *lw_mc_interval_json(lw_interval v);

/* ---- mc_overall.c: the models of a round beside each other ---- */
int lw_mc_write_overall(const lw_mc_config *c, const lw_mc_model_result *r, unsigned experiments,
                        bool exp0);

/* ---- mc_validity.c: does a score rise when a picture gets worse? ---- */
/* Scores by number: those of passes, behind them those of one pass where it was asked for. */
int32_t lw_mc_score_count(const mc_model *m);
const char *lw_mc_score_name(int32_t score);
/* Of the largest T, means over trials, and of one pass: [lw_mc_score_count][n]. */
int lw_mc_means(const mc_model *m, double *out);
int lw_mc_validity(mc_model *m);

/* ---- mc_plain.c: the network without its noise ---- */
/* One of its outputs, of all pictures: [n][width], heap. */
int lw_mc_plain(mc_model *m, const char *output, float **out, int32_t *width);
/* The output that is right for each picture: by --class-map, or its label where the data has as many
 * classes as there are outputs; else *have is false. */
int lw_mc_labels(const mc_model *m, int32_t outputs, int32_t *want, bool *have);

/* ---- mc_errors.c: does a score know anything? ---- */
/* Reads what the user gave, into m->right and m->reference, before the passes. */
int lw_mc_errors_open(mc_model *m);
int lw_mc_errors(mc_model *m);

/* ---- mc_zero_shot.c: exp5 ---- */
/* --text-embeddings, of vectors as wide as dim numbers of the model. */
typedef struct mc_texts {
    lw_zero_shot z;
    double *text;
    int32_t in_file;   /* templates */
    const char *scale; /* where it is from */
    bool sigmoid;      /* the model was trained by one for each text */
} mc_texts;
int lw_mc_texts_open(const mc_model *m, int32_t dim, mc_texts *t);
void lw_mc_texts_clear(mc_texts *t);
int lw_mc_zero_shot_check(const mc_model *m);
int lw_mc_zero_shot(mc_model *m);

/* ---- mc_arrays.c: what others made ---- */
/* An array of one to three dimensions as f64 (heap): of .npy; of .npz, safetensors and torch's files the
 * one called `word`, else the only one. LW_EFORMAT: there is none, or a number is not finite. */
int lw_mc_read_array(const char *path, const char *word, double **out, int *rank, int64_t shape[3]);
/* A number beside the weights in the model's file ("logit_scale"); *have: there is one. */
int lw_mc_model_scalar(const lw_network *n, const char *name, double *out, bool *have);

/* ---- mc_sheets.c: the most and least certain pictures ---- */
int lw_mc_sheets_write(const mc_model *m);

/* ---- mc_record.c ---- */
int lw_mc_record_write(const mc_model *m);
void lw_mc_stored_dropout(const lw_network *n, char *out, size_t size);

#endif
