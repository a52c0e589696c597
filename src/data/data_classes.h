/* SPDX-License-Identifier: Apache-2.0 */
/* Which classes a drift step works on, and which real pictures attract each of them; samples of
 * rows. */
#ifndef LW_DATA_CLASSES_H
#define LW_DATA_CLASSES_H

#include <stdbool.h>
#include <stdint.h>

#include "data/data_set.h"

typedef enum lw_class_rule {
    LW_CLASS_DISTINCT, /* classes without replacement; more groups than classes: every class again
                        */
    LW_CLASS_FREQUENCY /* labels of rows drawn without replacement: as frequent as in the data, may
                          repeat */
} lw_class_rule;

typedef struct lw_class_opts {
    uint64_t seed;
    int32_t groups;        /* classes per step */
    int32_t positives;     /* rows per group, of the group's class */
    int32_t unconditional; /* rows per group, of any class; 0: none */
    lw_class_rule rule;
    bool ignore_labels; /* one class holding every row: unconditional training */
} lw_class_opts;

/* Rows by class, built once. Borrows the dataset. Classes without rows are never drawn. */
typedef struct lw_class_sampler lw_class_sampler;
int lw_class_sampler_new(const lw_dataset *d, const lw_class_opts *o, lw_class_sampler **out);
void lw_class_sampler_free(lw_class_sampler **pp);

/*
 * The draw of one step, a pure function of (seed, step): classes [groups]; positives
 * [groups][positives] and unconditional [groups][unconditional] are rows of the dataset. Within a
 * group rows are drawn without replacement while the class lasts, then again in the same order;
 * groups draw independently. Any output may be NULL.
 */
void lw_class_sampler_draw(const lw_class_sampler *s, int64_t step, int32_t *classes,
                           int64_t *positives, int64_t *unconditional);
/* Rows of class c, ascending, and how many (ignore_labels: class 0 has all). */
const int64_t *lw_class_sampler_rows(const lw_class_sampler *s, int32_t c, int64_t *n);

/*
 * All rows in an order that is a function of the labels alone, drawn so that any stretch of it has
 * the classes of the whole, give or take one row of each: a sample of rows to measure with. The
 * first rows, or every k-th, are no such sample: classes lie one behind the other in some data and
 * take turns in other; and chance in the numbers of classes is most of the Frechet distance between
 * plain random samples. Heap array (lw_free).
 */
int lw_data_drawn(const lw_dataset *d, int64_t **rows);

#endif
