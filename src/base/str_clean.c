/* SPDX-License-Identifier: Apache-2.0 */
/* Text for people: what a terminal would act on instead of showing is escaped. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"

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

int32_t lw_utf8_length(const char *s)
{
    int32_t n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* Valid, and neither C0, DEL or C1 nor one that turns the direction of what follows (U+202A to
 * U+202E, U+2066 to U+2069) or ends a line (U+2028, U+2029). */
static bool harmless(const unsigned char *s, size_t size)
{
    if (size == 0 || s[0] < 0x20 || s[0] == 0x7f || (s[0] == 0xc2 && s[1] < 0xa0))
        return false;
    if (size != 3 || s[0] != 0xe2)
        return true;
    bool lines = s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae;
    bool isolates = s[1] == 0x81 && s[2] >= 0xa6 && s[2] <= 0xa9;
    return !lines && !isolates;
}

/* The next character of *text, or its first byte escaped; *text moves on. 0: the end. */
static size_t next_clean(const char **text, const char *end, const char *keep, char out[8])
{
    const unsigned char *s = (const unsigned char *)*text;
    if (*text == end)
        return 0;
    size_t size = lw_utf8_size(s, (size_t)(end - *text));
    if (harmless(s, size) || (s[0] && strchr(keep, s[0]))) {
        memcpy(out, s, size);
        *text += size;
        return size;
    }
    (*text)++;
    if (s[0] == '\n' || s[0] == '\t' || s[0] == '\r')
        return (size_t)snprintf(out, 8, "\\%c", s[0] == '\n' ? 'n' : s[0] == '\t' ? 't' : 'r');
    return (size_t)snprintf(out, 8, "\\x%02x", s[0]);
}

void lw_str_add_clean(lw_str *s, const char *text, const char *keep)
{
    char out[8];
    size_t n;
    for (const char *end = text + strlen(text); (n = next_clean(&text, end, keep, out)) > 0;)
        lw_str_add_n(s, out, n);
}

void lw_clean(char *buf, size_t size, const char *text)
{
    char out[8];
    size_t used = 0, n;
    for (const char *end = text + strlen(text); (n = next_clean(&text, end, "", out)) > 0;) {
        if (used + n >= size)
            break;
        memcpy(buf + used, out, n);
        used += n;
    }
    buf[used] = '\0';
}
