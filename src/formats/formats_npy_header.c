/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and writing .npy headers (numpy/lib/format.py describes them). */
#include "formats/formats_npy.h"
#include "formats/formats_npy_header.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"

#define MAX_HEADER 65536

/* A cursor over the header's text, which is NUL-terminated. */
typedef struct cursor {
    const char *what, *s;
} cursor;

static int bad(const cursor *c, const char *why)
{
    return lw_fail(LW_EFORMAT, "%s: bad .npy header: %s at '%.12s'", c->what, why, c->s);
}

static void blanks(cursor *c)
{
    while (isspace((unsigned char)*c->s))
        c->s++;
}

static bool accept(cursor *c, char ch)
{
    blanks(c);
    if (*c->s != ch)
        return false;
    c->s++;
    return true;
}

/* 'text' or "text" without escapes. */
static int quoted(cursor *c, char *buf, size_t size)
{
    blanks(c);
    char q = *c->s;
    const char *end = q == '\'' || q == '"' ? strchr(c->s + 1, q) : NULL;
    if (!end || (size_t)(end - c->s) > size)
        return bad(c, "a short quoted word expected");
    size_t n = (size_t)(end - c->s - 1);
    memcpy(buf, c->s + 1, n);
    buf[n] = '\0';
    c->s = end + 1;
    return 0;
}

static int read_shape(cursor *c, lw_npy_header *h)
{
    if (!accept(c, '('))
        return bad(c, "'(' expected");
    h->rank = 0;
    while (!accept(c, ')')) {
        if (h->rank == LW_ARRAY_MAX_RANK)
            return lw_fail(LW_EFORMAT, "%s: an array of more than %d dimensions", c->what,
                           LW_ARRAY_MAX_RANK);
        blanks(c);
        if (!isdigit((unsigned char)*c->s))
            return bad(c, "a size expected");
        int64_t v = 0;
        for (; isdigit((unsigned char)*c->s); c->s++)
            if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *c->s - '0', &v))
                return bad(c, "a size that is too large");
        h->shape[h->rank++] = v;
        if (!accept(c, ',')) {
            if (!accept(c, ')'))
                return bad(c, "',' or ')' expected");
            return 0;
        }
    }
    return 0;
}

static int read_bool(cursor *c, bool *out)
{
    blanks(c);
    *out = lw_str_starts(c->s, "True");
    if (!*out && !lw_str_starts(c->s, "False"))
        return bad(c, "True or False expected");
    c->s += *out ? 4 : 5;
    return 0;
}

static const struct {
    const char *descr;
    lw_elem type;
} descrs[] = {
    {"f8", LW_ELEM_F64}, {"f4", LW_ELEM_F32}, {"f2", LW_ELEM_F16},
    {"i8", LW_ELEM_I64}, {"i4", LW_ELEM_I32}, {"i2", LW_ELEM_I16},
    {"i1", LW_ELEM_I8},  {"u1", LW_ELEM_U8},  {"b1", LW_ELEM_BOOL},
};

/* <U12: text of at most 12 characters of four bytes. */
static int read_text(const cursor *c, const char *digits, lw_npy_header *h)
{
    int64_t n;
    if (lw_parse_i64(digits, &n) < 0 || n < 1)
        return lw_fail(LW_EFORMAT, "%s: text of '%s' characters", c->what, digits);
    h->type = LW_ELEM_I32;
    h->text = n;
    return 0;
}

static int read_type(cursor *c, lw_npy_header *h)
{
    char descr[32] = ""; /* zeroed: the text after the first character is looked at */
    blanks(c);
    if (*c->s == '[')
        return lw_fail(LW_EFORMAT, "%s: structured arrays are not supported", c->what);
    LW_TRY(quoted(c, descr, sizeof descr));
    if (lw_str_starts(descr, "<U"))
        return read_text(c, descr + 2, h);
    bool one_byte = strlen(descr) == 3 && descr[2] == '1';
    for (size_t i = 0; i < LW_COUNT(descrs); i++)
        if (strcmp(descr + 1, descrs[i].descr) == 0 &&
            (descr[0] == '<' || (descr[0] == '|' && one_byte))) {
            h->type = descrs[i].type;
            return 0;
        }
    return lw_fail(LW_EFORMAT,
                   "%s: element type '%s' is not one of <f2 <f4 <f8 |i1 <i2 <i4 <i8 |u1 |b1",
                   c->what, descr);
}

/* {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } in any order, each once. */
static int read_dict(cursor *c, lw_npy_header *h)
{
    unsigned seen = 0;
    if (!accept(c, '{'))
        return bad(c, "'{' expected");
    while (!accept(c, '}')) {
        char key[32];
        LW_TRY(quoted(c, key, sizeof key));
        if (!accept(c, ':'))
            return bad(c, "':' expected");
        unsigned bit = lw_str_eq(key, "descr")           ? 1u
                       : lw_str_eq(key, "fortran_order") ? 2u
                       : lw_str_eq(key, "shape")         ? 4u
                                                         : 0;
        if (!bit || seen & bit)
            return lw_fail(LW_EFORMAT, "%s: bad .npy header: key '%s'", c->what, key);
        seen |= bit;
        LW_TRY(bit == 1   ? read_type(c, h)
               : bit == 2 ? read_bool(c, &h->fortran)
                          : read_shape(c, h));
        if (!accept(c, ',')) {
            if (!accept(c, '}'))
                return bad(c, "',' or '}' expected");
            break;
        }
    }
    blanks(c);
    if (*c->s)
        return bad(c, "text after the dictionary");
    if (seen != 7)
        return lw_fail(LW_EFORMAT, "%s: bad .npy header: descr, fortran_order and shape are needed",
                       c->what);
    return 0;
}

int lw_npy_header_read(const char *what, const void *bytes, size_t n, lw_npy_header *out)
{
    const unsigned char *p = bytes;
    if (n < 10 || memcmp(p, "\x93NUMPY", 6) != 0)
        return lw_fail(LW_EFORMAT, "%s: not an .npy file", what);
    if (p[6] < 1 || p[6] > 3)
        return lw_fail(LW_EFORMAT, "%s: .npy version %d is not supported (1 to 3)", what, p[6]);
    size_t at = p[6] == 1 ? 10 : 12;
    if (n < at)
        return lw_fail(LW_EFORMAT, "%s: truncated .npy header", what);
    size_t len = p[8] | (size_t)p[9] << 8;
    if (p[6] > 1)
        len |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (len > MAX_HEADER || len > n - at)
        return lw_fail(LW_EFORMAT, "%s: .npy header of %zu bytes in a file of %zu", what, len, n);
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_str_add_n(&text, (const char *)p + at, len);
    if (text.failed)
        return LW_ENOMEM;
    if (memchr(p + at, 0, len))
        return lw_fail(LW_EFORMAT, "%s: bad .npy header: a NUL byte", what);
    lw_npy_header h = {.data_at = at + len};
    cursor c = {what, lw_str_c(&text)};
    LW_TRY(read_dict(&c, &h));
    if (h.text && (h.rank == LW_ARRAY_MAX_RANK || (h.fortran && h.rank > 1)))
        return lw_fail(LW_EFORMAT, "%s: text of so many dimensions is not read", what);
    if (h.text)
        h.shape[h.rank++] = h.text;
    h.fortran = h.fortran && !h.text;
    *out = h;
    return 0;
}

static int write_header(const char *descr, int rank, const int64_t *shape, lw_str *out)
{
    LW_CLEANUP(lw_str_clear) lw_str text = {0};
    lw_str_addf(&text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                descr[1] == '1' && descr[0] != 'U' ? '|' : '<', descr);
    for (int i = 0; i < rank; i++)
        lw_str_addf(&text, "%s%lld", i ? ", " : "", (long long)shape[i]);
    lw_str_add(&text, rank == 1 ? ",), }" : "), }");
    while ((10 + text.len + 1) % 64 && !text.failed)
        lw_str_add(&text, " ");
    lw_str_add(&text, "\n");
    if (text.failed)
        return LW_ENOMEM;
    char start[10] = "\x93NUMPY\x01"; /* version 1.0, then the length */
    start[8] = (char)(text.len & 0xff);
    start[9] = (char)(text.len >> 8);
    lw_str_add_n(out, start, sizeof start);
    lw_str_add_n(out, text.s, text.len);
    return out->failed ? LW_ENOMEM : 0;
}

int lw_npy_header_write(const char *what, lw_elem type, int rank, const int64_t *shape, lw_str *out)
{
    const char *descr = NULL;
    for (size_t i = 0; i < LW_COUNT(descrs); i++)
        if (descrs[i].type == type)
            descr = descrs[i].descr;
    if (!descr)
        return lw_fail(LW_EUNSUPPORTED, "%s: numpy has no %s", what, lw_elem_name(type));
    return write_header(descr, rank, shape, out);
}

int lw_npy_header_write_text(int rank, const int64_t *shape, lw_str *out)
{
    char descr[32];
    snprintf(descr, sizeof descr, "U%lld", (long long)shape[rank - 1]);
    return write_header(descr, rank - 1, shape, out);
}
