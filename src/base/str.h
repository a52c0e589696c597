/* SPDX-License-Identifier: Apache-2.0 */
/* A growable string, always NUL-terminated. lw_str s = {0}; ... lw_str_clear(&s). */
#ifndef LW_BASE_STR_H
#define LW_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lw_str {
    char *s; /* NULL while empty: read through lw_str_c */
    size_t len, cap;
    bool failed; /* an append ran out of memory; everything since was dropped */
} lw_str;

void lw_str_add(lw_str *s, const char *text);
void lw_str_add_n(lw_str *s, const char *bytes, size_t n);
void lw_str_addf(lw_str *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void lw_str_addv(lw_str *s, const char *fmt, va_list args) __attribute__((format(printf, 2, 0)));
const char *lw_str_c(const lw_str *s); /* "" when empty */
void lw_str_clear(lw_str *s);

/*
 * Text from files, names and arguments for a terminal: valid UTF-8 stays; control characters (C0,
 * DEL, C1), characters that turn or break lines and bytes that are not UTF-8 become \n, \t, \r or
 * \xNN. `keep`: characters that stay all the same, e.g. "\n". Applied twice it is as once.
 */
void lw_str_add_clean(lw_str *s, const char *text, const char *keep);
void lw_clean(char *buf, size_t size, const char *text); /* into a buffer, cut where it is full */
/* Bytes of the UTF-8 character at s (n >= 1 bytes left), 0: none begins there. Surrogates and
 * overlong forms are none (RFC 3629). */
size_t lw_utf8_size(const unsigned char *s, size_t n);
int32_t lw_utf8_length(const char *s); /* characters, not bytes */

bool lw_str_eq(const char *a, const char *b);
bool lw_str_starts(const char *s, const char *prefix);
bool lw_str_ends(const char *s, const char *suffix);
/* Edit distance (Damerau-free Levenshtein), for "did you mean". */
int lw_str_distance(const char *a, const char *b);
/* The next word of *list, whose words are parted by `sep`, *n letters of it, and *list behind it; NULL: no
 * more. An empty word may stand before another, never last; NULL is the empty list. */
const char *lw_str_word(const char **list, char sep, size_t *n);
/* Word `i` of "auto|yes|no", *n letters of it; none when there are not so many. */
const char *lw_str_choice(const char *choices, int32_t i, size_t *n);
/* The other way round: which word of the list these n letters are, -1: none. */
int32_t lw_str_index(const char *list, char sep, const char *word, size_t n);
/* FNV-1a 64 with a final avalanche: names -> RNG streams, cache keys. Stable for ever. */
uint64_t lw_hash64(const void *bytes, size_t n);
uint64_t lw_hash_name(const char *name);
/* Whole-string numbers: no blanks, no tail; LW_EUSAGE with the text in the message otherwise. */
int lw_parse_i64(const char *text, int64_t *out);
int lw_parse_f64(const char *text, double *out);
/* Human sizes and times: "1.5 GiB", "2m 05s" into a caller's buffer (returned). */
const char *lw_fmt_bytes(char buf[32], uint64_t bytes);
const char *lw_fmt_time(char buf[32], double seconds);
/* Shortest text that reads back to the same double ("0.1", "1e-05", "nan", "inf"); buf
 * is returned. */
const char *lw_f64_text(char buf[32], double x);

#endif
