/* SPDX-License-Identifier: Apache-2.0 */
/* Growable strings, comparisons, edit distance, hashes. */
#include "base/str.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static bool reserve(lw_str *s, size_t more)
{
    if (s->failed)
        return false;
    if (more > SIZE_MAX - s->len - 1 || lw_grow(&s->s, &s->cap, s->len + more + 1, 1) < 0) {
        s->failed = true;
        return false;
    }
    return true;
}

void lw_str_add_n(lw_str *s, const char *bytes, size_t n)
{
    if (!reserve(s, n))
        return;
    if (n > 0)
        memcpy(s->s + s->len, bytes, n);
    s->len += n;
    s->s[s->len] = '\0';
}

void lw_str_add(lw_str *s, const char *text)
{
    lw_str_add_n(s, text, strlen(text));
}

void lw_str_addv(lw_str *s, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    if (n < 0) {
        s->failed = true;
    } else if (reserve(s, (size_t)n)) {
        vsnprintf(s->s + s->len, (size_t)n + 1, fmt, again);
        s->len += (size_t)n;
    }
    va_end(again);
}

void lw_str_addf(lw_str *s, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    lw_str_addv(s, fmt, args);
    va_end(args);
}

const char *lw_str_c(const lw_str *s)
{
    return s->s ? s->s : "";
}

void lw_str_clear(lw_str *s)
{
    lw_free(&s->s);
    *s = (lw_str){0};
}

/* NULL, as json_string_value gives for what is no text, equals nothing. */
bool lw_str_eq(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

bool lw_str_starts(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool lw_str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

const char *lw_str_word(const char **list, char sep, size_t *n)
{
    const char *word = *list;
    *n = 0;
    if (!word || !*word)
        return NULL;
    *n = strcspn(word, (const char[]){sep, '\0'});
    *list = word + *n + (word[*n] == sep);
    return word;
}

const char *lw_str_choice(const char *choices, int32_t i, size_t *n)
{
    const char *word = lw_str_word(&choices, '|', n);
    for (; word && i > 0; i--)
        word = lw_str_word(&choices, '|', n);
    return word ? word : "";
}

int32_t lw_str_index(const char *list, char sep, const char *word, size_t n)
{
    size_t k;
    int32_t i = 0;
    for (const char *at; (at = lw_str_word(&list, sep, &k)); i++)
        if (k == n && memcmp(at, word, n) == 0)
            return i;
    return -1;
}

int lw_str_distance(const char *a, const char *b)
{
    /* One row of the table, on the stack; longer names are cut, they are not typing errors. */
    enum { LONGEST = 127 };
    int row[LONGEST + 1];
    int n = (int)strnlen(a, LONGEST), m = (int)strnlen(b, LONGEST);
    for (int j = 0; j <= m; j++)
        row[j] = j;
    for (int i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int replaced = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = LW_MIN(replaced, LW_MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[m];
}

uint64_t lw_hash64(const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    /* FNV mixes its high bits poorly for short names: finish with two multiply-xorshift rounds. */
    h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdu;
    h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53u;
    return h ^ (h >> 33);
}

uint64_t lw_hash_name(const char *name)
{
    return lw_hash64(name, strlen(name));
}
