/* SPDX-License-Identifier: Apache-2.0 */
/* Typed fields of JSON objects, with errors that say file, key, what was wanted and what
 * was found. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "formats/text/formats_json.h"

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

int lw_json_opt_hash(const json_t *o, const char *where, const char *key, uint64_t *out)
{
    const char *digits = NULL;
    LW_TRY(lw_json_opt_str(o, where, key, &digits));
    if (!digits)
        return 0;
    size_t n = strspn(digits, "0123456789abcdefABCDEF");
    if (n < 1 || n > 16 || digits[n])
        return lw_fail(LW_EFORMAT, "%s: '%s' must be 16 hexadecimal digits, is '%s'", where, key,
                       digits);
    *out = strtoull(digits, NULL, 16);
    return 0;
}

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

/* ---- configurations of other programs -------------------------------------------------------- */

static unsigned types_of(const json_t *v)
{
    static const unsigned types[] = {
        [JSON_OBJECT] = LW_JSON_OBJECT, [JSON_ARRAY] = LW_JSON_ARRAY,
        [JSON_STRING] = LW_JSON_STRING, [JSON_INTEGER] = LW_JSON_INT | LW_JSON_NUMBER,
        [JSON_REAL] = LW_JSON_NUMBER,   [JSON_TRUE] = LW_JSON_BOOL,
        [JSON_FALSE] = LW_JSON_BOOL,    [JSON_NULL] = LW_JSON_NULL,
    };
    return types[json_typeof(v)];
}

static int wrong_types(const json_t *v, const char *where, const lw_json_rule *rule)
{
    static const char *const names[] = {"an integer", "a number", "true or false", "a string",
                                        "an array",   "null",     "an object"};
    LW_CLEANUP(lw_str_clear) lw_str wanted = {0};
    for (unsigned i = 0; i < LW_COUNT(names); i++)
        if (rule->types >> i & 1)
            lw_str_addf(&wanted, "%s%s", wanted.len ? " or " : "", names[i]);
    return wrong_type(v, where, rule->key, lw_str_c(&wanted));
}

int lw_json_check_fields(const json_t *o, const char *where, const lw_json_rule *rules,
                         const char *own)
{
    const char *key;
    json_t *v;
    if (!json_is_object(o))
        return lw_fail(LW_EFORMAT, "%s: must be an object", where);
    json_object_foreach((json_t *)(uintptr_t)o, key, v)
    {
        const lw_json_rule *rule = rules;
        while (rule->key && !lw_str_eq(rule->key, key))
            rule++;
        if (rule->key && !(types_of(v) & rule->types))
            return wrong_types(v, where, rule);
        if (!rule->key && lw_str_starts(key, own))
            return lw_fail(LW_EUNSUPPORTED, "%s: '%s' is not known to this version of leeway",
                           where, key);
        if (!rule->key && key[0] != '_')
            lw_log(LW_LOG_WARN, "config", "%s: '%s' is not known here and is passed over", where,
                   key);
    }
    return 0;
}

static bool in_lists(const char *const *const *lists, const char *key)
{
    for (; *lists; lists++)
        for (const char *const *word = *lists; *word; word++)
            if (lw_str_eq(*word, key))
                return true;
    return false;
}

static bool in_only(const lw_json_only *only, const char *key, const json_t *v, const char *value)
{
    for (; only && only->key; only++)
        if ((lw_str_eq(only->key, "*") || lw_str_eq(only->key, key)) &&
            (json_is_null(v) || lw_str_eq(only->value, value)))
            return true;
    return false;
}

int lw_json_check_known(const json_t *o, const char *where, const char *const *const *known,
                        const lw_json_only *only)
{
    const char *key;
    json_t *v;
    if (!json_is_object(o))
        return lw_fail(LW_EFORMAT, "%s: must be an object", where);
    json_object_foreach((json_t *)(uintptr_t)o, key, v)
    {
        LW_CLEANUP(lw_str_clear) lw_str value = {0};
        if (key[0] == '_' || in_lists(known, key))
            continue;
        lw_json_dump(v, 0, &value);
        if (value.failed)
            return LW_ENOMEM;
        if (!in_only(only, key, v, lw_str_c(&value)))
            return lw_fail(LW_EUNSUPPORTED, "%s: '%.80s' is %.80s, which is not honoured here",
                           where, key, lw_str_c(&value));
    }
    return 0;
}
