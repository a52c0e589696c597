/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that markup nests: every element closed in order, attributes quoted and given once, no
 * stray '<'. */
#ifndef LW_TEST_REPORT_MARKUP_H
#define LW_TEST_REPORT_MARKUP_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Attributes from s up to '>': 1 when self-closing, 0 when not, -1 when malformed. */
static inline int markup_attributes(const char **s)
{
    char seen[12][24];
    int n = 0;
    for (;;) {
        *s += strspn(*s, " \n");
        if (**s == '>')
            return 0;
        if (strncmp(*s, "/>", 2) == 0) {
            (*s)++;
            return 1;
        }
        size_t name = strcspn(*s, "=<> \"");
        if (name == 0 || name >= 24 || n == 12 || strncmp(*s + name, "=\"", 2) != 0)
            return -1;
        memcpy(seen[n], *s, name);
        seen[n][name] = '\0';
        for (int k = 0; k < n; k++)
            if (strcmp(seen[k], seen[n]) == 0)
                return -1;
        n++;
        const char *end = strchr(*s + name + 2, '"');
        if (!end || memchr(*s + name + 2, '<', (size_t)(end - *s) - name - 2))
            return -1;
        *s = end + 1;
    }
}

/* NULL when s nests, else the place that does not. */
static inline const char *markup_error(const char *s)
{
    const char *stack[64];
    size_t lengths[64], depth = 0;
    while ((s = strchr(s, '<'))) {
        const char *at = s++;
        if (strncmp(s, "!DOCTYPE html>", 14) == 0)
            continue;
        bool closing = *s == '/';
        s += closing;
        size_t n = strcspn(s, " />\n");
        const char *name = s;
        s += n;
        if (closing) {
            if (*s != '>' || depth == 0 || lengths[depth - 1] != n ||
                strncmp(stack[depth - 1], name, n))
                return at;
            depth--;
            continue;
        }
        int self = markup_attributes(&s);
        bool nothing_inside = self == 1 || (n == 4 && !strncmp(name, "meta", 4)) ||
                              (n == 3 && !strncmp(name, "img", 3));
        if (self < 0 || n == 0 || depth == 64)
            return at;
        if (nothing_inside)
            continue;
        stack[depth] = name;
        lengths[depth++] = n;
    }
    return depth ? stack[depth - 1] : NULL;
}

#define assert_markup(s)                                           \
    do {                                                           \
        const char *bad_ = markup_error(s);                        \
        if (bad_) {                                                \
            print_error("markup does not nest at: %.80s\n", bad_); \
            fail();                                                \
        }                                                          \
    } while (0)

#endif
