/* SPDX-License-Identifier: Apache-2.0 */
/* Wire types: 0 varint, 1 64-bit, 2 bytes, 5 32-bit. */
#include "formats/formats_protobuf.h"

#include <string.h>

void lw_pb_varint(lw_str *s, uint64_t v)
{
    char b[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        b[n++] = (char)(v | 0x80);
    b[n++] = (char)v;
    lw_str_add_n(s, b, n);
}

void lw_pb_int(lw_str *s, unsigned field, int64_t v)
{
    lw_pb_varint(s, field << 3 | 0);
    lw_pb_varint(s, (uint64_t)v);
}

void lw_pb_double(lw_str *s, unsigned field, double v)
{
    lw_pb_varint(s, field << 3 | 1);
    lw_str_add_n(s, (const char *)&v, sizeof v);
}

void lw_pb_float(lw_str *s, unsigned field, float v)
{
    lw_pb_varint(s, field << 3 | 5);
    lw_str_add_n(s, (const char *)&v, sizeof v);
}

void lw_pb_head(lw_str *s, unsigned field, size_t n)
{
    lw_pb_varint(s, field << 3 | 2);
    lw_pb_varint(s, n);
}

void lw_pb_bytes(lw_str *s, unsigned field, const void *bytes, size_t n)
{
    lw_pb_head(s, field, n);
    lw_str_add_n(s, bytes, n);
}

void lw_pb_text(lw_str *s, unsigned field, const char *text)
{
    lw_pb_bytes(s, field, text, strlen(text));
}

void lw_pb_message(lw_str *s, unsigned field, const lw_str *m)
{
    lw_pb_bytes(s, field, lw_str_c(m), m->len);
    s->failed = s->failed || m->failed;
}
