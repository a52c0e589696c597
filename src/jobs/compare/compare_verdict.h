/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict of networks that no training of the table saw, on the pictures of a comparison. */
#ifndef LW_COMPARE_VERDICT_H
#define LW_COMPARE_VERDICT_H

#include "jobs/compare/compare_parts.h"

/* Opens the battery asked for, or that beside the drift run, and leaves out kin; w->verdict stays
 * NULL when there is none. */
int lw_compare_verdict_open(comparing *w);
void lw_compare_verdict_close(comparing *w);
/* One more row: n pictures [n][side][side][3] in [-1,1], rounded to bytes as in a file; classes [n]
 * or NULL. Without a battery nothing happens. LW_ENUMERIC: a picture is not finite. */
int lw_compare_verdict_add(comparing *w, const char *name, lw_verdict_part part, const float *x,
                           const int32_t *classes, int64_t n);
/* All rows through all networks. */
int lw_compare_verdict_run(comparing *w);
/* The section of the page; "verdict" of summary.json (new reference; NULL: none was given). */
void lw_compare_verdict_page(const comparing *w, lw_html *page);
json_t *lw_compare_verdict_json(const comparing *w);
/* Seconds it will take; 0 without a battery. */
int lw_compare_verdict_forecast(comparing *w, const lw_verdict_set *rows, int32_t n,
                                double *seconds);

/* What a verdict holds, for those who plant rows. */
typedef struct compare_verdict {
    lw_battery *battery;
    lw_verdict_real real;
    lw_verdict_set row[LW_VERDICT_ROWS];
    lw_copying copies[LW_VERDICT_ROWS];
    char name[LW_VERDICT_ROWS][64];
    int32_t rows;
    lw_nearness *unseen; /* [n_unseen] of unseen real pictures */
    int64_t n_unseen;
    double open_seconds, near_seconds; /* opening; of it, the n_unseen pictures' distances */
    double spent;                      /* until the networks look: opening, copies, planting */
    lw_verdict_result *result;
    lw_planted planted[LW_PLANTED];
    int32_t n_planted, planted_row, attacked; /* 0 or LW_PLANTED; row of the first; network */
} compare_verdict;

/* compare_planted.c. Two rows that the verdict must expose, made of drift's pictures and training
 * pictures; none where no verdict on cheaters is given. */
int lw_compare_planted_open(comparing *w); /* chooses the network that is attacked */
int lw_compare_planted(comparing *w);
int lw_compare_planted_forecast(comparing *w, double *seconds); /* 0: none are planted */
int lw_compare_planted_page(const comparing *w, lw_html *page);
json_t *lw_compare_planted_json(const comparing *w); /* "planted" of summary.json; new reference */
void lw_compare_planted_clear(compare_verdict *v);

#endif
