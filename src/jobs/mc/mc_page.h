/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to this folder: the page of an output directory, made of nothing but the files in it.
 *
 *   OUTPUT/EXPERIMENT/MODEL/.. ──► mc_shown, one per model ──► parts, each left out where its file is
 *                                                              not there ──► OUTPUT/report.html
 */
#ifndef LW_MC_PAGE_H
#define LW_MC_PAGE_H

#include "base/base.h"
#include "eval/eval.h"
#include "formats/formats.h"
#include "jobs/mc/mc_job.h"
#include "report/report.h"

/* A picture's place in the list of a model's pictures, by name. */
typedef struct mc_named {
    char *name;
    int64_t at;
} mc_named;

/* What the files say of one model. NULL: no such file. */
typedef struct mc_shown {
    char *folder;   /* its name in files */
    char label[64]; /* the same for people */
    json_t *exp0, *exp0b, *exp4, *exp5, *validity, *errors, *laplace, *run;
    lw_str apart; /* names of those that another noise gave, which are left out */
    int32_t passes[LW_MC_PASSES], n_passes;
    int32_t trials;
    int64_t n;                    /* pictures */
    mc_named *sorted;             /* [n] by name */
    const char **name;            /* [n] in the order of the scores; borrowed from sorted */
    double *mean[LW_PASS_SCORES]; /* [n] over trials, of the most passes; NULL: not in the file */
    double *trace[LW_MC_PASSES];  /* [n] trace_pre of each T */
    lw_npz pictures;              /* pixels, row of the most and least certain ones */
} mc_shown;

typedef struct mc_page {
    const char *dir;
    mc_shown *model; /* those of exp0 first */
    size_t n, all;   /* of exp0; with those that other experiments alone had */
    lw_html *html;
} mc_page;

/* ---- mc_page_read.c ---- */
/* LW_EUSAGE: nothing in the directory is of leeway mc; LW_EFORMAT: a file of it is damaged. */
int lw_mc_page_read(const char *dir, mc_page *p);
void lw_mc_page_clear(mc_page *p);
/* A number of nested objects, by its keys; NaN: it is not there. */
#define MC_NUMBER(j, ...) lw_mc_number(j, (const char *const[]){__VA_ARGS__, NULL})
double lw_mc_number(const json_t *j, const char *const *keys);
/* [low, high], if it is that; of "interval" of j. */
bool lw_mc_pair(const json_t *a, double out[2]);
bool lw_mc_interval(const json_t *j, double out[2]);
/* Number i of an array; NaN. */
double lw_mc_entry(const json_t *a, size_t i);
const char *lw_mc_text(const json_t *j, const char *key, const char *otherwise);
/* The reliability of a score at T number t, by its name in exp0_summary.json; NULL: none. */
const json_t *lw_mc_reliability_at(const mc_shown *m, int32_t t, const char *score);

/* ---- parts, in the order of the page ---- */
/* plain: the same as lines of text, appended. */
void lw_mc_page_answer(mc_page *p, lw_str *plain); /* mc_page_top.c */
void lw_mc_page_facts(mc_page *p);
void lw_mc_page_costs(mc_page *p);
void lw_mc_page_meaning(mc_page *p);
void lw_mc_page_again(mc_page *p);
void lw_mc_page_reliability(mc_page *p); /* mc_page_scores.c */
int lw_mc_page_scores(mc_page *p);
void lw_mc_page_reliability_cells(const json_t *r, double mean, lw_table *t);
void lw_mc_page_correlation_cell(double rho, lw_table *t);
void lw_mc_page_geometry(mc_page *p); /* mc_page_geometry.c */
void lw_mc_page_angle(mc_page *p);
int lw_mc_page_pictures(mc_page *p);  /* mc_sheets.c */
void lw_mc_page_validity(mc_page *p); /* mc_page_worth.c */
void lw_mc_page_errors(mc_page *p);
int lw_mc_page_one_pass(mc_page *p);
void lw_mc_page_ambiguity(mc_page *p);

#endif
