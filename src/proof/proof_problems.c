/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of problems with a bounded number of texts. */
#include "proof/proof_problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { KEPT = 50 };

size_t lw_utf8_size(const unsigned char *s, size_t n)
{
    size_t size = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (size == 0 || size > n || s[0] > 0xf4)
        return 0;
    for (size_t i = 1; i < size; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return size;
}

/* Lines are quoted in messages: what no terminal and no JSON can show becomes a question mark. */
static void make_printable(char *text)
{
    size_t n = strlen(text), size;
    for (size_t i = 0; i < n; i += size) {
        size = lw_utf8_size((const unsigned char *)text + i, n - i);
        if (size == 0 || (unsigned char)text[i] < ' ') {
            text[i] = '?';
            size = 1;
        }
    }
}

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
    make_printable(why);
    if (line > 0)
        lw_str_addf(&list->text, "%s:%lld: %s\n", path, (long long)line, why);
    else
        lw_str_addf(&list->text, "%s: %s\n", path, why);
}

int lw_problems_fail(const lw_problems *p)
{
    if (p->errors.n == 0)
        return 0;
    const char *text = lw_str_c(&p->errors.text);
    int first = (int)strcspn(text, "\n");
    if (p->errors.n == 1)
        return lw_fail(LW_EFORMAT, "%.*s", first, text);
    return lw_fail(LW_EFORMAT, "%.*s (and %lld more; `leeway prove check` lists them)", first, text,
                   (long long)p->errors.n - 1);
}

void lw_problems_clear(lw_problems *p)
{
    lw_str_clear(&p->errors.text);
    lw_str_clear(&p->warnings.text);
    *p = (lw_problems){0};
}
