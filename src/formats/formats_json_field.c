/* SPDX-License-Identifier: Apache-2.0 */
/* Typed fields of JSON objects, with errors that say file, key, what was wanted and what was found.
 */
#include "base/base.h"
#include "formats/formats_json.h"

static const char *type_name(const json_t *v)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object",   [JSON_ARRAY] = "an array",     [JSON_STRING] = "a string",
        [JSON_INTEGER] = "an integer", [JSON_REAL] = "a real number", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",        [JSON_NULL] = "null",
    };
    return names[json_typeof(v)];
}

/* The value of key, NULL in *out when it is optional and absent or null. */
static int find(const json_t *o, const char *where, const char *key, bool must, const json_t **out)
{
    if (!json_is_object(o))
        return lw_fail(LW_EFORMAT, "%s: must be an object to hold '%s'", where, key);
    const json_t *v = json_object_get(o, key);
    if (must && !v)
        return lw_fail(LW_EFORMAT, "%s: '%s' is missing", where, key);
    *out = !must && json_is_null(v) ? NULL : v;
    return 0;
}

static int wrong_type(const json_t *v, const char *where, const char *key, const char *wanted)
{
    return lw_fail(LW_EFORMAT, "%s: '%s' must be %s, is %s", where, key, wanted, type_name(v));
}

/* Defines lw_json_get_NAME and lw_json_opt_NAME: one field of type T if `test`. */
#define FIELD(name, T, test, wanted, value)                                                        \
    static int read_##name(const json_t *o, const char *where, const char *key, bool must, T *out) \
    {                                                                                              \
        const json_t *v = NULL;                                                                    \
        LW_TRY(find(o, where, key, must, &v));                                                     \
        if (!v)                                                                                    \
            return 0;                                                                              \
        if (!(test))                                                                               \
            return wrong_type(v, where, key, wanted);                                              \
        *out = (value);                                                                            \
        return 0;                                                                                  \
    }                                                                                              \
    int lw_json_get_##name(const json_t *o, const char *where, const char *key, T *out)            \
    {                                                                                              \
        return read_##name(o, where, key, true, out);                                              \
    }
#define FIELD_OPT(name, T)                                                              \
    int lw_json_opt_##name(const json_t *o, const char *where, const char *key, T *out) \
    {                                                                                   \
        return read_##name(o, where, key, false, out);                                  \
    }

FIELD(i64, int64_t, json_is_integer(v), "an integer", json_integer_value(v))
FIELD(f64, double, json_is_number(v), "a number", json_number_value(v))
FIELD(bool, bool, json_is_boolean(v), "true or false", json_is_true(v))
typedef const char *text;
FIELD(str, text, json_is_string(v), "a string", json_string_value(v))
typedef const json_t *tree;
FIELD(object, tree, json_is_object(v), "an object", v)
FIELD(array, tree, json_is_array(v), "an array", v)
FIELD_OPT(i64, int64_t)
FIELD_OPT(f64, double)
FIELD_OPT(bool, bool)
FIELD_OPT(str, text)

int lw_json_get_i32_in(const json_t *o, const char *where, const char *key, int32_t lo, int32_t hi,
                       int32_t *out)
{
    int64_t v = 0;
    LW_TRY(lw_json_get_i64(o, where, key, &v));
    if (v < lo || v > hi)
        return lw_fail(LW_EFORMAT, "%s: '%s' is %lld, must be %d to %d", where, key, (long long)v,
                       lo, hi);
    *out = (int32_t)v;
    return 0;
}

int lw_json_get_i32s(const json_t *o, const char *where, const char *key, int max, int32_t *out,
                     int *n)
{
    const json_t *a = NULL;
    LW_TRY(lw_json_get_array(o, where, key, &a));
    size_t count = json_array_size(a);
    if (count > (size_t)max)
        return lw_fail(LW_EFORMAT, "%s: '%s' has %zu numbers, at most %d", where, key, count, max);
    for (size_t i = 0; i < count; i++) {
        const json_t *v = json_array_get(a, i);
        if (!json_is_integer(v))
            return lw_fail(LW_EFORMAT, "%s: '%s'[%zu] must be an integer, is %s", where, key, i,
                           type_name(v));
        if (json_integer_value(v) < INT32_MIN || json_integer_value(v) > INT32_MAX)
            return lw_fail(LW_EFORMAT, "%s: '%s'[%zu] is out of range", where, key, i);
    }
    for (size_t i = 0; i < count; i++)
        out[i] = (int32_t)json_integer_value(json_array_get(a, i));
    *n = (int)count;
    return 0;
}
