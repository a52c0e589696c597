/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at a dataset: `leeway data check` and `leeway data sheet`. */
#ifndef LW_DATA_CHECK_H
#define LW_DATA_CHECK_H

#include <stdint.h>

#include "data/data_set.h"

typedef struct lw_data_problem {
    char *path, *reason;
} lw_data_problem;

typedef struct lw_data_report {
    lw_dataset *set;       /* NULL when the data could not be opened */
    int64_t *class_counts; /* [set->classes] */
    /* per channel, of values in [-1, 1] */
    double mean[LW_MAX_CHANNELS], sd[LW_MAX_CHANNELS], min[LW_MAX_CHANNELS], max[LW_MAX_CHANNELS];
    int64_t duplicates;               /* rows equal, byte for byte, to an earlier row */
    int64_t duplicate_a, duplicate_b; /* the first such pair, rows; -1 when none */
    lw_data_problem *problems;        /* what is wrong, by file; folder: every unreadable picture */
    size_t n_problems, cap_problems;
    int64_t files_read; /* files looked at one by one (only when opening failed) */
} lw_data_report;

/*
 * Opens the split, counts and measures. Damaged data is the report's content (problems), not an
 * error: negative only for a wrong spec, missing path, no memory. Clear the report in any case.
 */
int lw_data_check(const char *spec, const lw_data_opts *opts, lw_data_report *out);
void lw_data_report_clear(lw_data_report *r);

/*
 * Rows for a contact sheet of `lines` lines of `columns` pictures: with labels, line l shows the
 * first pictures of class l (l modulo classes; -1 when the class has no more), without labels the
 * first rows.
 */
void lw_data_sheet_rows(const lw_dataset *d, int32_t lines, int32_t columns, int64_t *rows);
/* One RGB picture [*height][*width][3] of those rows, each enlarged `zoom` times, `gap` gray pixels
 * between them; lines and columns behind the last picture are left out. Of several channels that are not RGB the first
 * three, of one or two the first. Heap, lw_free. */
int lw_data_sheet(const lw_dataset *d, int32_t lines, int32_t columns, int32_t zoom, int32_t gap,
                  int32_t *width, int32_t *height, uint8_t **rgb);

#endif
