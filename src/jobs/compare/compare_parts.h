/* SPDX-License-Identifier: Apache-2.0 */
/* Private to this folder: what a comparison holds while it works. */
#ifndef LW_COMPARE_PARTS_H
#define LW_COMPARE_PARTS_H

#include "jobs/compare/compare_job.h"
#include "session/session_generator.h"
#include "report/report.h"

enum {
    COMPARE_ENTRIES = 96,
    COMPARE_TIMED = LW_COMPARE_MAX_STEPS +
                    2, /* settings of another: asked for, and the headline's */
    COMPARE_CELLS = LW_COMPARE_OTHERS * COMPARE_TIMED + 1, /* timed in turns, drift's first */
    COMPARE_LATENCIES = 3 * COMPARE_CELLS,
    COMPARE_PROBE_STEPS = 10 /* evaluations that long cells are extrapolated from */
};

/* Pictures [n][side][side][3] and the classes asked for (NULL: none were). */
typedef struct compare_set {
    float *x;
    int32_t *classes;
    int64_t n;
} compare_set;

typedef enum compare_kind {
    COMPARE_REAL,
    COMPARE_DRIFT,  /* at its best */
    COMPARE_GUIDED, /* at its other strengths of guidance, from the same noise */
    COMPARE_DDPM,
    COMPARE_FLOW,
    COMPARE_DRIFT_FEW, /* the first of drift's, as many as there are of the others' */
    COMPARE_REAL_FEW,
    COMPARE_UNTRAINED,
    COMPARE_CONTROL
} compare_kind;

/* A row of the table of scores. */
typedef struct compare_entry {
    compare_kind kind;
    lw_compare_setting how;
    lw_score score;
    lw_bar_line bar[LW_BAR_COUNT];
    int failed;
    compare_set first; /* drift, guided or not, others: as many pictures as a page shows */
} compare_entry;

/* A generator of several evaluations beside drift; what was found of it is out->other and out->work
 * of the same number. */
typedef struct compare_other {
    compare_kind kind;        /* of its rows */
    const char *run;          /* SOURCE */
    const char *name, *title; /* "flow", at a beginning "Flow" */
    const char *key;          /* of files, keys, latency.csv */
    lw_compare_setting usual; /* first scored: `set` is of it */
    lw_source *source;
    compare_set set;
    lw_compare_setting timed[COMPARE_TIMED]; /* the usual one first */
    int n_timed;
} compare_other;

typedef struct comparing {
    const lw_compare_config *c;
    const lw_observer *obs;
    lw_device *dev;
    lw_source *drift;
    compare_other other[LW_COMPARE_OTHERS];
    int n_others;
    lw_scorer *scorer;
    struct compare_verdict *verdict; /* NULL: no battery (compare_verdict.h) */
    json_t *drift_yaml;              /* config.yaml of the run; NULL: a bare model folder */
    const char *data, *encoder;
    char *own_encoder;     /* heap; NULL: --encoder says it, or nobody */
    bool encoder_of_drift; /* Frechet distances in the encoder drift was trained with */
    int64_t limit;
    int32_t side, classes;
    compare_set real_set, drift_set;
    compare_entry entry[COMPARE_ENTRIES];
    int n_entries;
    lw_latency latency[COMPARE_LATENCIES];
    int n_latencies;
    lw_new_dir dir; /* of the files, until they are all there */
    lw_compare_result *out;
    double started;
    int64_t done, total; /* progress, in network evaluations or what takes as long */
} comparing;

/* compare_run.c: `part_done` more than w->done, and what goes on. */
void lw_compare_progress(const comparing *w, int64_t part_done, const char *note);

/* How a generator's pictures are made, in the precision asked for. */
lw_sampler_opts lw_compare_sampler(const comparing *w, const lw_source *from,
                                   lw_compare_setting how, int64_t batch);
/* compare_paired.c: the first pictures of all sets again in f32; fills what is called paired. */
int lw_compare_paired(comparing *w);
/* compare_work.c: fills out->work. */
void lw_compare_work_of(comparing *w);
const char *lw_compare_kept_value(char buf[64], const lw_compare_kept *k); /* "0.12 (real: 0.04)" */
#define LW_LATENCY_REFUSED "not measured: the machine was busy"
/* compare_latency.c: fills latency and speedups. */
int lw_compare_latency(comparing *w);
int64_t lw_compare_latency_units(const comparing *w); /* of its progress */
/* NULL: not timed. */
const lw_latency *lw_compare_latency_of(const comparing *w, const char *method,
                                        lw_compare_setting how, int32_t batch);
/* compare_files.c: pictures, latency.csv, summary.json. */
int lw_compare_files(comparing *w);
/* A grid with classes as rows, `columns` of each; without classes a square of columns^2. For a page
 * its gaps are transparent. */
int lw_compare_grid(const comparing *w, const compare_set *s, int32_t columns, int32_t scale,
                    bool page, lw_image *out);
/* compare_page.c */
int lw_compare_page(comparing *w);

/* The others' settings that the page shows beside drift, each once: at drift's quality, at its best,
 * the usual one. */
enum { COMPARE_SHOWN = 3 * LW_COMPARE_OTHERS };
typedef struct lw_compare_shown {
    const compare_entry *entry[COMPARE_SHOWN];
    int other[COMPARE_SHOWN];   /* whose */
    char as[COMPARE_SHOWN][64]; /* "DDPM at its best" */
    int n;
} lw_compare_shown;
lw_compare_shown lw_compare_show(const comparing *w);
bool lw_compare_is_shown(const lw_compare_shown *s, const compare_entry *e);
/* compare_top.c: what was found, in words and in one table; links to the runs' pages. */
void lw_compare_top(const comparing *w, lw_html *page);
void lw_compare_links(const comparing *w, lw_html *page);
/* compare_pictures.c: the grids; controls and what the judge refused; grids on the way. */
int lw_compare_pictures_part(const comparing *w, lw_html *page);
int lw_compare_evidence_part(const comparing *w, lw_html *page);
int lw_compare_films(const comparing *w, lw_html *page);
/* compare_curves.c: adds the section with training curves and times. */
void lw_compare_curves(const comparing *w, lw_html *page);
/* compare_tables.c */
void lw_compare_bar_table(const comparing *w, lw_html *page);
int lw_compare_score_tables(const comparing *w, lw_html *page);
void lw_compare_latency_part(const comparing *w, lw_html *page);
void lw_compare_steps_part(const comparing *w, lw_html *page);

/* compare_headline.c: the headlines from the scores; what they name is to be timed. */
void lw_compare_headline(comparing *w);
/* Of drift's rows, unguided and guided, the best becomes COMPARE_DRIFT and what out says of drift. */
void lw_compare_choose_drift(comparing *w);
/* Once all is timed: ratios, and the text. */
void lw_compare_headline_say(comparing *w);

/* The first of a kind. */
const compare_entry *lw_compare_find(const comparing *w, compare_kind kind);
/* Its row of another. */
const compare_entry *lw_compare_find_setting(const comparing *w, compare_kind kind,
                                             lw_compare_setting how);
/* Drift's or real pictures' score with n pictures. */
const lw_score *lw_compare_sized(const comparing *w, compare_kind whole, compare_kind few,
                                 int64_t n);

/* compare_settings.c: the usual sampler of another, with so many evaluations. */
lw_compare_setting lw_compare_usual(const compare_other *o, int32_t evaluations);
/* The same with guidance: two evaluations in each of so many steps. */
lw_compare_setting lw_compare_guided(const compare_other *o, int32_t steps, double scale);
bool lw_compare_same(lw_compare_setting a, lw_compare_setting b);
/* A row of another, guided, in as many steps as usual. */
bool lw_compare_is_guided(const comparing *w, const compare_entry *e);
bool lw_compare_is_flow(lw_compare_setting how);             /* by its sampler; else a DDPM */
const char *lw_compare_sampler_name(lw_compare_setting how); /* "DDIM", "ancestral", "Euler", .. */
/* "DDIM", "DDIM, guidance scale 2"; and behind a name: "", ", ancestral", ", guidance scale 2" */
const char *lw_compare_how(char buf[64], lw_compare_setting how);
const char *lw_compare_mark(char buf[64], lw_compare_setting how);
const char *lw_compare_name(char buf[64], lw_compare_setting how); /* "DDPM, 50 evaluations" */
double lw_compare_alpha(double alpha); /* of a setting: its strength of guidance, 1 without any */

/* A setting of another that is scored, with so many pictures. */
typedef struct compare_scored {
    lw_compare_setting how;
    int64_t n;
} compare_scored;
enum {
    COMPARE_SCORED_MAX = 1 + 2 * LW_COMPARE_MAX_STEPS +
                         LW_COMPARE_MAX_STRENGTHS * (1 + LW_COMPARE_MAX_STEPS)
};
/* compare_rows.c: those of another, its usual one first; how many. */
int lw_compare_scored(const comparing *w, const compare_other *o,
                      compare_scored out[COMPARE_SCORED_MAX]);
/* LW_EUSAGE: more rows than there is room for (drift, guided or not, the others, an untrained
 * generator, those planted). */
int lw_compare_check_rows(const comparing *w);
int lw_compare_forecast(comparing *w); /* fills out->verdict_seconds, of the rows to come */
/* All that will be done; what one scored picture and one control count. */
enum { COMPARE_SCORE_UNITS = 2, COMPARE_CONTROL_UNITS = 2000 };
int64_t lw_compare_units(const comparing *w);

#endif
