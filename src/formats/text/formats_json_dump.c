/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON: shortest numbers that read back to the same bits, short arrays on one line. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "formats/text/formats_json.h"

static void dump_value(const json_t *v, int indent, int level, lw_str *out);

static void dump_string(const char *s, size_t n, lw_str *out)
{
    lw_str_add(out, "\"");
    size_t done = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool c1 = c == 0xc2 && i + 1 < n && (unsigned char)s[i + 1] < 0xa0; /* U+0080 to U+009F */
        if (c >= 0x20 && c != '"' && c != '\\' && c != 0x7f && !c1)
            continue;
        lw_str_add_n(out, s + done, i - done);
        if (c1)
            c = (unsigned char)s[++i];
        done = i + 1;
        switch (c) {
        case '"':
            lw_str_add(out, "\\\"");
            break;
        case '\\':
            lw_str_add(out, "\\\\");
            break;
        case '\n':
            lw_str_add(out, "\\n");
            break;
        case '\t':
            lw_str_add(out, "\\t");
            break;
        case '\r':
            lw_str_add(out, "\\r");
            break;
        default:
            lw_str_addf(out, "\\u%04x", c);
        }
    }
    lw_str_add_n(out, s + done, n - done);
    lw_str_add(out, "\"");
}

static void new_line(int indent, int level, lw_str *out)
{
    if (indent > 0)
        lw_str_addf(out, "\n%*s", indent * level, "");
}

static bool all_scalars(const json_t *array)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *e = json_array_get(array, i);
        if (json_is_object(e) || json_is_array(e))
            return false;
    }
    return true;
}

static void dump_array(const json_t *v, int indent, int level, lw_str *out)
{
    bool flat = all_scalars(v);
    size_t n = json_array_size(v);
    lw_str_add(out, "[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            lw_str_add(out, indent > 0 && flat ? ", " : ",");
        if (!flat)
            new_line(indent, level + 1, out);
        dump_value(json_array_get(v, i), indent, level + 1, out);
    }
    if (n && !flat)
        new_line(indent, level, out);
    lw_str_add(out, "]");
}

static void dump_object(const json_t *v, int indent, int level, lw_str *out)
{
    const char *key, *comma = "";
    json_t *value;
    lw_str_add(out, "{");
    /* jansson's iteration takes a mutable object but does not change it */
    json_object_foreach((json_t *)v, key, value)
    {
        lw_str_add(out, comma);
        comma = ",";
        new_line(indent, level + 1, out);
        dump_string(key, strlen(key), out);
        lw_str_add(out, indent > 0 ? ": " : ":");
        dump_value(value, indent, level + 1, out);
    }
    if (json_object_size(v))
        new_line(indent, level, out);
    lw_str_add(out, "}");
}

static void dump_value(const json_t *v, int indent, int level, lw_str *out)
{
    char buf[32];
    if (!v) {
        lw_str_add(out, "null");
        return;
    }
    switch (json_typeof(v)) {
    case JSON_OBJECT:
        dump_object(v, indent, level, out);
        break;
    case JSON_ARRAY:
        dump_array(v, indent, level, out);
        break;
    case JSON_STRING:
        dump_string(json_string_value(v), json_string_length(v), out);
        break;
    case JSON_INTEGER:
        lw_str_addf(out, "%lld", (long long)json_integer_value(v));
        break;
    case JSON_REAL:
        lw_str_add(out, lw_f64_text(buf, json_real_value(v)));
        if (!strpbrk(buf, ".e")) /* stays a real when read back */
            lw_str_add(out, ".0");
        break;
    case JSON_TRUE:
        lw_str_add(out, "true");
        break;
    case JSON_FALSE:
        lw_str_add(out, "false");
        break;
    case JSON_NULL:
        lw_str_add(out, "null");
        break;
    }
}

void lw_json_dump(const json_t *v, int indent, lw_str *out)
{
    dump_value(v, indent, 0, out);
    if (out->failed)
        lw_json_lose();
    out->failed |= lw_json_lost();
}

void lw_json_typed(const json_t *v, lw_str *out)
{
    char text[32];
    if (json_is_string(v))
        lw_str_add(out, json_string_value(v));
    else if (json_is_integer(v))
        lw_str_addf(out, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        lw_str_add(out, lw_f64_text(text, json_real_value(v)));
    else if (json_is_boolean(v))
        lw_str_add(out, json_is_true(v) ? "true" : "false");
    else if (json_is_array(v) && json_array_size(v) == 0)
        lw_str_add(out, "''");
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
        lw_str_add(out, i ? "," : "");
        lw_json_typed(json_array_get(v, i), out);
    }
}
