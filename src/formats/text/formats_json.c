/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON with limits; saving. */
#include "formats/text/formats_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* jansson recurses per level, up to 2048: refuse deep input before it does. Brackets inside strings
 * do not count; malformed text is left for the parser to describe. */
static int check_depth(const char *what, const char *text, size_t len)
{
    int depth = 0, line = 1;
    bool in_string = false;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        if (c == '\n')
            line++;
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '{' || c == '[') {
            if (++depth > LW_JSON_MAX_DEPTH)
                return lw_fail(LW_EFORMAT, "%s:%d: JSON is nested deeper than %d levels", what,
                               line, LW_JSON_MAX_DEPTH);
        } else if (c == '}' || c == ']') {
            depth--;
        }
    }
    return 0;
}

int lw_json_parse(const char *what, const char *text, size_t len, json_t **out)
{
    if (len > LW_JSON_MAX_BYTES)
        return lw_fail(LW_EFORMAT, "%s: %zu bytes of JSON, at most %zu", what, len,
                       LW_JSON_MAX_BYTES);
    LW_TRY(check_depth(what, text, len));
    json_error_t err;
    json_t *v = lw_json_decode(text, len, &err);
    if (!v && errno == ENOMEM)
        return lw_fail(LW_ENOMEM, "%s: no memory for %zu bytes of JSON", what, len);
    if (!v)
        return lw_fail(LW_EFORMAT, "%s:%d:%d: bad JSON: %s", what, err.line, err.column, err.text);
    *out = v;
    return 0;
}

int lw_json_load(const char *path, json_t **out)
{
    char *text;
    size_t len;
    LW_TRY(lw_file_read(path, LW_JSON_MAX_BYTES, &text, &len));
    int rc = lw_json_parse(path, text, len, out);
    lw_free(&text);
    return rc;
}

void lw_json_drop(json_t **pp)
{
    json_decref(*pp);
    *pp = NULL;
}

json_t *lw_json_real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *lw_json_float(float x)
{
    double v = (double)x;
    for (int digits = 1; digits <= 9 && isfinite(x); digits++) {
        char text[32];
        snprintf(text, sizeof text, "%.*g", digits, (double)x);
        v = strtod(text, NULL);
        if ((float)v == x)
            break;
    }
    return lw_json_real(v);
}

json_t *lw_json_name(const char *text)
{
    LW_CLEANUP(lw_str_clear) lw_str clean = {0};
    if (!text)
        return NULL;
    lw_str_add_clean(&clean, text, "");
    if (clean.failed)
        lw_json_lose();
    return json_string(lw_str_c(&clean));
}

json_t *lw_json_hash(uint64_t hash)
{
    char text[32];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return json_string(text);
}

const char *lw_json_difference(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)a, key,
                        value) if (!json_equal(value, json_object_get(b, key))) return key;
    json_object_foreach((json_t *)b, key, value) if (!json_object_get(a, key)) return key;
    return NULL;
}

int lw_json_save(const char *path, const json_t *v)
{
    LW_CLEANUP(lw_str_clear) lw_str s = {0};
    lw_json_dump(v, 2, &s);
    lw_str_add(&s, "\n");
    if (s.failed)
        return lw_fail(LW_ENOMEM, "%s: no memory for its text", path);
    return lw_file_write(path, s.s, s.len);
}
