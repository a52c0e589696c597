/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of problems with a bounded number of texts. */
#include "logic/kb/logic_problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { KEPT = 50 };

void lw_problem_add(lw_problem_list *list, const char *path, int64_t line, const char *fmt, ...)
{
    list->n++;
    if (list->kept >= KEPT)
        return;
    list->kept++;
    char why[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    lw_str_add_clean(&list->text, path, ""); /* one problem is one line */
    if (line > 0)
        lw_str_addf(&list->text, ":%lld", (long long)line);
    lw_str_add(&list->text, ": ");
    lw_str_add_clean(&list->text, why, "");
    lw_str_add(&list->text, "\n");
}

int lw_problems_fail(const lw_problems *p)
{
    if (p->errors.n == 0)
        return 0;
    const char *text = lw_str_c(&p->errors.text);
    int first = (int)strcspn(text, "\n");
    if (p->errors.n == 1)
        return lw_fail(LW_EFORMAT, "%.*s", first, text);
    return lw_fail(LW_EFORMAT, "%.*s (and %lld more; `leeway prove check` lists %s)", first, text,
                   (long long)p->errors.n - 1,
                   p->errors.n > p->errors.kept ? "the first ones" : "them");
}

void lw_problems_clear(lw_problems *p)
{
    lw_str_clear(&p->errors.text);
    lw_str_clear(&p->warnings.text);
    *p = (lw_problems){0};
}
