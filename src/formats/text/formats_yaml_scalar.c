/* SPDX-License-Identifier: Apache-2.0 */
/* YAML 1.2 core schema: which plain scalars are null, booleans, integers or reals. */
#include "formats/text/formats_yaml_scalar.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_one_of(const char *s, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(s, words[i]) == 0)
            return true;
    return false;
}
#define IS(s, ...)                                   \
    is_one_of(s, (const char *const[]){__VA_ARGS__}, \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static size_t digits(const char *s)
{
    return strspn(s, "0123456789");
}

/* [-+]? [0-9]+ | 0o [0-7]+ | 0x [0-9a-fA-F]+ ; *base for strtoll, *skip the length of the 0o
 * prefix. */
static bool is_integer(const char *s, int *base, size_t *skip)
{
    *base = 10;
    *skip = 0;
    if (s[0] == '0' && (s[1] == 'o' || s[1] == 'x')) {
        const char *set = s[1] == 'o' ? "01234567" : "0123456789abcdefABCDEF";
        *base = s[1] == 'o' ? 8 : 16;
        *skip = 2;
        return s[2] && s[2 + strspn(s + 2, set)] == 0;
    }
    if (*s == '-' || *s == '+')
        s++;
    return *s && s[digits(s)] == 0;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_real(const char *s)
{
    if (*s == '-' || *s == '+')
        s++;
    size_t whole = digits(s), frac = 0;
    s += whole;
    if (*s == '.') {
        frac = digits(s + 1);
        s += 1 + frac;
    }
    if (!whole && !frac)
        return false;
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '-' || *s == '+')
            s++;
        size_t n = digits(s);
        if (!n)
            return false;
        s += n;
    }
    return *s == 0;
}

json_t *lw_yaml_scalar(const char *s, size_t n, const char **why)
{
    int base;
    size_t skip;
    *why = NULL;
    if (strlen(s) != n) {
        *why = "a NUL byte inside a value";
        return NULL;
    }
    if (IS(s, "", "~", "null", "Null", "NULL"))
        return json_null();
    if (IS(s, "true", "True", "TRUE"))
        return json_true();
    if (IS(s, "false", "False", "FALSE"))
        return json_false();
    const char *unsigned_part = s + (*s == '-' || *s == '+');
    if (IS(unsigned_part, ".inf", ".Inf", ".INF") || IS(s, ".nan", ".NaN", ".NAN")) {
        *why = "infinity and NaN are not supported as values";
        return NULL;
    }
    errno = 0;
    if (is_integer(s, &base, &skip)) {
        long long v = strtoll(s + skip, NULL, base);
        if (errno == ERANGE) {
            *why = "an integer that does not fit in 64 bits";
            return NULL;
        }
        return json_integer(v);
    }
    if (is_real(s)) {
        double v = strtod(s, NULL);
        if (!isfinite(v)) {
            *why = "a number too large for a double";
            return NULL;
        }
        return json_real(v);
    }
    json_t *v = json_stringn(s, n);
    if (!v)
        *why = "text that is not UTF-8";
    return v;
}
