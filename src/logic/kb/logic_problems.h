/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with a dataset, line by line: the first few in words, all of them counted. */
#ifndef LW_LOGIC_PROBLEMS_H
#define LW_LOGIC_PROBLEMS_H

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

typedef struct lw_problem_list {
    lw_str text; /* "file:line: reason\n" each */
    int64_t n, kept;
} lw_problem_list;

/* errors: the dataset cannot be used; warnings: it can, but look. {0} is empty. */
typedef struct lw_problems {
    lw_problem_list errors, warnings;
} lw_problems;

/* line 0: the whole file. */
void lw_problem_add(lw_problem_list *list, const char *path, int64_t line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* 0 without errors; else LW_EFORMAT with the first of them and how many more there are. */
int lw_problems_fail(const lw_problems *p);
void lw_problems_clear(lw_problems *p);

#endif
