/* SPDX-License-Identifier: Apache-2.0 */
/* json_t -> YAML text: block maps, everything inside an array in flow style. */
#include <string.h>

#include "base/base.h"
#include "formats/text/formats_yaml.h"
#include "formats/text/formats_yaml_scalar.h"

static int dump_flow(const json_t *v, lw_str *out);

/* Text that every YAML reader takes as the same string without quotes. */
static bool is_plain(const char *s, size_t n, bool key_or_flow)
{
    const char *letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-+";
    if (n == 0 || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/", s[0]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!strchr(letters, s[i]) && (s[i] != ':' || key_or_flow || i + 1 == n))
            return false;
    /* words that YAML 1.1 readers take for booleans, and base 60 numbers */
    static const char *const words[] = {"y", "n", "yes", "no", "on", "off"};
    for (size_t i = 0; i < LW_COUNT(words); i++)
        if (strcasecmp(s, words[i]) == 0)
            return false;
    if (strspn(s, "0123456789:._+-eE") == n)
        return false;
    const char *why;
    json_t *v = lw_yaml_scalar(s, n, &why);
    bool plain = json_is_string(v);
    json_decref(v);
    return plain;
}

/* Code point at s (valid UTF-8) and its length. */
static uint32_t decode(const char *s, size_t *len)
{
    const unsigned char *u = (const unsigned char *)s;
    *len = u[0] < 0x80 ? 1 : u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
    static const uint32_t first[5] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = u[0] & first[*len];
    for (size_t i = 1; i < *len; i++)
        c = c << 6 | (u[i] & 0x3fu);
    return c;
}

static void dump_string(const char *s, size_t n, bool key_or_flow, lw_str *out)
{
    if (is_plain(s, n, key_or_flow)) {
        lw_str_add_n(out, s, n);
        return;
    }
    lw_str_add(out, "\"");
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t c = decode(s + i, &len);
        if (c == '"' || c == '\\')
            lw_str_addf(out, "\\%c", (int)c);
        else if (c == '\n')
            lw_str_add(out, "\\n");
        else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
                 c == 0xfffe || c == 0xffff) /* what libyaml refuses or folds as a line break */
            lw_str_addf(out, "\\u%04x", c);
        else
            lw_str_add_n(out, s + i, len);
    }
    lw_str_add(out, "\"");
}

/* "1e-05" is a string to YAML 1.1 readers, "1.0e-05" a number to all. */
static void dump_real(double x, lw_str *out)
{
    char buf[32];
    const char *e = strchr(lw_f64_text(buf, x), 'e');
    size_t mantissa = e ? (size_t)(e - buf) : strlen(buf);
    lw_str_add_n(out, buf, mantissa);
    if (!memchr(buf, '.', mantissa))
        lw_str_add(out, ".0");
    lw_str_add(out, buf + mantissa);
}

static void dump_scalar(const json_t *v, bool flow, lw_str *out)
{
    switch (json_typeof(v)) {
    case JSON_STRING:
        dump_string(json_string_value(v), json_string_length(v), flow, out);
        break;
    case JSON_INTEGER:
        lw_str_addf(out, "%lld", (long long)json_integer_value(v));
        break;
    case JSON_REAL:
        dump_real(json_real_value(v), out);
        break;
    case JSON_TRUE:
        lw_str_add(out, "true");
        break;
    case JSON_FALSE:
        lw_str_add(out, "false");
        break;
    default:
        lw_str_add(out, "null");
        break;
    }
}

/* libyaml takes a key of at most 1024 characters as written. */
static int dump_key(const char *key, lw_str *out)
{
    size_t before = out->len;
    dump_string(key, strlen(key), true, out);
    lw_str_add(out, ":");
    if (out->len - before > 1000)
        return lw_fail(LW_EUNSUPPORTED, "a YAML key of %zu bytes", strlen(key));
    return 0;
}

static int dump_flow_object(const json_t *v, lw_str *out)
{
    const char *key, *comma = "";
    json_t *value;
    lw_str_add(out, "{");
    json_object_foreach((json_t *)v, key, value)
    {
        lw_str_add(out, comma);
        comma = ", ";
        LW_TRY(dump_key(key, out));
        lw_str_add(out, " ");
        LW_TRY(dump_flow(value, out));
    }
    lw_str_add(out, "}");
    return 0;
}

static int dump_flow(const json_t *v, lw_str *out)
{
    if (json_is_object(v))
        return dump_flow_object(v, out);
    if (!json_is_array(v)) {
        dump_scalar(v, true, out);
        return 0;
    }
    lw_str_add(out, "[");
    for (size_t i = 0; i < json_array_size(v); i++) {
        lw_str_add(out, i ? ", " : "");
        LW_TRY(dump_flow(json_array_get(v, i), out));
    }
    lw_str_add(out, "]");
    return 0;
}

static int dump_block(const json_t *map, int level, lw_str *out)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)map, key, value)
    {
        lw_str_addf(out, "%*s", 2 * level, "");
        LW_TRY(dump_key(key, out));
        if (json_is_object(value) && json_object_size(value)) {
            lw_str_add(out, "\n");
            LW_TRY(dump_block(value, level + 1, out));
            continue;
        }
        lw_str_add(out, " ");
        if (json_is_object(value) || json_is_array(value))
            LW_TRY(dump_flow(value, out));
        else
            dump_scalar(value, false, out);
        lw_str_add(out, "\n");
    }
    return 0;
}

int lw_yaml_dump(const json_t *map, lw_str *out)
{
    if (!json_is_object(map))
        return lw_fail(LW_EUNSUPPORTED, "only an object can be written as YAML");
    if (json_object_size(map) == 0)
        lw_str_add(out, "{}\n");
    return dump_block(map, 0, out);
}
